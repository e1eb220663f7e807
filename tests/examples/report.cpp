// Reports: what is written is sound HTML, whatever the texts and numbers are.
#include "../../examples/support/report.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <sstream>

namespace {

using examples::bar_chart;
using examples::drawing_size;
using examples::line_chart;
using examples::series;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// The page's tags in order, with the names but not the values of their attributes. Throws where markup is not well-formed.
std::vector<std::string> tags_of(std::string_view page) {
  const std::set<std::string> leaves{"meta", "!doctype html"};
  std::vector<std::string> tags, open;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at)) {
    std::string tag;
    bool quoted = false;
    for (++at;; ++at) {
      if (at == page.size()) throw std::runtime_error("a tag does not end");
      const char c = page[at];
      if (c == '"')
        quoted = !quoted;
      else if (!quoted && c == '>')
        break;
      else if (!quoted && c == '<')
        throw std::runtime_error("< within a tag");
      else if (!quoted)
        tag += c;
    }
    tags.push_back(tag);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.back() == '/' || leaves.contains(name) || leaves.contains(tag)) continue;
    if (name.front() != '/') {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != name) throw std::runtime_error("<" + name + "> does not close anything");
      open.pop_back();
    }
  }
  if (!open.empty()) throw std::runtime_error("<" + open.back() + "> is not closed");
  return tags;
}

// All numbers of attributes that hold coordinates: pairs of a path, centres of circles, places of texts.
std::vector<std::array<double, 2>> points_of(const std::string& drawing) {
  std::vector<std::array<double, 2>> points;
  const auto number = [&](std::size_t& at) {
    std::size_t used = 0;
    const double value = std::stod(drawing.substr(at, 30), &used);
    at += used;
    return value;
  };
  for (std::size_t at = 0; (at = drawing.find(" d=\"M", at)) != std::string::npos;) {
    at += 4;
    while (drawing[at] == 'M' || drawing[at] == 'L') {
      const double x = number(++at);
      points.push_back({x, number(at)});
    }
    REQUIRE(drawing[at] == '"');
  }
  for (const auto& [first, second] : {std::pair{" cx=\"", " cy=\""}, std::pair{" x=\"", " y=\""}})
    for (std::size_t at = 0; (at = drawing.find(first, at)) != std::string::npos;) {
      at += std::string_view(first).size();
      const double x = number(at);
      at = drawing.find(second, at) + std::string_view(second).size();
      points.push_back({x, number(at)});
    }
  return points;
}

template <class Chart>
std::string drawn(const Chart& chart, std::size_t expected_left_out, drawing_size size = {}) {
  std::size_t left_out = 0;
  const std::string drawing = svg(chart, size, left_out);
  CHECK(left_out == expected_left_out);
  CHECK_NOTHROW(tags_of(drawing));
  for (const auto& [x, y] : points_of(drawing)) {
    INFO(x << ", " << y << " in " << drawing);
    CHECK((x >= 0 && x <= size.width && y >= 0 && y <= size.height));  // false for NaN
  }
  return drawing;
}

std::size_t lines_in(const std::string& drawing) { return count_of(drawing, "class=\"line"); }
std::size_t dots_in(const std::string& drawing) { return count_of(drawing, "class=\"dot\""); }

// A page that has `text` wherever a text can stand.
examples::report page_of(const std::string& text) {
  const line_chart lines{.title = text,
                         .x = {.label = text},
                         .y = {.label = text},
                         .lines = {{text, {1, 2}, {1, 2}, true}, {text, {1, 2}, {3, 4}}},
                         .note = text};
  const bar_chart bars{.title = text, .x_label = text, .y_label = text, .labels = {text, text}, .values = {1, 2}, .note = text};
  const examples::heat_map map{.title = text,
                               .x_label = text,
                               .y_label = text,
                               .columns = {text, text},
                               .rows = {text},
                               .values = {{1, 2}},
                               .note = text};
  examples::report page{.title = text, .subtitle = text, .footer = text};
  page.sections.push_back({text,
                           text,
                           {examples::paragraph{text}, examples::key_figures{{{text, text}}}, lines, bars, map,
                            examples::table{text, {text}, {{text, text}}, text}, examples::text_sample{text, text, text}}});
  return page;
}

}  // namespace

