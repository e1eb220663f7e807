// Charts as data: what a program hands over, and what svg.hpp draws.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace examples {

/// One line of a chart. Points that cannot be drawn (not finite, or not positive on a logarithmic axis) interrupt it; a note
/// below the chart counts them.
struct series {
  std::string name = {};
  std::vector<double> x = {}, y = {};  // of the same length
  bool markers = false;                // a dot at each point
  bool faint = false;                  // thin and pale: raw values behind their average
};

struct axis {
  std::string label = {};
  bool logarithmic = false;
  bool from_zero = false;          // the range includes 0; of no effect on a logarithmic axis
  std::vector<double> ticks = {};  // where to put ticks; empty: chosen
};

struct line_chart {
  std::string title = {};
  axis x = {}, y = {};
  std::vector<series> lines = {};
  std::string note = {};  // below the chart
};

/// Bars side by side from zero; a histogram if the labels are its bins.
struct bar_chart {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> labels = {};
  std::vector<double> values = {};  // as many as labels
  std::string note = {};
};

/// A table of values as shades, from 0 to the largest; what is negative or not finite cannot be drawn.
struct heat_map {
  std::string title = {}, x_label = {}, y_label = {};
  std::vector<std::string> columns = {}, rows = {};  // their labels
  std::vector<std::vector<double>> values = {};      // (rows, columns); the first row is at the top
  std::string note = {};
};

/// The mean of each value and of those before it, `window` in all at most. Values that are not finite do not count; where none
/// counts the mean is NaN.
inline std::vector<double> moving_average(const std::vector<double>& values, std::size_t window) {
  std::vector<double> means;
  means.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t j = i + 1 - (std::min)(i + 1, window); j <= i; ++j)
      if (std::isfinite(values[j])) sum += values[j], ++count;
    means.push_back(count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

}  // namespace examples
