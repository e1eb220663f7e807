// A report as one HTML file that needs nothing else: no network, no scripts, readable in light and in dark.
//
//   examples::report page{.title = "Recurrent depth on six novels"};
//   page.sections.push_back({"Training", "What the run did.", {examples::line_chart{...}, examples::table{...}}});
//   examples::write_report(page, "report.html");
#pragma once

#include <cstdio>
#include <fstream>
#include <variant>

#include "heat_map.hpp"
#include "report_style.hpp"
#include "svg.hpp"

namespace examples {

struct paragraph {
  std::string text = {};
};
/// Numbers that a reader should see first: {"held-out bits per byte, r = 8", "2.41"}.
struct key_figures {
  struct figure {
    std::string name = {}, value = {};
  };
  std::vector<figure> figures = {};
};
/// Rows of cells; a cell that begins with a digit or a sign is set as a number, to the right.
struct table {
  std::string title = {};
  std::vector<std::string> header = {};
  std::vector<std::vector<std::string>> rows = {};
  std::string note = {};
};
/// Text as a model wrote it, after the prompt it was given.
struct text_sample {
  std::string title = {}, prompt = {}, text = {};
};

using report_item = std::variant<paragraph, key_figures, line_chart, bar_chart, heat_map, table, text_sample>;

struct report_section {
  std::string heading = {}, introduction = {};
  std::vector<report_item> items = {};
};

struct report {
  std::string title = {}, subtitle = {};
  std::vector<report_section> sections = {};
  std::string footer = {};
};

namespace detail {

inline std::string element(const char* name, std::string_view text, const char* style = "") {
  if (text.empty()) return "";
  const std::string attribute = *style != '\0' ? " class=\"" + std::string(style) + '"' : "";
  return '<' + std::string(name) + attribute + '>' + escaped(text) + "</" + name + ">\n";
}

inline bool is_number(std::string_view cell) {
  if (cell.starts_with("\xE2\x88\x92"))
    cell.remove_prefix(3);
  else if (cell.starts_with('-') || cell.starts_with('+'))
    cell.remove_prefix(1);
  return !cell.empty() && ((cell[0] >= '0' && cell[0] <= '9') || cell == "NaN" || cell == "\xE2\x88\x9E");
}

inline std::string legend(const std::vector<series>& lines) {
  if (lines.size() < 2) return "";
  std::string out = "<ul class=\"legend\">";
  for (std::size_t i = 0; i < lines.size(); ++i)
    out += "<li class=\"" + series_class(i) + "\"><i class=\"swatch" + (lines[i].faint ? " faint" : "") +
           (i >= series_colours ? " dashed" : "") + "\"></i>" + escaped(lines[i].name) + "</li>";
  return out + "</ul>\n";
}

inline std::string left_out_note(std::size_t left_out) {
  if (left_out == 0) return "";
  return element("p",
                 std::to_string(left_out) + (left_out == 1 ? " value" : " values") + " cannot be drawn and " +
                     (left_out == 1 ? "is" : "are") + " left out.",
                 "note warning");
}

template <class Chart>
std::string figure(const Chart& chart, const std::string& key, drawing_size size) {
  std::size_t left_out = 0;
  const std::string drawing = svg(chart, size, left_out);
  return std::string("<figure class=\"chart") + (size.width > drawing_size{}.width ? " wide" : "") + "\">\n" +
         element("figcaption", chart.title) + key + "<div class=\"scroll\">" + drawing + "</div>\n" + left_out_note(left_out) +
         element("p", chart.note, "note") + "</figure>\n";
}

/// Renders one item; charts take `size`.
struct item_writer {
  drawing_size size;

  std::string operator()(const paragraph& p) const { return element("p", p.text); }
  std::string operator()(const key_figures& k) const {
    std::string out = "<dl class=\"figures\">\n";
    for (const auto& [name, value] : k.figures)
      out += "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd></div>\n";
    return out + "</dl>\n";
  }
  std::string operator()(const line_chart& chart) const { return figure(chart, legend(chart.lines), size); }
  std::string operator()(const bar_chart& chart) const { return figure(chart, "", size); }
  std::string operator()(const heat_map& map) const { return figure(map, "", size); }
  std::string operator()(const table& t) const {
    std::string out =
        "<figure class=\"table\">\n" + element("figcaption", t.title) + "<div class=\"scroll\"><table>\n<thead><tr>";
    // A column's head stands as its numbers do.
    const auto numeric = [&](std::size_t column) {
      return std::any_of(t.rows.begin(), t.rows.end(),
                         [&](const auto& row) { return column < row.size() && is_number(row[column]); });
    };
    const auto cell = [](const char* name, const std::string& text, bool number) {
      return '<' + std::string(name) + (number ? " class=\"number\">" : ">") + escaped(text) + "</" + name + '>';
    };
    for (std::size_t i = 0; i < t.header.size(); ++i) out += cell("th", t.header[i], numeric(i));
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : t.rows) {
      out += "<tr>";
      for (std::size_t i = 0; i < row.size(); ++i) out += cell("td", row[i], is_number(row[i]));
      out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n" + element("p", t.note, "note") + "</figure>\n";
  }
  std::string operator()(const text_sample& sample) const {
    return "<figure class=\"sample\">\n" + element("figcaption", sample.title) + "<blockquote>" +
           (sample.prompt.empty() ? "" : "<b>" + escaped(sample.prompt) + "</b>") + escaped(sample.text) +
           "</blockquote></figure>\n";
  }
};

inline bool is_chart(const report_item& item) {
  return std::holds_alternative<line_chart>(item) || std::holds_alternative<bar_chart>(item) ||
         std::holds_alternative<heat_map>(item);
}

/// Neighbouring charts share a row; one alone is wide. So are samples, which one wants to compare.
inline std::string items_html(const std::vector<report_item>& items) {
  std::string out;
  const auto same = [](const report_item& a, const report_item& b) {
    return (is_chart(a) && is_chart(b)) || (std::holds_alternative<text_sample>(a) && std::holds_alternative<text_sample>(b));
  };
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin + 1;
    while (end < items.size() && same(items[begin], items[end])) ++end;
    const item_writer writer{end - begin == 1 ? drawing_size{1000, 380} : drawing_size{}};
    if (end - begin > 1) out += "<div class=\"row\">\n";
    for (std::size_t i = begin; i < end; ++i) out += std::visit(writer, items[i]);
    if (end - begin > 1) out += "</div>\n";
    begin = end;
  }
  return out;
}

}  // namespace detail

/// The whole page. Every text in it is escaped; its content security policy forbids the browser to load anything.
inline std::string html(const report& page) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      escaped(page.title) + "</title>\n<style>" + std::string(detail::report_style) +
      "</style>\n</head>\n<body>\n<main>\n<header>\n" + detail::element("h1", page.title) +
      detail::element("p", page.subtitle, "subtitle") + "</header>\n";
  for (const report_section& section : page.sections)
    out += "<section>\n" + detail::element("h2", section.heading) + detail::element("p", section.introduction) +
           detail::items_html(section.items) + "</section>\n";
  return out + detail::element("footer", page.footer) + "</main>\n</body>\n</html>\n";
}

/// Writes the page; a file of that name is replaced only when the new one is complete. Throws gyre::error with the path.
inline void write_report(const report& page, const std::string& path) {
  const std::string text = html(page), partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out || std::rename(partial.c_str(), path.c_str()) != 0) {
    std::remove(partial.c_str());
    gyre::fail("write_report: cannot write ", text.size(), " bytes to ", path, "; is the folder there, is the disk full?");
  }
}

}  // namespace examples
