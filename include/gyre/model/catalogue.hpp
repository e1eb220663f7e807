// A catalogue: models compiled into a program, chosen by name at run time.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/model/model.hpp>

GYRE_BEGIN

/// A name as a template argument.
template <std::size_t Size>
struct fixed_name {
  std::array<char, Size> text{};
  consteval fixed_name(const char (&name)[Size]) { std::copy_n(name, Size, text.begin()); }
  constexpr std::string_view view() const { return {text.data(), Size - 1}; }
  constexpr bool operator==(const fixed_name&) const = default;
};

/// One model of a catalogue: `entry<"huginn-small", Small>`.
template <fixed_name Name, architecture A>
struct entry {
  using model = A;
  static constexpr std::string_view name = Name.view();
};

/// `catalogue<entry<"a", A>, entry<"b", B>>::visit(name, f)` calls `f.template operator()<A>()` of the model so named: the one
/// place where a run-time choice becomes a type.
template <class... Entries>
struct catalogue {
  static std::vector<std::string_view> names() { return {Entries::name...}; }

  /// Throws gyre::error that lists the known names when `name` is none of them. All calls of f must return the same type.
  template <class F>
  static auto visit(std::string_view name, F&& f) {
    return find<F, Entries...>(name, f);
  }

 private:
  template <class F, class First, class... Rest>
  static auto find(std::string_view name, F& f) -> decltype(f.template operator()<typename First::model>()) {
    if (name == First::name) return f.template operator()<typename First::model>();
    if constexpr (sizeof...(Rest) > 0) {
      return find<F, Rest...>(name, f);
    } else {
      std::string known;
      for (std::string_view n : names()) known += (known.empty() ? "" : ", ") + std::string(n);
      fail("catalogue: no model is named '", name, "'; compiled in are: ", known);
    }
  }
};

GYRE_END
