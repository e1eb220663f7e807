// A named integer of somebody's sizes, and the values that a search may give it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// first, first + step, ... up to `last` at most: values for a hyper_parameter. Throws gyre::error for a step below 1, for
/// nothing between, and for more than 2^24 values.
inline std::vector<index> integer_range(index first, index last, index step = 1) {
  require(step >= 1, "integer_range: step is ", step, "; it must be at least 1");
  require(first <= last, "integer_range: there is nothing from ", first, " to ", last);
  const std::uint64_t between =
      (static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first)) / static_cast<std::uint64_t>(step);
  require(between < std::uint64_t{1} << 24, "integer_range: more than 2^24 values from ", first, " to ", last,
          "; take a larger step");
  std::vector<index> values(static_cast<std::size_t>(between) + 1, first);
  for (std::size_t i = 1; i < values.size(); ++i) values[i] = values[i - 1] + step;
  return values;
}

namespace detail {

/// What a callable that is given Sizes& lets one read and write.
template <class Access, class Sizes>
using accessed = std::invoke_result_t<const Access&, Sizes&>;
template <class T>
concept number_type = std::integral<T> && !std::same_as<T, bool> && sizeof(T) > 1;
template <class Access, class Sizes>
concept integer_access = std::invocable<const Access&, Sizes&> && std::is_lvalue_reference_v<accessed<Access, Sizes>> &&
    number_type<std::remove_reference_t<accessed<Access, Sizes>>>;

}  // namespace detail

/// A named integer of `Sizes` and the values that a search may give it.
template <class Sizes>
class hyper_parameter {
 public:
  /// `at` is a pointer to a member, or a callable that returns a reference to an integer of the Sizes& that it is given.
  /// `values` ascend. Throws gyre::error if they do not, if there are none, or if the integer cannot hold one.
  template <detail::integer_access<Sizes> Access>
  hyper_parameter(std::string name, Access at, std::vector<index> values) : name_(std::move(name)), values_(std::move(values)) {
    using integer = std::remove_reference_t<detail::accessed<Access, Sizes>>;
    require(!values_.empty(), "hyper_parameter ", name_, ": there are no values to choose from");
    for (std::size_t i = 0; i < values_.size(); ++i) {
      require(i == 0 || values_[i - 1] < values_[i], "hyper_parameter ", name_, ": values must ascend, but ", values_[i],
              " follows ", i == 0 ? values_[i] : values_[i - 1]);
      require(std::in_range<integer>(values_[i]), "hyper_parameter ", name_, ": its integer cannot hold ", values_[i]);
    }
    get_ = [at](Sizes all) { return static_cast<index>(std::invoke(at, all)); };
    set_ = [at](Sizes& all, index to) { std::invoke(at, all) = static_cast<integer>(to); };
  }

  const std::string& name() const { return name_; }
  const std::vector<index>& values() const { return values_; }
  index get(const Sizes& sizes) const { return get_(sizes); }
  void set(Sizes& sizes, index value) const { set_(sizes, value); }

 private:
  std::string name_;
  std::vector<index> values_;
  std::function<index(Sizes)> get_;
  std::function<void(Sizes&, index)> set_;
};
template <class Sizes, class Integer>
hyper_parameter(std::string, Integer Sizes::*, std::vector<index>) -> hyper_parameter<Sizes>;

GYRE_END
