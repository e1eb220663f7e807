// What cuBLAS alone gives for attention and for products of experts, beside the `cuda` backend's own kernels. Needs a GPU:
// without one every entry says why it was not run.
//
//   attention           one kernel forward; rows of (sequences, length), 16 heads of 64
//   composed_attention  the same by cuBLAS and a softmax between: all pairs are computed, and scores go through memory
//   grouped             x (rows, in) by the matrix (out, in) of each row's expert; the device reads where experts begin
//   grouped_by_cublas   cuBLAS's grouped product, which the host must tell where experts begin
//   each_by_cublas      one product of cuBLAS's for each expert, likewise
//
// FLOP/s: 2 x multiply-adds, of attention only those of the pairs that a causal mask leaves, for both.
#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gyre/backend/cuda.hpp>

#include "cuda.hpp"

namespace {

using namespace gyre_benchmark;

template <class T>
constexpr cudaDataType_t cublas_type = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

void check(cublasStatus_t status, const char* call) {
  gyre::require(status == CUBLAS_STATUS_SUCCESS, call, ": ", cublasGetStatusString(status));
}

/// Small arrays that both the host and the device read.
template <class X>
class shared_array {
 public:
  shared_array(gyre::cuda& device, const std::vector<X>& from)
      : device_(device), data_(reinterpret_cast<X*>(device_.allocate(sizeof(X) * from.size()))) {
    std::copy(from.begin(), from.end(), data_);
  }
  ~shared_array() { device_.deallocate(reinterpret_cast<std::byte*>(data_), 0); }
  shared_array(const shared_array&) = delete;
  shared_array& operator=(const shared_array&) = delete;
  X* data() const { return data_; }

 private:
  gyre::cuda device_;
  X* data_;
};

constexpr size heads = 16, head_width = 64, width = heads * head_width;

template <class T>
struct attention_operands {
  size sequences, length;
  matrix<T, gyre::cuda> fused, o;
  matrix<float, gyre::cuda> lse;
  gyre::batch_layout layout;
  gyre::attention_shape shape{heads, heads, head_width, 0.125};
  attention_operands(gyre::cuda& b, const benchmark::State& state)
      : sequences(state.range(0)),
        length(state.range(1)),
        fused(b, sequences * length, 3 * width),
        o(b, sequences * length, width),
        lse(b, sequences * length, heads) {
    layout.assign_uniform(sequences, length);
  }
  matrix_view<const T> part(size i) const { return fused.read().columns(i * width, width); }
  void report_to(benchmark::State& state) const {
    const double pairs = 0.5 * static_cast<double>(sequences * length * (length + 1));
    report(state, 4.0 * static_cast<double>(sequences * length * width) * sizeof(T), 2 * pairs * width);
  }
};

template <class T>
void attention(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& b) {
    const attention_operands<T> x(b, state);
    repeat(state, b, [&] { b.attention(x.part(0), x.part(1), x.part(2), x.layout, x.shape, x.o.view(), x.lse.view().data); });
    x.report_to(state);
  });
}

/// Rows of scores (queries, keys) become shares of the keys up to the query's own; one block of `threads` for each row.
constexpr int threads = 256;
template <class T>
__global__ void causal_softmax(T* scores, size length) {
  const size query = blockIdx.x;
  T* const row = scores + (static_cast<size>(blockIdx.y) * length + query) * length;
  __shared__ float part[threads];
  const auto over_block = [&](float mine, auto join) {
    __syncthreads();
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
      if (static_cast<int>(threadIdx.x) < half) part[threadIdx.x] = join(part[threadIdx.x], part[threadIdx.x + half]);
      __syncthreads();
    }
    return part[0];
  };
  float largest = -INFINITY;
  for (size key = threadIdx.x; key <= query; key += threads) largest = fmaxf(largest, static_cast<float>(row[key]));
  largest = over_block(largest, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (size key = threadIdx.x; key <= query; key += threads) sum += __expf(static_cast<float>(row[key]) - largest);
  sum = over_block(sum, [](float a, float b) { return a + b; });
  for (size key = threadIdx.x; key < length; key += threads)
    row[key] = T(key <= query ? __expf(static_cast<float>(row[key]) - largest) / sum : 0.0f);
}

