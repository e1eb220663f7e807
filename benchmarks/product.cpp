// The `cpu` backend's products at the shapes of training and decoding, as fractions of the multiply-add rate that the same
// threads reach in registers in the same second. Machines are shared: compare fractions and ratios, not absolute rates.
//
//   GF       10^9 floating-point operations a second, a multiply-add counting as two
//   of_peak  GF / the register rate measured right before and after, median; best_of_peak: fastest / highest
#if defined(__GNUC__) && !defined(__clang__)
// Inside GCC 12's own AVX-512 intrinsics, which Eigen calls (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/cpu/product.hpp>

#include "peak.hpp"

namespace {

using gyre::matrix_view;
using gyre::packed_matrix;
using gyre::thread_pool;
using gyre_benchmark::register_rate;
using gyre_benchmark::seconds;
using integer = gyre::index;

template <class T>
std::vector<T> noise(integer count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<T> uniform(T(-1), T(1));
  std::vector<T> v(static_cast<std::size_t>(count));
  for (T& x : v) x = uniform(random);
  return v;
}

template <class T>
void peak(benchmark::State& state) {
  thread_pool pool(static_cast<int>(state.range(0)));
  double best = 0;
  for (auto _ : state) best = (std::max)(best, register_rate<T>(pool));
  state.counters["GF"] = best / 1e9;
}

/// Runs `product` alternately with the measurement of the register rate, so that both see the same neighbours. Counters: medians,
/// and the fastest product against the highest rate.
template <class T, class F>
void measure(benchmark::State& state, thread_pool& pool, double operations, F product) {
  product();
  std::vector<double> fractions;
  double before = register_rate<T>(pool), highest = before, fastest = 1e30, total = 0;
  const int repeats = (std::max)(1, static_cast<int>(5e7 / operations));  // between two measurements of the rate
  for (auto _ : state) {
    const double start = seconds();
    for (int i = 0; i < repeats; ++i) product();
    const double time = (seconds() - start) / repeats, after = register_rate<T>(pool);
    state.SetIterationTime(time);
    fractions.push_back(2 * operations / time / (before + after));
    fastest = (std::min)(fastest, time);
    highest = (std::max)(highest, after);
    total += time;
    before = after;
  }
  std::sort(fractions.begin(), fractions.end());
  state.counters["GF"] = operations * static_cast<double>(state.iterations()) / total / 1e9;
  state.counters["of_peak"] = fractions[fractions.size() / 2];
  state.counters["best_of_peak"] = operations / fastest / highest;
}

enum kind { forward, input_gradient, weight_gradient, pack };

template <class T, kind Kind>
void gyre_product(benchmark::State& state) {
  const integer n = state.range(0), out = state.range(1), in = state.range(2);
  thread_pool pool(static_cast<int>(state.range(3)));
  const auto x = noise<T>(n * in), w = noise<T>(out * in), dy = noise<T>(n * out);
  std::vector<T> y(static_cast<std::size_t>(n * out)), dx(static_cast<std::size_t>(n * in)),
      dw(static_cast<std::size_t>(out * in));
  const matrix_view<const T> xs(x.data(), n, in), ws(w.data(), out, in), dys(dy.data(), n, out);
  const double operations = 2.0 * static_cast<double>(n * out * in);
  if constexpr (Kind == forward || Kind == pack) {
    packed_matrix<T> packed(in, out);
    packed.pack_transposed(pool, ws);
    if constexpr (Kind == forward)
      measure<T>(state, pool, operations,
                 [&] { gyre::detail::multiply(pool, matrix_view<T>(y.data(), n, out), xs, packed, false); });
    else
      measure<T>(state, pool, 2.0 * static_cast<double>(out * in), [&] { packed.pack_transposed(pool, ws); });
  } else if constexpr (Kind == input_gradient) {
    packed_matrix<T> packed(out, in);
    packed.pack(pool, ws);
    measure<T>(state, pool, operations,
               [&] { gyre::detail::multiply(pool, matrix_view<T>(dx.data(), n, in), dys, packed, true); });
  } else {
    measure<T>(state, pool, operations,
               [&] { gyre::detail::multiply_transposed(pool, matrix_view<T>(dw.data(), out, in), dys, xs); });
  }
}

/// Eigen's product of the same factors on one thread, for it is the plain second opinion; not threaded, so beside 1 thread.
template <class T, kind Kind>
void eigen_product(benchmark::State& state) {
  using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const integer n = state.range(0), out = state.range(1), in = state.range(2);
  thread_pool pool(1);
  const matrix x = matrix::Random(n, in), w = matrix::Random(out, in), dy = matrix::Random(n, out);
  matrix y(n, out), dx = matrix::Zero(n, in), dw = matrix::Zero(out, in);
  measure<T>(state, pool, 2.0 * static_cast<double>(n * out * in), [&] {
    if constexpr (Kind == forward)
      y.noalias() = x * w.transpose();
    else if constexpr (Kind == input_gradient)
      dx.noalias() += dy * w;
    else
      dw.noalias() += dy.transpose() * x;
  });
}

using shape = std::array<integer, 3>;  // n, out, in
constexpr shape training[] = {{2048, 768, 256}, {2048, 1792, 256}, {2048, 4096, 256}, {2048, 256, 896},
                              {2048, 256, 256}, {2048, 384, 128},  {512, 1760, 1760}, {256, 768, 256}};
constexpr shape few_rows[] = {{1, 1024, 256},  {1, 1024, 1024}, {1, 256, 256},   {1, 1792, 256},
                              {1, 4096, 256},  {2, 1024, 256},  {4, 1024, 256},  {8, 1024, 256},
                              {16, 1024, 256}, {32, 1024, 256}, {4, 1760, 1760}, {16, 1760, 1760}};

template <class T>
void list(const char* scalar) {
  const auto add = [&](const char* what, const shape& s, integer threads, void (*f)(benchmark::State&)) {
    const std::string name = std::string(what) + "<" + scalar + ">/" + std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" +
                             std::to_string(s[2]) + "/threads:" + std::to_string(threads);
    benchmark::RegisterBenchmark(name.c_str(), f)->Args({s[0], s[1], s[2], threads})->UseManualTime();
  };
  for (integer threads : {1, 2})
    benchmark::RegisterBenchmark((std::string("peak<") + scalar + ">/threads:" + std::to_string(threads)).c_str(), peak<T>)
        ->Args({threads})
        ->UseRealTime();
  for (const shape& s : training)
    for (integer threads : {1, 2}) {
      add("forward", s, threads, gyre_product<T, forward>);
      add("input_gradient", s, threads, gyre_product<T, input_gradient>);
      add("weight_gradient", s, threads, gyre_product<T, weight_gradient>);
      if (threads == 1) {
        add("eigen_forward", s, 1, eigen_product<T, forward>);
        add("eigen_input_gradient", s, 1, eigen_product<T, input_gradient>);
        add("eigen_weight_gradient", s, 1, eigen_product<T, weight_gradient>);
      }
    }
  for (const shape& s : few_rows) {
    add("forward", s, 2, gyre_product<T, forward>);
    add("eigen_forward", s, 1, eigen_product<T, forward>);
  }
  add("pack", {0, 1792, 256}, 2, gyre_product<T, pack>);
}

const bool listed = (list<float>("float"), list<double>("double"), true);

}  // namespace
