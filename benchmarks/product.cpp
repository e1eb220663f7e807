// The `cpu` backend's products at the shapes of training and decoding, as fractions of the multiply-add rate that the same
// threads reach in registers in the same second. Machines are shared: compare fractions and ratios, not absolute rates.
//
//   GF       10^9 floating-point operations a second, a multiply-add counting as two
//   of_peak  GF / the register rate, measured right before and after
#if defined(__GNUC__) && !defined(__clang__)
// Inside GCC 12's own AVX-512 intrinsics, which Eigen calls (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/cpu/product.hpp>

namespace {

using gyre::matrix_view;
using gyre::packed_matrix;
using gyre::thread_pool;
using gyre::detail::simd;
using integer = gyre::index;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// `rounds` times 12 independent multiply-adds of a full register.
template <class T>
T spin_multipliers(integer rounds) {
  const auto factor = simd<T>::broadcast(T(0.999)), term = simd<T>::broadcast(T(0.001));
  simd<T> a = term, b = term, c = term, d = term, e = term, f = term, g = term, h = term, i = term, j = term, k = term, l = term;
  for (integer n = 0; n < rounds; ++n) {
    a = fma(a, factor, term), b = fma(b, factor, term), c = fma(c, factor, term), d = fma(d, factor, term);
    e = fma(e, factor, term), f = fma(f, factor, term), g = fma(g, factor, term), h = fma(h, factor, term);
    i = fma(i, factor, term), j = fma(j, factor, term), k = fma(k, factor, term), l = fma(l, factor, term);
  }
  return sum(a + b + c + d + e + f + g + h + i + j + k + l);
}

/// Floating-point operations a second of all threads together, over about 3 ms.
template <class T>
double register_rate(thread_pool& pool) {
  constexpr integer rounds = 40000, pieces = 16;
  const integer tasks = pieces * pool.threads();
  std::vector<T> results(static_cast<std::size_t>(tasks));
  const double begin = seconds();
  pool.run(tasks, [&](integer task, int) { results[static_cast<std::size_t>(task)] = spin_multipliers<T>(rounds); });
  const double time = seconds() - begin;
  benchmark::DoNotOptimize(results.data());
  return static_cast<double>(tasks * rounds) * 12 * simd<T>::width * 2 / time;
}

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

/// Times `product` (2 n out in operations) between two measurements of the register rate.
template <class T, class F>
void measure(benchmark::State& state, thread_pool& pool, double operations, F product) {
  product();
  const double before = register_rate<T>(pool), begin = seconds();
  double fastest = 1e30;
  for (auto _ : state) {
    const double start = seconds();
    product();
    fastest = (std::min)(fastest, seconds() - start);
  }
  const double time = seconds() - begin, after = register_rate<T>(pool);
  const double rate = operations * static_cast<double>(state.iterations()) / time;
  state.counters["GF"] = rate / 1e9;
  state.counters["of_peak"] = rate / ((before + after) / 2);
  state.counters["best_of_peak"] = operations / fastest / (std::max)(before, after);
}

enum kind { forward, input_gradient, weight_gradient, pack };

template <class T, kind Kind>
void gyre_product(benchmark::State& state) {
  const integer n = state.range(0), out = state.range(1), in = state.range(2);
  thread_pool pool(static_cast<int>(state.range(3)));
  const auto x = noise<T>(n * in), w = noise<T>(out * in), dy = noise<T>(n * out);
  std::vector<T> y(static_cast<std::size_t>(n * out)), dx(static_cast<std::size_t>(n * in)), dw(static_cast<std::size_t>(out * in));
  const matrix_view<const T> xs(x.data(), n, in), ws(w.data(), out, in), dys(dy.data(), n, out);
  const double operations = 2.0 * static_cast<double>(n * out * in);
  if constexpr (Kind == forward || Kind == pack) {
    packed_matrix<T> packed(in, out);
    packed.pack_transposed(pool, ws);
    if constexpr (Kind == forward)
      measure<T>(state, pool, operations, [&] { gyre::detail::multiply(pool, matrix_view<T>(y.data(), n, out), xs, packed, false); });
    else measure<T>(state, pool, 2.0 * static_cast<double>(out * in), [&] { packed.pack_transposed(pool, ws); });
  } else if constexpr (Kind == input_gradient) {
    packed_matrix<T> packed(out, in);
    packed.pack(pool, ws);
    measure<T>(state, pool, operations, [&] { gyre::detail::multiply(pool, matrix_view<T>(dx.data(), n, in), dys, packed, true); });
  } else {
    measure<T>(state, pool, operations, [&] { gyre::detail::multiply_transposed(pool, matrix_view<T>(dw.data(), out, in), dys, xs); });
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
    if constexpr (Kind == forward) y.noalias() = x * w.transpose();
    else if constexpr (Kind == input_gradient) dx.noalias() += dy * w;
    else dw.noalias() += dy.transpose() * x;
  });
}

using shape = std::array<integer, 3>;  // n, out, in
constexpr shape training[] = {{2048, 768, 256}, {2048, 1792, 256}, {2048, 4096, 256}, {2048, 256, 896}, {2048, 256, 256},
                              {2048, 384, 128}, {512, 1760, 1760}, {256, 768, 256}};
constexpr shape few_rows[] = {{1, 1024, 256},  {1, 1024, 1024}, {1, 256, 256},    {1, 1792, 256}, {1, 4096, 256},
                              {2, 1024, 256},  {4, 1024, 256},  {8, 1024, 256},   {16, 1024, 256}, {32, 1024, 256},
                              {4, 1760, 1760}, {16, 1760, 1760}};

template <class T>
void list(const char* scalar) {
  const auto add = [&](const char* what, const shape& s, integer threads, void (*f)(benchmark::State&)) {
    const std::string name = std::string(what) + "<" + scalar + ">/" + std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" +
                             std::to_string(s[2]) + "/threads:" + std::to_string(threads);
    benchmark::RegisterBenchmark(name.c_str(), f)->Args({s[0], s[1], s[2], threads})->UseRealTime();
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

}  // namespace

int main(int argc, char** argv) {
  list<float>("float");
  list<double>("double");
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
