// From values to pixels: the range, the mapping and the ticks of one axis.
#pragma once

#include <utility>

#include "charts.hpp"
#include "html.hpp"

namespace examples::detail {

/// Beyond this, differences of two values overflow or mean nothing on paper.
inline constexpr double drawable_size = 1e100;

/// One axis: which values it shows, where they lie, what its ticks say.
class scale {
 public:
  /// `pad` widens the range by that share at both ends.
  scale(const axis& a, double pad) : about_(a), pad_(pad) {}

  bool drawable(double value) const {
    return std::abs(value) < drawable_size && (!about_.logarithmic || value > 1 / drawable_size);
  }
  void include(double value) {
    const double at = place(value);
    low_ = empty_ ? at : (std::min)(low_, at), high_ = empty_ ? at : (std::max)(high_, at);
    empty_ = false;
  }
  bool empty() const { return empty_; }

  /// Call after the last include(): fixes the range and chooses the ticks.
  void finish(double most_ticks) {
    if (empty_) low_ = 0, high_ = 1;
    if (about_.from_zero && !about_.logarithmic) low_ = (std::min)(low_, 0.0), high_ = (std::max)(high_, 0.0);
    const double size = (std::max)(std::abs(low_), std::abs(high_));
    if (high_ - low_ <= 1e-9 * size || high_ <= low_) {  // one value: some room around it
      const double room = about_.logarithmic ? 0.5 : size > 0 ? 0.1 * size : 1;
      low_ -= room, high_ += room;
    } else {
      const double room = pad_ * (high_ - low_);
      const bool zero_low = about_.from_zero && low_ == 0, zero_high = about_.from_zero && high_ == 0;
      low_ -= zero_low ? 0 : room, high_ += zero_high ? 0 : room;
    }
    choose_ticks(most_ticks);
  }
  void set_pixels(double at_low, double at_high) { pixel_low_ = at_low, pixel_high_ = at_high; }

  double pixel(double value) const { return pixel_low_ + (place(value) - low_) / (high_ - low_) * (pixel_high_ - pixel_low_); }
  const std::vector<std::pair<double, std::string>>& ticks() const { return ticks_; }
  double longest_tick() const {
    std::size_t most = 0;
    for (const auto& tick : ticks_) most = (std::max)(most, character_count(tick.second));
    return static_cast<double>(most);
  }

 private:
  double place(double value) const { return about_.logarithmic ? std::log10(value) : value; }
  bool shown(double value) const {
    const double slack = 1e-9 * (high_ - low_);
    return drawable(value) && place(value) >= low_ - slack && place(value) <= high_ + slack;
  }
  void choose_ticks(double most) {
    ticks_.clear();
    for (const double value : about_.ticks)
      if (shown(value)) ticks_.emplace_back(value, number_text(value));
    if (ticks_.empty() && about_.logarithmic) logarithmic_ticks(most);
    if (ticks_.size() < 2 && about_.ticks.empty()) linear_ticks(most);
  }
  void logarithmic_ticks(double most) {
    const double decades = high_ - low_;
    const int every = (std::max)(1, static_cast<int>(std::ceil(decades / most)));
    const std::vector<double> mantissas = decades > most / 2 ? std::vector<double>{1} : std::vector<double>{1, 2, 5};
    for (int exponent = static_cast<int>(std::floor(low_)); exponent <= high_; exponent += every)
      for (const double mantissa : mantissas)
        if (const double value = mantissa * std::pow(10.0, exponent); shown(value))
          ticks_.emplace_back(value, number_text(value));
  }
  void linear_ticks(double most) {
    ticks_.clear();
    const double low = about_.logarithmic ? std::pow(10.0, low_) : low_,
                 high = about_.logarithmic ? std::pow(10.0, high_) : high_;
    const double rough = (high - low) / most, power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= rough * (1 - 1e-9)) {
        step = factor * power;
        break;
      }
    const double first = std::ceil(low / step - 1e-9);
    const double size = (std::max)(std::abs(low), std::abs(high));
    const int decimals = static_cast<int>((std::max)(0.0, -std::floor(std::log10(step) + 1e-9)));
    const int digits = static_cast<int>(std::log10(size / step)) + 2;  // enough to tell neighbours apart
    const bool fixed = size >= 1e-4 && size < 1e9;
    for (int i = 0; i <= 2 * most; ++i)
      if (const double value = (first + i) * step; shown(value))
        ticks_.emplace_back(value, fixed ? fixed_text(value, decimals) : number_text(value, digits));
  }

  axis about_;
  double pad_, low_ = 0, high_ = 1, pixel_low_ = 0, pixel_high_ = 1;
  bool empty_ = true;
  std::vector<std::pair<double, std::string>> ticks_;
};

}  // namespace examples::detail
