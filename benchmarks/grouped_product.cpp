// Products with a matrix for each group of rows (experts) beside one product of the same size. Every variant runs in turn in each
// iteration, so that all see the same neighbours of a shared machine; counters are the fastest run of each, in GF (10^9
// floating-point operations a second, a multiply-add counting as two).
//
//   dense          one matrix, a run each of `product` and its gradients
//   few, many      so many groups of equal size
//   sparse         the groups of `few` among 4,096, the others without rows
//   many_to_few    time of `many` over that of `few`; sparse_to_few likewise
//   many_to_dense  speed of `many` over that of one product
//
// Packing is not in them; pack_ms is what it takes for the matrices of `many`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>

#include "peak.hpp"

namespace {

using gyre::cpu;
using gyre::matrix_view;
using gyre_benchmark::seconds;
using integer = gyre::index;
using weights = gyre::weight_matrix<float, cpu::prepared<float>>;

gyre::detail::aligned_memory untouched(integer count) {
  return gyre::detail::allocate_aligned(sizeof(float) * static_cast<std::size_t>(count));
}

void fill(float* to, integer count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (integer i = 0; i < count; ++i) to[i] = uniform(random);
}

/// Groups with their matrices and the gradients of these. Only what belongs to groups with rows is ever touched.
struct experts {
  integer out, in, count;
  std::vector<std::int32_t> offsets{0};
  gyre::detail::aligned_memory memory, gradient_memory;
  float *flat, *gradients;
  cpu::prepared<float> prepared;

  experts(cpu b, integer rows, integer out_, integer in_, integer used, integer count_)
      : out(out_),
        in(in_),
        count(count_),
        memory(untouched(count * out * in)),
        gradient_memory(untouched(count * out * in)),
        flat(reinterpret_cast<float*>(memory.get())),
        gradients(reinterpret_cast<float*>(gradient_memory.get())),
        prepared(b, flat, table(), true) {
    const integer apart = count / used;
    for (integer g = 0; g < count; ++g) {
      const bool has_rows = g % apart == 0;
      offsets.push_back(has_rows ? static_cast<std::int32_t>(rows * (g / apart + 1) / used) : offsets.back());
      if (!has_rows) continue;
      fill(flat + g * out * in, out * in);
      std::fill_n(gradients + g * out * in, out * in, 0.0f);
    }
  }
  std::vector<gyre::tensor_entry> table() const {
    std::vector<gyre::tensor_entry> entries;
    for (integer g = 0; g < count; ++g) entries.push_back({g * out * in, {out, in}, gyre::role::input_projection, {}});
    return entries;
  }
  weights first() const { return {{flat, out, in}, &prepared}; }
  gyre::row_groups groups() const { return {offsets.data(), count, out * in}; }
};

enum kind { forward, input_gradient, weight_gradient };

template <kind Kind>
void grouped(benchmark::State& state) {
  const integer rows = state.range(0), out = state.range(1), in = state.range(2), many_count = state.range(4);
  cpu b(static_cast<int>(state.range(5)));
  experts dense(b, rows, out, in, 1, 1), few(b, rows, out, in, state.range(3), state.range(3)),
      many(b, rows, out, in, many_count, many_count), sparse(b, rows, out, in, state.range(3), 4096);
  const auto x_memory = untouched(rows * in), y_memory = untouched(rows * out);
  const matrix_view<float> x(reinterpret_cast<float*>(x_memory.get()), rows, in);
  const matrix_view<float> y(reinterpret_cast<float*>(y_memory.get()), rows, out);
  fill(x.data, x.size()), fill(y.data, y.size());
  const matrix_view<const float> x_read = x, y_read = y;

  const auto run = [&](experts& e) {
    if constexpr (Kind == forward)
      b.grouped_product(x_read, e.first(), e.groups(), y, false);
    else if constexpr (Kind == input_gradient)
      b.grouped_product_input_gradient(y_read, e.first(), e.groups(), x, false);
    else
      b.grouped_product_weight_gradient(y_read, x_read, e.groups(), matrix_view<float>(e.gradients, out, in));
  };
  const auto run_dense = [&] {
    if constexpr (Kind == forward)
      b.product(x_read, dense.first(), y, false);
    else if constexpr (Kind == input_gradient)
      b.product_input_gradient(y_read, dense.first(), x, false);
    else
      b.product_weight_gradient(y_read, x_read, matrix_view<float>(dense.gradients, out, in));
  };
  const auto timed = [](double& fastest, auto f) {
    const double begin = seconds();
    f();
    fastest = (std::min)(fastest, seconds() - begin);
  };
  run_dense(), run(few), run(many), run(sparse);
  double least_dense = 1e30, least_few = 1e30, least_many = 1e30, least_sparse = 1e30, least_pack = 1e30;
  for (auto _ : state) {
    timed(least_dense, run_dense);
    timed(least_few, [&] { run(few); });
    timed(least_many, [&] { run(many); });
    timed(least_sparse, [&] { run(sparse); });
    many.prepared.refresh(b);
    timed(least_pack, [&] {
      many.prepared.pack(
          b.pool(), many_count, [&](integer g) -> auto& {
            return *many.prepared.find({many.flat + g * out * in, out, in}, Kind == input_gradient);
          });
    });
    run(many);
  }
  const double operations = 2e-9 * static_cast<double>(rows * out * in);
  state.counters["dense"] = operations / least_dense;
  state.counters["few"] = operations / least_few;
  state.counters["many"] = operations / least_many;
  state.counters["sparse"] = operations / least_sparse;
  state.counters["many_to_few"] = least_many / least_few;
  state.counters["sparse_to_few"] = least_sparse / least_few;
  state.counters["many_to_dense"] = least_dense / least_many;
  state.counters["pack_ms"] = least_pack * 1e3;
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "out", "in", "few", "many", "threads"});
  for (const integer threads : {1, 2}) {
    // 16,384 tokens with 4 experts each, of width 128: [gate | up], then down.
    b->Args({65536, 256, 256, 16, 256, threads})->Args({65536, 256, 128, 16, 256, threads});
    // 8 x 256 tokens with 4 of 64 experts of width 256.
    b->Args({8192, 512, 256, 16, 64, threads})->Args({8192, 256, 256, 16, 64, threads});
  }
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace

BENCHMARK(grouped<forward>)->Apply(shapes);
BENCHMARK(grouped<input_gradient>)->Apply(shapes);
BENCHMARK(grouped<weight_gradient>)->Apply(shapes);
