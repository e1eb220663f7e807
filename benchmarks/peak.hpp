// The machine's two ceilings, for the threads at hand: multiply-adds in registers, and bytes read.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <gyre/backend/cpu/aligned.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/backend/cpu/simd.hpp>

namespace gyre_benchmark {

inline double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// `rounds` times 12 independent multiply-adds of a full register. The chains start apart: equal ones the compiler would merge.
template <class T>
T spin_multipliers(gyre::index rounds) {
  using gyre::detail::simd;
  const auto factor = simd<T>::broadcast(T(0.999)), term = simd<T>::broadcast(T(0.001));
  const auto start = [](int chain) { return simd<T>::broadcast(T(0.01) * static_cast<T>(chain)); };
  simd<T> a = start(1), b = start(2), c = start(3), d = start(4), e = start(5), f = start(6), g = start(7), h = start(8),
          i = start(9), j = start(10), k = start(11), l = start(12);
  for (gyre::index n = 0; n < rounds; ++n) {
    a = fma(a, factor, term), b = fma(b, factor, term), c = fma(c, factor, term), d = fma(d, factor, term);
    e = fma(e, factor, term), f = fma(f, factor, term), g = fma(g, factor, term), h = fma(h, factor, term);
    i = fma(i, factor, term), j = fma(j, factor, term), k = fma(k, factor, term), l = fma(l, factor, term);
  }
  return sum(a + b + c + d + e + f + g + h + i + j + k + l);
}

/// Floating-point operations a second of all threads together, over about 3 ms.
template <class T>
double register_rate(gyre::thread_pool& pool) {
  constexpr gyre::index rounds = 40000, pieces = 16;
  const gyre::index tasks = pieces * pool.threads();
  std::vector<T> results(static_cast<std::size_t>(tasks));
  const double begin = seconds();
  pool.run(tasks, [&](gyre::index task, int) { results[static_cast<std::size_t>(task)] = spin_multipliers<T>(rounds); });
  const double time = seconds() - begin;
  benchmark::DoNotOptimize(results.data());
  return static_cast<double>(tasks * rounds) * 12 * gyre::detail::simd<T>::width * 2 / time;
}

/// Bytes a second of all threads together, each reading its share of `bytes` again and again, over about 10 ms. A size between
/// the caches' gives the rate of the next memory behind the smaller one.
inline double read_rate(gyre::thread_pool& pool, std::size_t bytes) {
  using gyre::detail::simd;
  constexpr gyre::index width = simd<float>::width, step = 8 * width;
  const gyre::index share = static_cast<gyre::index>(bytes / sizeof(float)) / pool.threads() / step * step;
  const gyre::detail::aligned_memory memory =
      gyre::detail::allocate_aligned(static_cast<std::size_t>(share * pool.threads()) * sizeof(float));
  float* const data = reinterpret_cast<float*>(memory.get());
  std::vector<float> results(static_cast<std::size_t>(pool.threads()));
  const auto pass = [&] {
    pool.run(pool.threads(), [&](gyre::index task, int) {
      simd<float> sums[8] = {};
      for (auto& s : sums) s = simd<float>::zero();
      const float* const from = data + task * share;
      for (gyre::index i = 0; i < share; i += step)
        for (gyre::index j = 0; j < 8; ++j) sums[j] = sums[j] + simd<float>::load(from + i + j * width);
      for (gyre::index j = 1; j < 8; ++j) sums[0] = sums[0] + sums[j];
      results[static_cast<std::size_t>(task)] = sum(sums[0]);
    });
    benchmark::DoNotOptimize(results.data());
  };
  pool.run(pool.threads(), [&](gyre::index task, int) { std::fill_n(data + task * share, share, 1.0f); });
  pass();
  const double begin = seconds();
  double time = 0;
  int passes = 0;
  for (; time < 0.01; time = seconds() - begin, ++passes) pass();
  return static_cast<double>(share * pool.threads()) * sizeof(float) * passes / time;
}

}  // namespace gyre_benchmark
