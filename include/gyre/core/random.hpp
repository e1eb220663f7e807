// Counter-based random numbers: a value is a function of (seed, purpose, counter) and of nothing else, so it is the same for
// every number of threads, split of the batch and order of evaluation, and nothing has to be saved to resume.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <gyre/core/error.hpp>
#include <gyre/core/normal_quantile.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// Philox 4x32 with 10 rounds: a bijection of 128-bit counters for each 64-bit key that passes the known statistical test
/// batteries. Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> x, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * x[0], second = std::uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<std::uint32_t>(second >> 32) ^ x[1] ^ key[0], static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ x[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return x;
}

/// What a stream is used for. Streams of different purposes are independent. The numbers are part of the meaning of a seed:
/// they never change.
enum class purpose : std::uint8_t {
  initialisation = 1,
  initial_state = 2,
  depth = 3,
  data_order = 4,
  sampling = 5,
  task = 6,
  noise = 7,
};

/// Which value of a stream: four words, named after their use for the initial state, where `row` counts over the whole batch
/// of all ranks. Other uses fill them as they need.
struct counter {
  std::uint32_t step = 0, row = 0, position = 0, feature = 0;
  constexpr bool operator==(const counter&) const = default;
  /// The four words out of two, for uses that count beyond 32 bits.
  static constexpr counter of(std::uint64_t high, std::uint64_t low = 0) {
    return {static_cast<std::uint32_t>(high >> 32), static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(low >> 32),
            static_cast<std::uint32_t>(low)};
  }
};

namespace detail {

/// A bijection of 64-bit words that spreads each bit over all: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace detail

/// The random numbers of one (seed, purpose, id). Holds only its key: copy it freely, use it from any thread.
///
/// One counter gives one 64-bit value; the value of feature f is half (f mod 2) of the Philox block (step, row, position,
/// f / 2). The fill functions give element i the value of feature first.feature + i, exactly as the calls for one counter do.
/// Everything except random_sequence's exponential is the same bits for every compiler and instruction set (see
/// core/normal_quantile.hpp; not under -ffast-math).
class random_stream {
 public:
  /// `id` separates streams of one purpose (a tensor's number, say); it must be below 2^56. For one seed, all pairs
  /// (purpose, id) have different keys; for one pair, so have all seeds.
  constexpr random_stream(seed s, purpose use, std::uint64_t id = 0) {
    const std::uint64_t which = (std::uint64_t{static_cast<std::uint8_t>(use)} << 56) ^ id;
    const std::uint64_t mixed = detail::mix(detail::mix(s.value) + which);
    key_ = {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
  }

  /// 64 random bits.
  constexpr std::uint64_t bits(counter at) const {
    const auto x = philox4x32({at.step, at.row, at.position, at.feature / 2}, key_);
    return at.feature % 2 == 0 ? word(x[0], x[1]) : word(x[2], x[3]);
  }

  /// Uniform in [0, 1): a multiple of 2^-53.
  constexpr double uniform(counter at) const { return static_cast<double>(bits(at) >> 11) * 0x1p-53; }

  /// Uniform in (0, 1): an odd multiple of 2^-53, symmetric about 1/2.
  constexpr double open_uniform(counter at) const { return static_cast<double>(bits(at) >> 12) * 0x1p-52 + 0x1p-53; }

  /// Standard normal, by the inverse of its distribution function at open_uniform(at); within +-8.3.
  double normal(counter at) const {
    const std::uint64_t b = bits(at);
    double x;
    detail::normal_from_bits<1>(&b, 1.0, &x);
    return x;
  }

  /// Normal of scale `sigma` cut at 3 sigma (so its standard deviation is 0.98658 sigma), by the inverse of its distribution
  /// function at open_uniform(at). No value lies beyond 3 * sigma.
  double truncated_normal(counter at, double sigma) const {
    check_scale("truncated_normal", sigma);
    const std::uint64_t b = bits(at);
    double x;
    detail::truncated_normal_from_bits<1>(&b, sigma, &x);
    return x;
  }

  /// out[i] = sigma * normal(first with feature first.feature + i), rounded to T once.
  template <class T>
  void fill_normal(std::span<T> out, counter first, double sigma = 1) const {
    check_scale("fill_normal", sigma);
    fill(out, first, [=](const std::uint64_t* b, double* x) { detail::normal_from_bits<chunk>(b, sigma, x); });
  }

  /// out[i] = truncated_normal(first with feature first.feature + i, sigma), rounded to T once.
  template <class T>
  void fill_truncated_normal(std::span<T> out, counter first, double sigma) const {
    check_scale("fill_truncated_normal", sigma);
    fill(out, first, [=](const std::uint64_t* b, double* x) { detail::truncated_normal_from_bits<chunk>(b, sigma, x); });
  }

 private:
  static constexpr std::size_t chunk = 64;  // values made together

  static constexpr std::uint64_t word(std::uint32_t low, std::uint32_t high) { return low | (std::uint64_t{high} << 32); }

  static void check_scale(const char* call, double sigma) {
    require(sigma >= 0 && std::isfinite(sigma), call, ": sigma is ", sigma, "; it must be finite and not negative");
  }

  /// The blocks (at with feature f / 2 = block, block + 1, ...): philox4x32 lane by lane, in a form that compilers vectorise.
  void blocks(counter at, std::uint32_t block, std::uint64_t* out) const {
    constexpr std::size_t lanes = chunk / 2;
    std::uint32_t x0[lanes], x1[lanes], x2[lanes], x3[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
      x0[i] = at.step;
      x1[i] = at.row;
      x2[i] = at.position;
      x3[i] = block + static_cast<std::uint32_t>(i);
    }
    auto key = key_;
    for (int round = 0; round < 10; ++round) {
      for (std::size_t i = 0; i < lanes; ++i) {
        const std::uint64_t first = std::uint64_t{0xD2511F53u} * x0[i], second = std::uint64_t{0xCD9E8D57u} * x2[i];
        x0[i] = static_cast<std::uint32_t>(second >> 32) ^ x1[i] ^ key[0];
        x1[i] = static_cast<std::uint32_t>(second);
        x2[i] = static_cast<std::uint32_t>(first >> 32) ^ x3[i] ^ key[1];
        x3[i] = static_cast<std::uint32_t>(first);
      }
      key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    for (std::size_t i = 0; i < lanes; ++i) {
      out[2 * i] = word(x0[i], x1[i]);
      out[2 * i + 1] = word(x2[i], x3[i]);
    }
  }

  template <class T, class Make>
  void fill(std::span<T> out, counter first, Make make) const {
    require(out.size() <= (std::uint64_t{1} << 32) - first.feature, "random_stream: ", out.size(), " values from feature ",
            first.feature, " on pass the end of the 32-bit counter; spread them over rows or positions");
    std::uint64_t bits_of[chunk];
    double values[chunk];
    std::size_t skip = first.feature % 2;  // an odd start uses the second half of its block
    std::uint32_t block = first.feature / 2;
    for (std::size_t done = 0; done < out.size(); block += chunk / 2, skip = 0) {
      blocks(first, block, bits_of);
      make(bits_of, values);
      const std::size_t count = (std::min)(chunk - skip, out.size() - done);
      for (std::size_t i = 0; i < count; ++i) out[done + i] = static_cast<T>(static_cast<real_t<T>>(values[skip + i]));
      done += count;
    }
  }

  std::array<std::uint32_t, 2> key_{};
};

GYRE_END
