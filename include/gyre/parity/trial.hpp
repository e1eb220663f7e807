// A trial: an operation, a scalar type, sizes and a seed. Everything that a call is made of follows from it.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/operations.hpp>

GYRE_BEGIN
namespace parity {

/// A number that a trial draws: a size, or a variant of the call. Values ascend; a failure shrinks towards the first.
struct dimension {
  std::string_view name;
  std::array<index, 8> values{};
  std::size_t count = 0;
  constexpr dimension(std::string_view name_, std::initializer_list<index> list) : name(name_) {
    for (const index v : list) values[count++] = v;
  }
  constexpr index least() const { return values[0]; }
};

/// Of every operation: how operands lie, and which number that is not finite stands in them.
inline constexpr dimension gap{"gap", {0, 3}}, offset{"offset", {0, 1}}, special{"special", {0, 1, 2, 3}};

/// Dimensions that several operations have.
namespace sizes {
inline constexpr dimension sequences{"sequences", {0, 1, 2, 5}};
inline constexpr dimension length{"length", {0, 1, 7, 33}};
inline constexpr dimension kv_heads{"kv_heads", {1, 2, 5}};
inline constexpr dimension sharing{"sharing", {1, 2, 5}};
inline constexpr dimension width{"width", {1, 2, 8, 20, 33}};
inline constexpr dimension past{"past", {0, 1, 7}};
inline constexpr dimension cached_cols{"cols", {1, 7, 40}};
inline constexpr dimension cursor{"cursor", {0, 3}};
inline constexpr dimension rows{"rows", {0, 1, 7, 33, 129}};
inline constexpr dimension heads{"heads", {1, 5}};
inline constexpr dimension pairs{"pairs", {1, 2, 4, 20, 33}};
inline constexpr dimension half_split{"half_split", {0, 1}};
inline constexpr dimension slots{"slots", {0, 1, 2, 7}};
inline constexpr dimension experts{"experts", {1, 2, 7, 40, 257}};
inline constexpr dimension active{"active", {1, 2, 3, 16}};
inline constexpr dimension bias{"bias", {0, 1}};
inline constexpr dimension features{"cols", {1, 2, 7, 40, 64, 129, 257}};
inline constexpr dimension in_place{"in_place", {0, 1}};
inline constexpr dimension cols{"cols", {0, 1, 7, 40, 129}};
inline constexpr dimension vocabulary{"vocabulary", {1, 7, 257}};
inline constexpr dimension gain{"gain", {0, 1}};
inline constexpr dimension spread{"spread", {1, 60}};
inline constexpr dimension out{"out", {0, 1, 7, 40, 129}};
inline constexpr dimension in{"in", {0, 1, 7, 40, 129}};
inline constexpr dimension accumulate{"accumulate", {0, 1}};
inline constexpr dimension groups{"groups", {1, 2, 5, 9}};
inline constexpr dimension count{"count", {0, 1, 7, 17, 1000, 4099}};
}  // namespace sizes

struct trial {
  operation of = operation::count;
  std::string type;  // float, double, bf16
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, index>> sizes;

  /// 0 for a size that the trial does not have.
  index operator[](std::string_view name) const {
    for (const auto& [key, value] : sizes)
      if (key == name) return value;
    return 0;
  }
  void set(std::string_view name, index value) {
    for (auto& [key, old] : sizes)
      if (key == name) {
        old = value;
        return;
      }
    sizes.emplace_back(name, value);
  }
  /// As arguments of a command line, which read_trial reads.
  std::string text() const {
    std::string out = "--operation " +
                      std::string(of < operation::count ? operation_names[static_cast<std::size_t>(of)] : "none") + " --type " +
                      type + " --seed " + std::to_string(seed) + " --sizes ";
    for (std::size_t n = 0; n < sizes.size(); ++n)
      out += (n > 0 ? "," : "") + sizes[n].first + "=" + std::to_string(sizes[n].second);
    return out;
  }
};

namespace detail {

template <class N>
N number(std::string_view what, std::string_view text) {
  N x{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  require(problem == std::errc() && end == text.data() + text.size(), "parity: ", what, " is ", text,
          "; a whole number is needed");
  return x;
}

/// Bits of (seed, number): a trial's choices.
inline std::uint64_t mixed(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15u + number * 0xD1B54A32D192ED03u + 0x632BE59BD9B4E019u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace detail

/// The operation of that name. Throws for a name that the contract does not have.
inline operation operation_named(std::string_view name) {
  const auto at = std::find(operation_names.begin(), operation_names.end(), name);
  require(at != operation_names.end(), "parity: the contract has no operation ", name);
  return static_cast<operation>(at - operation_names.begin());
}

/// Reads the arguments that trial::text writes; others are skipped. Without --operation, `of` stays operation::count.
inline trial read_trial(std::span<const std::string> arguments) {
  trial t;
  t.type = "float";
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string_view value = arguments[i + 1];
    if (arguments[i] == "--operation") t.of = operation_named(value);
    if (arguments[i] == "--type") t.type = value;
    if (arguments[i] == "--seed") t.seed = detail::number<std::uint64_t>("--seed", value);
    if (arguments[i] != "--sizes") continue;
    for (std::size_t at = 0; at < value.size();) {
      const std::size_t end = (std::min)(value.find(',', at), value.size());
      const std::string_view one = value.substr(at, end - at);
      const std::size_t equals = one.find('=');
      require(equals != std::string_view::npos, "parity: --sizes holds ", one, "; it is written rows=7,cols=129");
      t.set(one.substr(0, equals), detail::number<index>(one.substr(0, equals), one.substr(equals + 1)));
      at = end + 1;
    }
  }
  return t;
}

/// Draws sizes. The first two trials of a seed are the smallest of all sizes and the second smallest; numbers that are not finite
/// come with every fourth.
inline trial draw_trial(operation of, std::string type, std::span<const dimension> dimensions, std::uint64_t seed,
                        index number) {
  trial t{of, std::move(type), seed + static_cast<std::uint64_t>(number), {}};
  std::uint64_t n = 0;
  for (const dimension& d : dimensions) {
    const std::size_t drawn = detail::mixed(t.seed, ++n) % d.count;
    std::size_t at = number < 2 ? (std::min)(static_cast<std::size_t>(number), d.count - 1) : drawn;
    if (d.name == special.name && number % 4 != 3) at = 0;
    t.set(d.name, d.values[at]);
  }
  return t;
}

/// Makes a failing trial smaller as long as it fails: one size at a time, to smaller values of its list, to a half, by one.
template <class Fails>
trial shrink(trial t, std::span<const dimension> dimensions, Fails fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const dimension& d : dimensions) {
      const index now = t[d.name];
      std::vector<index> tries(d.values.begin(), d.values.begin() + static_cast<std::ptrdiff_t>(d.count));
      if (now > d.values[d.count - 1] || d.count > 2) tries.push_back(now / 2), tries.push_back(now - 1);
      std::sort(tries.begin(), tries.end());
      for (const index value : tries) {
        if (value < d.least() || value >= now) continue;
        trial less = t;
        less.set(d.name, value);
        if (!fails(less)) continue;
        t = less;
        smaller = true;
        break;
      }
    }
  }
  return t;
}

}  // namespace parity
GYRE_END