template <class T>
void composed_attention(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& b) {
    const attention_operands<T> x(b, state);
    const size matrices = x.sequences * heads, length = x.length;
    matrix<T, gyre::cuda> scores(b, matrices * length, length);
    std::vector<const void*> q, k, v, s;
    std::vector<void*> to_scores, o;
    for (size n = 0; n < matrices; ++n) {
      const size row = n / heads * length, column = n % heads * head_width;
      for (auto [list, part] : {std::pair(&q, size{0}), std::pair(&k, size{1}), std::pair(&v, size{2})})
        list->push_back(x.part(part)[row] + column);
      to_scores.push_back(scores.view()[n * length]);
      s.push_back(to_scores.back());
      o.push_back(x.o.view()[row] + column);
    }
    const shared_array<const void*> queries(b, q), keys(b, k), values(b, v), shares(b, s);
    const shared_array<void*> written_scores(b, to_scores), written(b, o);
    const float scale = 0.125f, one = 1, zero = 0;
    const int l = static_cast<int>(length), w = static_cast<int>(head_width), count = static_cast<int>(matrices);
    constexpr cudaDataType_t type = cublas_type<T>;
    // cuBLAS stores by columns: in its eyes each matrix is its transpose.
    repeat(state, b, [&] {
      check(cublasGemmBatchedEx(b.device().blas(), CUBLAS_OP_T, CUBLAS_OP_N, l, l, w, &scale, keys.data(), type, 3 * width,
                                queries.data(), type, 3 * width, &zero, written_scores.data(), type, l, count,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            "cublasGemmBatchedEx");
      const dim3 grid(static_cast<unsigned>(length), static_cast<unsigned>(matrices));
      causal_softmax<T><<<grid, threads, 0, b.device().stream()>>>(scores.view().data, length);
      check(cublasGemmBatchedEx(b.device().blas(), CUBLAS_OP_N, CUBLAS_OP_N, w, l, l, &one, values.data(), type, 3 * width,
                                shares.data(), type, l, &zero, written.data(), type, width, count, CUBLAS_COMPUTE_32F,
                                CUBLAS_GEMM_DEFAULT),
            "cublasGemmBatchedEx");
    });
    x.report_to(state);
  });
}

/// Rows dealt evenly to the experts.
template <class T>
struct expert_operands {
  static constexpr size in = 1024, out = 512;
  size rows, experts;
  matrix<T, gyre::cuda> x, w, y;
  std::vector<std::int32_t> offsets{0};
  shared_array<std::int32_t> on_device;
  expert_operands(gyre::cuda& b, const benchmark::State& state)
      : rows(state.range(0)),
        experts(state.range(1)),
        x(b, rows, in),
        w(b, experts * out, in),
        y(b, rows, out),
        on_device(b, [&] {
          for (size e = 1; e <= experts; ++e) offsets.push_back(static_cast<std::int32_t>(rows * e / experts));
          return offsets;
        }()) {}
  void report_to(benchmark::State& state) const {
    report(state, static_cast<double>(rows * (in + out) + experts * out * in) * sizeof(T),
           static_cast<double>(rows * in * out));
  }
};