TEST_CASE("report: text is escaped, broken text is shown as broken", "[report]") {
  CHECK(examples::escaped("a < b && c > \"d\" 'e'") == "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
  CHECK(examples::escaped("\xC2\xA3 100,\n\tna\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "\xC2\xA3 100,\n\tna\xC3\xAFve \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string broken = "\xEF\xBF\xBD";
  CHECK(examples::escaped(std::string("a\0b", 3)) == "a" + broken + "b");
  CHECK(examples::escaped("\x1B[2J\x7F\r") == broken + "[2J" + broken + broken);
  CHECK(examples::escaped("\xC2\x85") == broken);                     // a control character of two bytes
  CHECK(examples::escaped("\xFF\xC3") == broken + broken);            // no UTF-8; cut off
  CHECK(examples::escaped("\xC0\xBC") == broken + broken);            // an overlong <
  CHECK(examples::escaped("\xE2\x82<") == broken + broken + "&lt;");  // a cut character hides no markup
}

TEST_CASE("report: numbers read well in every size", "[report]") {
  const auto number = [](double value) { return examples::number_text(value); };
  CHECK(number(0) == "0");
  CHECK(number(2.45) == "2.45");
  CHECK(number(2.397654) == "2.398");
  CHECK(number(-0.5) ==
        "\xE2\x88\x92"
        "0.5");
  CHECK(number(694000) == "694,000");
  CHECK(number(123456789) == "123,456,789");
  CHECK(number(1000) == "1,000");
  CHECK(number(999.99) == "1,000");
  CHECK(number(0.00001) == "1e-5");
  CHECK(number(1e12) == "1e12");
  CHECK(number(1e-120) == "1e-120");
  CHECK(number(not_a_number) == "NaN");
  CHECK(number(infinity) == "\xE2\x88\x9E");
  CHECK(number(-infinity) == "\xE2\x88\x92\xE2\x88\x9E");
  CHECK(examples::fixed_text(2.4, 2) == "2.40");
  CHECK(examples::fixed_text(-1234.5, 1) ==
        "\xE2\x88\x92"
        "1,234.5");
  CHECK(examples::fixed_text(-0.001, 2) == "0.00");
  CHECK(examples::fixed_text(1e300, 0).size() > 300);
}

TEST_CASE("report: no text becomes markup, wherever it stands", "[report]") {
  CHECK(tags_of(html(page_of("x"))).size() > 60);
  for (const std::string text : {"</style></title><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onload='x",
                                 "]]><!-- -->", "&lt;b&gt;", "\xFF<\xE2\x82<b>", "a\nb"}) {
    INFO(text);
    const std::string page = html(page_of(text));
    const bool same = tags_of(page) == tags_of(html(page_of(std::string(text.size(), 'x'))));
    CHECK(same);
    CHECK(count_of(page, "<script") == 0);
    CHECK(count_of(page, "<b>") == 1);  // the prompt's, ours
  }
}

TEST_CASE("report: the page needs nothing from outside and has no program in it", "[report]") {
  const std::string page = html(page_of("x"));
  CHECK(count_of(page, "default-src 'none'; style-src 'unsafe-inline'") == 1);
  for (const char* word :
       {"http:", "https:", "//", "src=", "href", "url(", "@import", "<script", "<link", "<iframe", "javascript"})
    CHECK(count_of(page, word) == 0);
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(count_of(page, "prefers-color-scheme: dark") == 1);
}

TEST_CASE("report: values that are no numbers interrupt a line and are counted", "[report]") {
  const series broken{"loss", {0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, not_a_number, 3, 4, infinity, -infinity, 1e200}};
  const std::string drawing = drawn(line_chart{.title = "t", .lines = {broken}}, 4);
  CHECK(lines_in(drawing) == 2);
  CHECK(dots_in(drawing) == 0);
  CHECK(count_of(drawing, "NaN") == 0);
  const std::string page =
      examples::html(examples::report{.sections = {{"h", "", {line_chart{.title = "t", .lines = {broken}}}}}});
  CHECK(count_of(page, "4 values cannot be drawn and are left out.") == 1);

  const std::string alone =
      drawn(line_chart{.title = "t", .lines = {{"loss", {0, 1, 2, 3, 4}, {1, not_a_number, 2, not_a_number, 3}}}}, 2);
  CHECK(lines_in(alone) == 0);
  CHECK(dots_in(alone) == 3);  // a point without neighbours is still seen
}

TEST_CASE("report: nothing to draw says so", "[report]") {
  CHECK(count_of(drawn(line_chart{.title = "t"}, 0), ">no data<") == 1);
  CHECK(count_of(drawn(line_chart{.title = "t", .lines = {{"a", {}, {}}, {"b", {not_a_number}, {1}}}}, 1), ">no data<") == 1);
  CHECK(count_of(drawn(bar_chart{.title = "t"}, 0), ">no data<") == 1);
  CHECK(count_of(drawn(bar_chart{.title = "t", .labels = {"a"}, .values = {not_a_number}}, 1), ">no data<") == 1);
  const std::string some = drawn(line_chart{.title = "t", .lines = {{"a", {}, {}}, {"b", {1, 2}, {1, 2}}}}, 0);
  CHECK(count_of(some, ">no data<") == 0);
  CHECK(lines_in(some) == 1);
  CHECK_NOTHROW(tags_of(examples::html(examples::report{})));
}

TEST_CASE("report: one point is a dot in the middle", "[report]") {
  for (const bool logarithmic : {false, true}) {
    for (const double value : {3.0, 1e-30, 1e60}) {
      const line_chart chart{.title = "t",
                             .x = {.logarithmic = logarithmic},
                             .y = {.logarithmic = logarithmic},
                             .lines = {{"a", {value}, {value}}}};
      const std::string drawing = drawn(chart, 0);
      CHECK(dots_in(drawing) == 1);
      CHECK(count_of(drawing, "class=\"grid\"") >= 2);  // ticks on both sides
    }
  }
  CHECK(dots_in(drawn(line_chart{.title = "t", .lines = {{"a", {0}, {0}}}}, 0)) == 1);
}

TEST_CASE("report: any range has ticks that differ and stay within it", "[report]") {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-40, 40), unit(-1, 1);
  for (int trial = 0; trial < 4000; ++trial) {
    const bool logarithmic = trial % 2 == 1;
    const double centre = unit(random) * std::pow(10, exponent(random)), width = std::pow(10, exponent(random));
    double low = centre, high = centre + width;
    if (logarithmic) low = std::abs(low), high = low * (1 + std::pow(10, exponent(random) / 4));
    examples::axis about{.logarithmic = logarithmic, .from_zero = trial % 3 == 0};
    examples::detail::scale scale(about, 0.05);
    scale.include(low), scale.include(high);
    scale.finish(6);
    scale.set_pixels(0, 1000);
    INFO("from " << low << " to " << high << (logarithmic ? ", logarithmic" : ""));
    std::set<std::string> texts;
    double last = -1;
    for (const auto& [value, text] : scale.ticks()) {
      CHECK(scale.pixel(value) >= -0.01);
      CHECK(scale.pixel(value) <= 1000.01);
      CHECK(scale.pixel(value) > last);
      CHECK(texts.insert(text).second);
      last = scale.pixel(value);
    }
    CHECK(texts.size() >= 2);
    CHECK(texts.size() <= 16);
  }
}

TEST_CASE("report: a logarithmic axis spaces ratios evenly and leaves out what is not positive", "[report]") {
  const std::vector<double> r{1, 2, 4, 8, 16, 32};
  const line_chart chart{.title = "t",
                         .x = {.logarithmic = true, .ticks = r},
                         .y = {.logarithmic = true},
                         .lines = {{"a", r, {1e-3, 1e-2, 0, -1, 1, 10}, true}}};
  const std::string drawing = drawn(chart, 2);
  examples::detail::scale scale(chart.x, 0);
  scale.include(1), scale.include(32);
  scale.finish(6);
  scale.set_pixels(0, 500);
  REQUIRE(scale.ticks().size() == r.size());
  for (std::size_t i = 0; i < r.size(); ++i) {
    CHECK(scale.pixel(r[i]) == Approx(100.0 * static_cast<double>(i)).margin(1e-9));
    CHECK(count_of(drawing, ">" + examples::number_text(r[i]) + "</text>") >= 1);
  }
}

TEST_CASE("report: a long line keeps its peaks and not its size", "[report]") {
  series line{.name = "loss"};
  for (int i = 0; i < 200'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i % 7 == 0 ? 0.4 : 0.5);
  }
  line.y[123'456] = 9;
  line.y[150'001] = -9;
  const line_chart chart{.title = "t", .lines = {line}};
  const std::string drawing = drawn(chart, 0);
  CHECK(drawing.size() < 100'000);
  double top = infinity, bottom = -infinity;
  const std::size_t path = drawing.find("class=\"line");
  for (const auto& [x, y] : points_of(drawing.substr(path - 10, drawing.find("/>", path) - path + 12)))
    top = (std::min)(top, y), bottom = (std::max)(bottom, y);
  examples::detail::scale y(chart.y, 0.05);
  y.include(-9), y.include(9);
  y.finish(6);
  y.set_pixels(304, 12);
  CHECK(top == Approx(y.pixel(9)).margin(0.06));  // coordinates have one digit after the point
  CHECK(bottom == Approx(y.pixel(-9)).margin(0.06));
}

TEST_CASE("report: extreme values stay on the paper", "[report]") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> exponent(-300, 99), unit(-1, 1);
  for (int trial = 0; trial < 50; ++trial) {
    series line{.name = "a", .markers = trial % 2 == 0};
    bar_chart bars{.title = "t"};
    for (int i = 0; i < 20; ++i) {
      line.x.push_back(unit(random) * std::pow(10, exponent(random)));
      line.y.push_back(unit(random) * std::pow(10, exponent(random)));
      bars.labels.push_back(std::to_string(i));
      bars.values.push_back(line.y.back());
    }
    drawn(line_chart{.title = "t", .lines = {line}}, 0);
    drawn(bars, 0);
  }
}

TEST_CASE("report: bars stand on zero, one for each value that can be drawn", "[report]") {
  const bar_chart chart{.title = "t", .labels = {"a", "b", "c", "d"}, .values = {1, -2, not_a_number, 0}};
  const std::string drawing = drawn(chart, 1);
  CHECK(count_of(drawing, "<rect") == 3);
  CHECK(count_of(drawing,
                 "<title>b: \xE2\x88\x92"
                 "2</title>") == 1);
  bar_chart many{.title = "t"};
  for (int i = 0; i < 300; ++i) many.labels.push_back("step " + std::to_string(i)), many.values.push_back(i);
  CHECK(count_of(drawn(many, 0), "tick middle") < 12);  // labels that would collide are left out
}

TEST_CASE("report: a heat map has a cell for each value that can be drawn, as dark as its share of the largest", "[report]") {
  const examples::heat_map map{.title = "t",
                               .x_label = "experts",
                               .y_label = "depth",
                               .columns = {"a", "b", "c"},
                               .rows = {"first", "second"},
                               .values = {{4, 1, 0}, {not_a_number, 2, -1}}};
  const std::string drawing = drawn(map, 2);
  CHECK(count_of(drawing, "class=\"cell\"") == 4 + 5);  // and the key
  CHECK(count_of(drawing, "fill-opacity=\"1.000\"><title>first, a: 4</title>") == 1);
  CHECK(count_of(drawing, "fill-opacity=\"0.250\"><title>first, b: 1</title>") == 1);
  CHECK(count_of(drawing, "fill-opacity=\"0.000\"><title>first, c: 0</title>") == 1);
  CHECK(count_of(drawing, "fill-opacity=\"0.500\"><title>second, b: 2</title>") == 1);
  for (const char* label : {">a<", ">b<", ">c<", ">first<", ">second<", ">experts<", ">depth<", ">0<", ">4<"})
    CHECK(count_of(drawing, label + std::string("/text>")) == 1);

  // Cells lie beside and below each other, without gaps.
  std::vector<std::array<double, 4>> cells;
  for (std::size_t at = 0; (at = drawing.find("<rect class=\"cell\"", at)) != std::string::npos; ++at) {
    std::array<double, 4> cell{};
    REQUIRE(std::sscanf(drawing.c_str() + at, "<rect class=\"cell\" x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &cell[0],
                        &cell[1], &cell[2], &cell[3]) == 4);
    cells.push_back(cell);
  }
  REQUIRE(cells.size() == 9);
  CHECK(cells[1][0] == Approx(cells[0][0] + cells[0][2]).margin(0.11));
  CHECK(cells[2][0] == Approx(cells[1][0] + cells[1][2]).margin(0.11));
  CHECK(cells[3][0] == cells[1][0]);
  CHECK(cells[3][1] == Approx(cells[1][1] + cells[1][3]).margin(0.11));

  examples::heat_map many{.title = "t", .columns = {}, .rows = {"0"}, .values = {{}}};
  for (int i = 0; i < 300; ++i) many.columns.push_back("expert " + std::to_string(i)), many.values[0].push_back(i);
  CHECK(count_of(drawn(many, 0), "tick middle") < 12);  // labels that would collide are left out
  CHECK(count_of(drawn(examples::heat_map{.title = "t", .columns = {"a"}, .rows = {"b"}, .values = {{0}}}, 0),
                 "class=\"cell\"") == 6);
  CHECK(count_of(drawn(examples::heat_map{.title = "t"}, 0), ">no data<") == 1);
  CHECK(count_of(drawn(examples::heat_map{.title = "t", .columns = {"a"}, .rows = {"b"}, .values = {{not_a_number}}}, 1),
                 ">no data<") == 1);
}

TEST_CASE("report: columns that do not fit together are refused with their lengths", "[report]") {
  std::size_t left_out = 0;
  CHECK_THROWS_WITH(svg(line_chart{.title = "t", .lines = {{"loss", {1, 2, 3}, {1}}}}, {}, left_out),
                    Catch::Contains("loss has 3 x and 1 y"));
  CHECK_THROWS_WITH(svg(bar_chart{.title = "t", .labels = {"a"}, .values = {}}, {}, left_out),
                    Catch::Contains("1 labels for 0 bars"));
  CHECK_THROWS_WITH(svg(examples::heat_map{.title = "t", .columns = {"a"}, .rows = {"b", "c"}, .values = {{1}}}, {}, left_out),
                    Catch::Contains("1 rows of values for 2 labels"));
  CHECK_THROWS_WITH(svg(examples::heat_map{.title = "t", .columns = {"a"}, .rows = {"b"}, .values = {{1, 2}}}, {}, left_out),
                    Catch::Contains("row b has 2 values for 1 columns"));
}

TEST_CASE("report: the moving average starts at once and skips what is no number", "[report]") {
  CHECK(examples::moving_average({2, 4, 6, 8}, 2) == std::vector<double>{2, 3, 5, 7});
  CHECK(examples::moving_average({2, not_a_number, 6}, 2) == std::vector<double>{2, 2, 6});
  CHECK(std::isnan(examples::moving_average({not_a_number, 1}, 3)[0]));
  CHECK(examples::moving_average({}, 3).empty());
}

TEST_CASE("report: numbers of a table stand to the right", "[report]") {
  const std::string page = examples::html(examples::report{.sections = {{"h",
                                                                         "",
                                                                         {examples::table{"",
                                                                                          {"r", "who"},
                                                                                          {{"8", "xz -9e"},
                                                                                           {"\xE2\x88\x92"
                                                                                            "1",
                                                                                            "-"}}}}}}});
  CHECK(count_of(page, "<th class=\"number\">r</th><th>who</th>") == 1);
  CHECK(count_of(page, "<td class=\"number\">8</td><td>xz -9e</td>") == 1);
  CHECK(count_of(page, "<td>-</td>") == 1);
}

TEST_CASE("report: a file appears whole or not at all", "[report]") {
  const auto folder = std::filesystem::temp_directory_path() / ("gyre_report_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "report.html";
  const examples::report page = page_of("x");
  examples::write_report(page, path);
  examples::write_report(page, path);  // replaces
  std::ifstream in(path, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == html(page));
  CHECK_THROWS_WITH(examples::write_report(page, folder / "no" / "report.html"), Catch::Contains("no/report.html"));
  std::filesystem::create_directory(folder / "taken");  // a folder in the file's place
  std::filesystem::create_directory(folder / "taken" / "inside");
  CHECK_THROWS_AS(examples::write_report(page, folder / "taken"), gyre::error);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 2);  // nothing partial is left
  std::filesystem::remove_all(folder);
}
