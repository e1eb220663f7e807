// Draws charts as SVG. Colours are the page's: class s0 to s7 sets `color`, and lines are drawn in the current colour.
#pragma once

#include <array>
#include <utility>

#include <gyre/core/error.hpp>

#include "axis_scale.hpp"

namespace examples {

/// Pixels of a drawing.
struct drawing_size {
  double width = 520, height = 330;
};

namespace detail {

inline constexpr int series_colours = 8;

inline std::string coordinate(double pixels) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, pixels, std::chars_format::fixed, 1).ptr};
}

/// The area between the axes, in pixels; y grows downwards.
struct plot_area {
  double left, right, top, bottom;
};

/// Room around the plot for ticks and labels; sets the pixels of both scales.
inline plot_area lay_out(scale& x, scale& y, drawing_size size, bool has_x_label, bool has_y_label) {
  const plot_area area{16 + 6.6 * y.longest_tick(), size.width - 14, has_y_label ? 30.0 : 12.0,
                       size.height - (has_x_label ? 46.0 : 26.0)};
  x.set_pixels(area.left, area.right);
  y.set_pixels(area.bottom, area.top);
  return area;
}

inline std::string text_at(double x, double y, const char* style, std::string_view text) {
  return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" class=\"" + style + "\">" + escaped(text) + "</text>";
}
inline std::string line_between(double x1, double y1, double x2, double y2, const char* style) {
  return "<path class=\"" + std::string(style) + "\" d=\"M" + coordinate(x1) + ' ' + coordinate(y1) + 'L' + coordinate(x2) +
         ' ' + coordinate(y2) + "\"/>";
}
inline std::string opening(drawing_size size, std::string_view title) {
  return "<svg viewBox=\"0 0 " + coordinate(size.width) + ' ' + coordinate(size.height) + "\" role=\"img\" aria-label=\"" +
         escaped(title) + "\">";
}

inline std::string horizontal_grid(const scale& y, const plot_area& area) {
  std::string out;
  for (const auto& [value, text] : y.ticks()) {
    const double at = y.pixel(value);
    out += line_between(area.left, at, area.right, at, "grid") + text_at(area.left - 8, at + 4, "tick end", text);
  }
  return out;
}
inline std::string labels(const plot_area& area, drawing_size size, std::string_view x_label, std::string_view y_label) {
  std::string out;
  if (!x_label.empty()) out += text_at((area.left + area.right) / 2, size.height - 6, "label middle", x_label);
  if (!y_label.empty()) out += text_at(2, 14, "label", y_label);
  return out;
}

/// Keeps a line's shape and drops what no eye can tell apart: of the points in one column of pixels the first, the lowest, the
/// highest and the last.
inline std::vector<std::array<double, 2>> thinned(const std::vector<std::array<double, 2>>& points, double width) {
  const bool ordered = std::is_sorted(points.begin(), points.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  if (!ordered || static_cast<double>(points.size()) <= 4 * width) return points;
  std::vector<std::array<double, 2>> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin, low = begin, high = begin;
    for (; end < points.size() && std::floor(points[end][0]) == std::floor(points[begin][0]); ++end) {
      if (points[end][1] < points[low][1]) low = end;
      if (points[end][1] > points[high][1]) high = end;
    }
    std::array<std::size_t, 4> chosen{begin, low, high, end - 1};
    std::sort(chosen.begin(), chosen.end());
    for (auto at = chosen.begin(); at != std::unique(chosen.begin(), chosen.end()); ++at) kept.push_back(points[*at]);
    begin = end;
  }
  return kept;
}

inline std::string path_of(const std::vector<std::array<double, 2>>& points, const char* style) {
  std::string out = "<path class=\"" + std::string(style) + "\" d=\"";
  char command = 'M';
  for (const auto& [x, y] : points) {
    out += command + coordinate(x) + ' ' + coordinate(y);
    command = 'L';
  }
  return out + "\"/>";
}

inline std::string series_class(std::size_t number) { return 's' + std::to_string(number % series_colours); }

inline constexpr std::size_t most_tooltips = 150;  // a line; more would only make the file large

/// One line with its dots and tooltips, in the colour of `number`.
inline std::string draw_series(const series& line, std::size_t number, const scale& x, const scale& y, const plot_area& area) {
  std::string out = "<g class=\"" + series_class(number) + "\">", dots;
  std::vector<std::array<double, 2>> piece;
  const char* style = line.faint ? "line faint" : number < series_colours ? "line" : "line dashed";
  const auto close = [&] {
    if (piece.size() == 1 && !line.markers)
      dots += "<circle class=\"dot\" r=\"3.5\" cx=\"" + coordinate(piece[0][0]) + "\" cy=\"" + coordinate(piece[0][1]) + "\"/>";
    if (piece.size() > 1) out += path_of(thinned(piece, area.right - area.left), style);
    piece.clear();
  };
  const std::size_t every = line.x.size() / most_tooltips + 1;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (!x.drawable(line.x[i]) || !y.drawable(line.y[i])) {
      close();
      continue;
    }
    piece.push_back({x.pixel(line.x[i]), y.pixel(line.y[i])});
    const std::string at = " cx=\"" + coordinate(piece.back()[0]) + "\" cy=\"" + coordinate(piece.back()[1]) + '"';
    if (line.markers) dots += "<circle class=\"dot\" r=\"3.5\"" + at + "/>";
    if (!line.faint && (line.markers || i % every == 0))
      dots += "<circle class=\"hit\" r=\"8\"" + at + "><title>" + escaped(line.name) + ": " + number_text(line.x[i], 6) + ", " +
              number_text(line.y[i], 5) + "</title></circle>";
  }
  close();
  return out + dots + "</g>";
}

}  // namespace detail

