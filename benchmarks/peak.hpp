// The multiply-add rate that threads reach in registers: what every other rate is a fraction of.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <vector>

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

}  // namespace gyre_benchmark
