// Draws tables of values as shades of one colour: more of it on the page's own ground, so that light and dark both read well.
#pragma once

#include "svg.hpp"

namespace examples {

namespace detail {

inline std::string cell(double left, double top, double width, double height, double share, const std::string& told) {
  return "<rect class=\"cell\" x=\"" + coordinate(left) + "\" y=\"" + coordinate(top) + "\" width=\"" + coordinate(width) +
         "\" height=\"" + coordinate(height) + "\" fill-opacity=\"" + fixed_text(share, 3) + "\"><title>" + escaped(told) +
         "</title></rect>";
}

/// From 0 to the largest value, in the upper right corner.
inline std::string shade_key(const plot_area& area, double most) {
  constexpr int shades = 5;
  constexpr double width = 14, top = 5;
  const std::string end = number_text(most, 3);
  double at = area.right - 6.6 * static_cast<double>(character_count(end)) - 4 - shades * width;
  std::string out = text_at(at - 4, 14, "tick end", "0");
  for (int i = 0; i < shades; ++i, at += width) {
    const double share = static_cast<double>(i) / (shades - 1);
    out += cell(at, top, width, 11, share, number_text(share * most, 3));
  }
  return out + text_at(area.right, 14, "tick end", end);
}

}  // namespace detail

/// The map as one <svg> element. Sets `left_out` to the number of values that cannot be drawn. Throws gyre::error if values and
/// labels differ in number.
inline std::string svg(const heat_map& map, drawing_size size, std::size_t& left_out) {
  gyre::require(map.values.size() == map.rows.size(), "svg: ", map.values.size(), " rows of values for ", map.rows.size(),
                " labels");
  const auto drawable = [](double value) { return value >= 0 && value < detail::drawable_size; };
  double most = -1;
  std::size_t longest_row = 1, longest_column = 1;
  left_out = 0;
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    gyre::require(map.values[i].size() == map.columns.size(), "svg: row ", map.rows[i], " has ", map.values[i].size(),
                  " values for ", map.columns.size(), " columns");
    longest_row = (std::max)(longest_row, character_count(map.rows[i]));
    for (const double value : map.values[i]) {
      if (drawable(value))
        most = (std::max)(most, value);
      else
        ++left_out;
    }
  }
  for (const std::string& label : map.columns) longest_column = (std::max)(longest_column, character_count(label));
  std::string out = detail::opening(size, map.title);
  if (most < 0) return out + detail::text_at(size.width / 2, size.height / 2, "label middle", "no data") + "</svg>";

  const detail::plot_area area{(std::min)(16 + 6.6 * static_cast<double>(longest_row), size.width / 2), size.width - 14, 24,
                               size.height - (map.x_label.empty() ? 26 : 46)};
  const double width = (area.right - area.left) / static_cast<double>(map.columns.size()),
               height = (area.bottom - area.top) / static_cast<double>(map.rows.size());
  out += "<g class=\"s0\">";
  for (std::size_t i = 0; i < map.rows.size(); ++i)
    for (std::size_t j = 0; j < map.columns.size(); ++j)
      if (const double value = map.values[i][j]; drawable(value))
        out +=
            detail::cell(area.left + static_cast<double>(j) * width, area.top + static_cast<double>(i) * height, width, height,
                         most > 0 ? value / most : 0, map.rows[i] + ", " + map.columns[j] + ": " + number_text(value, 4));
  out += detail::shade_key(area, most) + "</g><rect class=\"frame\" x=\"" + detail::coordinate(area.left) + "\" y=\"" +
         detail::coordinate(area.top) + "\" width=\"" + detail::coordinate(area.right - area.left) + "\" height=\"" +
         detail::coordinate(area.bottom - area.top) + "\"/>";

  const auto every = [](double needed, double room) {
    return static_cast<std::size_t>((std::max)(1.0, std::ceil(needed / room)));
  };
  const std::size_t every_row = every(14, height), every_column = every(6.6 * static_cast<double>(longest_column) + 8, width);
  for (std::size_t i = 0; i < map.rows.size(); i += every_row)
    out += detail::text_at(area.left - 8, area.top + (static_cast<double>(i) + 0.5) * height + 4, "tick end", map.rows[i]);
  for (std::size_t j = 0; j < map.columns.size(); j += every_column)
    out += detail::text_at(area.left + (static_cast<double>(j) + 0.5) * width, area.bottom + 17, "tick middle", map.columns[j]);
  return out + detail::labels(area, size, map.x_label, map.y_label) + "</svg>";
}

}  // namespace examples
