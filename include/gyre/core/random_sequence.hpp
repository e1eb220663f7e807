// Draws that use up an unknown number of random words: integers without bias, permutations, Poisson and log-normal numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include <gyre/core/error.hpp>
#include <gyre/core/random.hpp>

GYRE_BEGIN

/// The values of `stream` at the counters (high word of first, low word of first, second, 0), (..., 1), ... one after the
/// other. Keyed like the stream: the same (stream, first, second) gives the same draws. At most 2^32 words.
class random_sequence {
 public:
  constexpr random_sequence(const random_stream& stream, std::uint64_t first, std::uint32_t second = 0)
      : stream_(stream), next_(counter::of(first, std::uint64_t{second} << 32)) {}

  /// 64 random bits.
  std::uint64_t bits() { return stream_.bits(advance()); }
  /// Uniform in [0, 1).
  double uniform() { return stream_.uniform(advance()); }
  /// Standard normal.
  double normal() { return stream_.normal(advance()); }

  /// Uniform in {0, ..., count - 1}, every value exactly equally likely. Throws for count 0.
  std::uint64_t below(std::uint64_t count) {
    require(count > 0, "random_sequence::below: count is 0; there is no number to draw");
    // The 2^64 words are cut to a multiple of count by drawing again below 2^64 mod count.
    const std::uint64_t uneven = (0 - count) % count;
    std::uint64_t word = bits();
    while (word < uneven) word = bits();
    return word % count;
  }

  /// Shuffles `values`; every order equally likely (Fisher and Yates, in Durstenfeld's form).
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[static_cast<std::size_t>(below(i))]);
  }

  /// Fills `out` with 0 .. size - 1 in random order.
  template <class T>
  void permutation(std::span<T> out) {
    std::iota(out.begin(), out.end(), T{0});
    shuffle(out);
  }

  /// exp(mu + sigma z), z standard normal. std::exp may differ in the last bit from one C library to the next.
  double lognormal(double mu, double sigma) {
    require(std::isfinite(mu) && std::isfinite(sigma) && sigma >= 0, "random_sequence::lognormal: mu is ", mu, ", sigma is ",
            sigma, "; both must be finite and sigma not negative");
    return std::exp(mu + sigma * normal());
  }

  /// Poisson of the given mean in [0, 10^6]: the sum of independent Poisson numbers of mean at most 16, each by inversion.
  /// Takes mean / 16 words, rounded up.
  std::uint64_t poisson(double mean) {
    require(mean >= 0 && mean <= 1e6, "random_sequence::poisson: mean is ", mean, "; it must lie in [0, 10^6]");
    std::uint64_t total = 0;
    while (mean > largest_part) {
      total += small_poisson(largest_part);
      mean -= largest_part;
    }
    if (mean > 0) total += small_poisson(mean);
    return total;
  }

 private:
  static constexpr double largest_part = 16;

  std::uint64_t small_poisson(double mean) {
    const double u = uniform();
    std::uint64_t k = 0;
    double probability = std::exp(-mean), cumulated = probability;
    // The rounded sum may stop just below 1, under u: the search ends where nothing is added any more.
    while (u >= cumulated) {
      probability *= mean / static_cast<double>(++k);
      if (cumulated + probability == cumulated) break;
      cumulated += probability;
    }
    return k;
  }

  counter advance() {
    require(!exhausted_, "random_sequence: all 2^32 words of this sequence are used; start another one");
    const counter here = next_;
    exhausted_ = ++next_.feature == 0;
    return here;
  }

  random_stream stream_;
  counter next_;
  bool exhausted_ = false;
};

GYRE_END