/// The chart as one <svg> element. Sets `left_out` to the number of points that cannot be drawn. Throws gyre::error if a line's
/// x and y differ in length.
inline std::string svg(const line_chart& chart, drawing_size size, std::size_t& left_out) {
  detail::scale x(chart.x, 0), y(chart.y, 0.05);
  left_out = 0;
  for (const series& line : chart.lines) {
    gyre::require(line.x.size() == line.y.size(), "svg: series ", line.name, " has ", line.x.size(), " x and ", line.y.size(),
                  " y");
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (x.drawable(line.x[i]) && y.drawable(line.y[i]))
        x.include(line.x[i]), y.include(line.y[i]);
      else
        ++left_out;
    }
  }
  const bool empty = x.empty();
  x.finish(size.width / 80);
  y.finish(size.height / 55);
  const detail::plot_area area = detail::lay_out(x, y, size, !chart.x.label.empty(), !chart.y.label.empty());
  std::string out = detail::opening(size, chart.title);
  if (empty) return out + detail::text_at(size.width / 2, size.height / 2, "label middle", "no data") + "</svg>";
  out += detail::horizontal_grid(y, area) + detail::line_between(area.left, area.bottom, area.right, area.bottom, "axis");
  for (const auto& [value, text] : x.ticks()) {
    const double at = x.pixel(value);
    out += detail::line_between(at, area.bottom, at, area.bottom + 4, "axis") +
           detail::text_at(at, area.bottom + 17, "tick middle", text);
  }
  out += detail::labels(area, size, chart.x.label, chart.y.label);
  for (std::size_t i = 0; i < chart.lines.size(); ++i) out += detail::draw_series(chart.lines[i], i, x, y, area);
  return out + "</svg>";
}

/// Bars as one <svg> element; see above. Throws gyre::error if labels and values differ in number.
inline std::string svg(const bar_chart& chart, drawing_size size, std::size_t& left_out) {
  gyre::require(chart.labels.size() == chart.values.size(), "svg: ", chart.labels.size(), " labels for ", chart.values.size(),
                " bars");
  detail::scale x(axis{}, 0), y(axis{.from_zero = true}, 0.06);
  const double count = static_cast<double>(chart.values.size());
  left_out = 0;
  for (const double value : chart.values) {
    if (y.drawable(value))
      y.include(value);
    else
      ++left_out;
  }
  const bool empty = y.empty();
  x.include(0), x.include((std::max)(count, 1.0));
  x.finish(1);
  y.finish(size.height / 55);
  const detail::plot_area area = detail::lay_out(x, y, size, !chart.x_label.empty(), !chart.y_label.empty());
  std::string out = detail::opening(size, chart.title);
  if (empty) return out + detail::text_at(size.width / 2, size.height / 2, "label middle", "no data") + "</svg>";
  out += detail::horizontal_grid(y, area) + "<g class=\"s0\">";
  std::size_t longest = 1;
  for (const std::string& label : chart.labels) longest = (std::max)(longest, character_count(label));
  const double room = (area.right - area.left) / count;
  const auto every = static_cast<std::size_t>(std::ceil((6.6 * static_cast<double>(longest) + 8) / room));
  std::string names;
  for (std::size_t i = 0; i < chart.values.size(); ++i) {
    const double middle = x.pixel(static_cast<double>(i) + 0.5);
    if (i % every == 0) names += detail::text_at(middle, area.bottom + 17, "tick middle", chart.labels[i]);
    if (!y.drawable(chart.values[i])) continue;
    const double zero = y.pixel(0), end = y.pixel(chart.values[i]), width = (std::max)(room * 0.8, 1.0);
    out += "<rect class=\"bar\" x=\"" + detail::coordinate(middle - width / 2) + "\" y=\"" +
           detail::coordinate((std::min)(zero, end)) + "\" width=\"" + detail::coordinate(width) + "\" height=\"" +
           detail::coordinate(std::abs(zero - end)) + "\"><title>" + escaped(chart.labels[i]) + ": " +
           number_text(chart.values[i], 5) + "</title></rect>";
  }
  out += "</g>" + detail::line_between(area.left, y.pixel(0), area.right, y.pixel(0), "axis") + names;
  return out + detail::labels(area, size, chart.x_label, chart.y_label) + "</svg>";
}

}  // namespace examples