template <class T>
void grouped(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& b) {
    const expert_operands<T> e(b, state);
    using prepared = typename gyre::cuda::template prepared<T>;
    std::vector<gyre::tensor_entry> table;
    for (size n = 0; n < e.experts; ++n) table.push_back({n * e.out * e.in, {e.out, e.in}, gyre::role::input_projection, {}});
    prepared packed(b, e.w.read().data, table, false);
    packed.refresh(b);
    const gyre::weight_matrix<T, prepared> first{{e.w.read().data, e.out, e.in}, &packed};
    const gyre::row_groups groups{e.on_device.data(), e.experts, e.out * e.in};
    repeat(state, b, [&] { b.grouped_product(e.x.read(), first, groups, e.y.view(), false); });
    e.report_to(state);
  });
}
template <class T>
void each_by_cublas(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& b) {
    const expert_operands<T> e(b, state);
    repeat(state, b, [&] {
      for (size n = 0; n < e.experts; ++n) {
        const size from = e.offsets[static_cast<std::size_t>(n)], count = e.offsets[static_cast<std::size_t>(n) + 1] - from;
        if (count == 0) continue;
        b.device().template multiply<T, T>({e.x.read()[from], count, e.in}, false, {e.w.read()[n * e.out], e.out, e.in}, true,
                                           {e.y.view()[from], count, e.out}, false);
      }
    });
    e.report_to(state);
  });
}
template <class T>
void grouped_by_cublas(benchmark::State& state) {
  on_device<gyre::cuda>(state, [&](gyre::cuda& b) {
    const expert_operands<T> e(b, state);
    const auto count = static_cast<std::size_t>(e.experts);
    const int in = static_cast<int>(e.in), out = static_cast<int>(e.out);
    std::vector<int> rows_of, outs(count, out), ins(count, in), ones(count, 1);
    std::vector<const void*> w, x;
    std::vector<void*> y;
    for (std::size_t n = 0; n < count; ++n) {
      rows_of.push_back(e.offsets[n + 1] - e.offsets[n]);
      w.push_back(e.w.read()[static_cast<size>(n) * e.out]), x.push_back(e.x.read()[e.offsets[n]]);
      y.push_back(e.y.view()[e.offsets[n]]);
    }
    const shared_array<const void*> weights(b, w), from(b, x);
    const shared_array<void*> to(b, y);
    const std::vector<cublasOperation_t> transposed(count, CUBLAS_OP_T), plain(count, CUBLAS_OP_N);
    const std::vector<float> one(count, 1.0f), zero(count, 0.0f);
    constexpr cudaDataType_t type = cublas_type<T>;
    repeat(state, b, [&] {
      check(cublasGemmGroupedBatchedEx(b.device().blas(), transposed.data(), plain.data(), outs.data(), rows_of.data(),
                                       ins.data(), one.data(), weights.data(), type, ins.data(), from.data(), type, ins.data(),
                                       zero.data(), to.data(), type, outs.data(), e.experts, ones.data(), CUBLAS_COMPUTE_32F),
            "cublasGemmGroupedBatchedEx");
    });
    e.report_to(state);
  });
}

void lengths(benchmark::internal::Benchmark* b) {
  b->ArgNames({"sequences", "length"})->Args({8, 256})->Args({4, 2048})->UseRealTime();
}
void experts(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "experts"})->Args({4096, 8})->Args({4096, 128})->Args({32768, 128})->UseRealTime();
}
BENCHMARK_TEMPLATE(attention, float)->Apply(lengths);
BENCHMARK_TEMPLATE(composed_attention, float)->Apply(lengths);
BENCHMARK_TEMPLATE(attention, gyre::bfloat16)->Apply(lengths);
BENCHMARK_TEMPLATE(composed_attention, gyre::bfloat16)->Apply(lengths);
BENCHMARK_TEMPLATE(grouped, float)->Apply(experts);
BENCHMARK_TEMPLATE(grouped_by_cublas, float)->Apply(experts);
BENCHMARK_TEMPLATE(each_by_cublas, float)->Apply(experts);
BENCHMARK_TEMPLATE(grouped, gyre::bfloat16)->Apply(experts);
BENCHMARK_TEMPLATE(grouped_by_cublas, gyre::bfloat16)->Apply(experts);
BENCHMARK_TEMPLATE(each_by_cublas, gyre::bfloat16)->Apply(experts);

}  // namespace
