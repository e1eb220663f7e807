// Correct kernels whose threads meet at barriers of the block, or at atomics.
#include <cmath>

#include "suite.hpp"

namespace suite {
namespace {

template <int Threads>
GYRE_DEVICE float block_sum(float v, float* sums) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = v;
  __syncthreads();
  float total = 0;
  for (int i = 0; i < Threads / 32; ++i) total += sums[i];
  return total;
}

template <int Threads>
GYRE_KERNEL void __launch_bounds__(Threads) normalise(const float* x, float* y, int n) {
  GYRE_SHARED(float[Threads / 32], sums);
  const float4* row = reinterpret_cast<const float4*>(x + static_cast<std::size_t>(blockIdx.x) * static_cast<unsigned>(n));
  float4* out = reinterpret_cast<float4*>(y + static_cast<std::size_t>(blockIdx.x) * static_cast<unsigned>(n));
  float squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n / 4; i += Threads) {
    const float4 v = row[i];
    squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  const float scale = rsqrtf(block_sum<Threads>(squares, sums) / static_cast<float>(n));
  for (int i = static_cast<int>(threadIdx.x); i < n / 4; i += Threads) {
    const float4 v = row[i];
    out[i] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
  }
}

// The sums of the first reduction may be overwritten only once all have read them.
template <int Threads>
GYRE_KERNEL void two_sums(const float* x, float* out) {
  GYRE_SHARED(float[Threads / 32], sums);
  const float first = block_sum<Threads>(x[threadIdx.x], sums);
  __syncthreads();
  const float second = block_sum<Threads>(x[threadIdx.x] * first, sums);
  if (threadIdx.x == 0) *out = second;
}

template <int Tile>
GYRE_KERNEL void transpose(const float* a, float* b, unsigned n) {
  GYRE_SHARED(float[Tile][Tile + 1], tile);
  const unsigned x = blockIdx.x * Tile + threadIdx.x, y = blockIdx.y * Tile + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = a[y * n + x];
  __syncthreads();
  const unsigned u = blockIdx.y * Tile + threadIdx.x, v = blockIdx.x * Tile + threadIdx.y;
  if (u < n && v < n) b[v * n + u] = tile[threadIdx.x][threadIdx.y];
}

// The barrier lies behind a branch and in an unrolled loop: compilers duplicate it, which must not make it a different one.
template <int Rounds>
GYRE_KERNEL void rotate(int* out) {
  GYRE_SHARED(int[64], ring);
  int v = static_cast<int>(threadIdx.x);
  GYRE_UNROLL for (int i = 0; i < Rounds; ++i) {
    if (v % 3 == 0)
      ring[threadIdx.x] = v + 3;
    else if (v % 3 == 1)
      ring[threadIdx.x] = v * 2;
    else
      ring[threadIdx.x] = v - 1;
    __syncthreads();
    v = ring[(threadIdx.x + 1) % 64];
    __syncthreads();
  }
  out[threadIdx.x] = v;
}

// As in the CUDA programming guide: the last block to finish adds what all have written.
template <int Threads, bool EachFences>
GYRE_KERNEL void last_block_sum(const float* x, float* partial, unsigned* ticket, float* out) {
  GYRE_SHARED(float[Threads / 32], sums);
  GYRE_SHARED(bool, last);
  const float sum = block_sum<Threads>(x[blockIdx.x * Threads + threadIdx.x], sums);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  if constexpr (EachFences) {
    __threadfence();
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    if constexpr (!EachFences) __threadfence();
    last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float total = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
  total = block_sum<Threads>(total, sums);
  if (threadIdx.x == 0) *out = total, *ticket = 0;
}

template <int Bins>
GYRE_KERNEL void histogram(const unsigned char* x, unsigned n, unsigned* counts) {
  GYRE_SHARED(unsigned[Bins], mine);
  for (unsigned i = threadIdx.x; i < Bins; i += blockDim.x) mine[i] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i] % Bins], 1u);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < Bins; i += blockDim.x) atomicAdd(&counts[i], mine[i]);
}

// Threads write bytes, or halves, of words that they share.
template <class T>
GYRE_KERNEL void neighbours(T* out, unsigned n) {
  GYRE_DYNAMIC_SHARED(T, all);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  all[threadIdx.x] = static_cast<T>(i);
  __syncthreads();
  if (i < n) out[i] = all[blockDim.x - 1 - threadIdx.x];
}

// Everyone reads the same word, and then one writes it.
template <int = 0>
GYRE_KERNEL void broadcast(const int* weight, int* out) {
  GYRE_SHARED(int, current);
  if (threadIdx.x == 0) current = *weight;
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    __syncthreads();
    sum += current;
    __syncthreads();
    if (threadIdx.x == 17u + static_cast<unsigned>(i)) current = sum;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int = 0>
GYRE_KERNEL void largest(const float* x, unsigned n, unsigned* bits) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned mine = __float_as_uint(x[i]);  // of numbers that are not negative, order is that of their bits
  unsigned seen = atomicCAS(bits, 0u, 0u);
  while (seen < mine) {
    const unsigned before = atomicCAS(bits, seen, mine);
    if (before == seen) break;
    seen = before;
  }
}

struct view {
  float* data;
  long long stride;
  float scale;
};
template <int = 0>
GYRE_KERNEL void through_view(view v, int rows) {
  float local[8];
  for (int i = 0; i < 8; ++i) local[i] = static_cast<float>(i) * v.scale;
  const float* p = local;
  if (static_cast<int>(threadIdx.x) < rows)
    for (int i = 0; i < 8; ++i) v.data[static_cast<long long>(threadIdx.x) * v.stride + i] = *p++;
}

template <int Rows>
GYRE_KERNEL void double_buffer(const float4* x, float4* y, int tiles) {
  GYRE_SHARED(float4[2][Rows], buffer);
  const auto load = [&](int tile) {
    __pipeline_memcpy_async(&buffer[tile % 2][threadIdx.x], &x[tile * Rows + static_cast<int>(threadIdx.x)], 16);
    __pipeline_commit();
  };
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      load(tile + 1);
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    y[tile * Rows + static_cast<int>(threadIdx.x)] = buffer[tile % 2][Rows - 1 - threadIdx.x];
    __syncthreads();
  }
}

template <int Threads>
void run_last_block(simt::machine& m, void (*kernel)(const float*, float*, unsigned*, float*)) {
  auto x = m.allocate<float>(5 * 64), partial = m.allocate<float>(5), out = m.allocate<float>(1);
  auto ticket = m.allocate<unsigned>(1);
  for (float& v : x) v = 0.5f;
  ticket[0] = 0;
  simt::launch(kernel, 5, 64, 0, &m, x.data(), partial.data(), ticket.data(), out.data());
  expect(out[0] == 160, "last_block_sum");
}

}  // namespace

std::vector<kernel_case> correct_blocks() {
  return {
      {"normalise",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<float>(3 * 200), y = m.allocate<float>(3 * 200);
         for (float& v : x) v = 2;
         simt::launch(normalise<128>, 3, 128, 0, &m, x.data(), y.data(), 200);
         for (const float v : y) expect(v == 1, "normalise");
       }},
      {"two_sums",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<float>(96), out = m.allocate<float>(1);
         for (float& v : x) v = 1;
         simt::launch(two_sums<96>, 1, 96, 0, &m, x.data(), out.data());
         expect(out[0] == 96 * 96, "two_sums");
       }},
      {"transpose",
       {},
       [](simt::machine& m) {
         auto a = m.allocate<float>(21 * 21), b = m.allocate<float>(21 * 21);
         for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
         simt::launch(transpose<8>, dim3(3, 3), dim3(8, 8), 0, &m, a.data(), b.data(), 21u);
         for (std::size_t i = 0; i < 21; ++i)
           for (std::size_t j = 0; j < 21; ++j) expect(b[i * 21 + j] == a[j * 21 + i], "transpose");
       }},
      {"rotate",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<int>(64);
         simt::launch(rotate<5>, 1, 64, 0, &m, out.data());
       }},
      {"last_block_sum", {}, [](simt::machine& m) { run_last_block<64>(m, last_block_sum<64, false>); }},
      {"last_block_sum, each thread fences", {}, [](simt::machine& m) { run_last_block<64>(m, last_block_sum<64, true>); }},
      {"histogram",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<unsigned char>(1000);
         auto counts = m.allocate<unsigned>(10);
         for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<unsigned char>(i % 10);
         for (unsigned& c : counts) c = 0;
         simt::launch(histogram<10>, 4, 64, 0, &m, x.data(), 1000u, counts.data());
         for (const unsigned c : counts) expect(c == 100, "histogram");
       }},
      {"neighbouring bytes",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<unsigned char>(75);
         simt::launch(neighbours<unsigned char>, 3, 33, 33, &m, out.data(), 75u);
         expect(out[0] == 32 && out[74] == 90, "neighbouring bytes");
       }},
      {"neighbouring halves",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<short>(75);
         simt::launch(neighbours<short>, 3, 33, 66, &m, out.data(), 75u);
         expect(out[0] == 32 && out[74] == 90, "neighbouring halves");
       }},
      {"broadcast",
       {},
       [](simt::machine& m) {
         auto weight = m.allocate<int>(1), out = m.allocate<int>(4 * 96);
         weight[0] = 1;
         simt::launch(broadcast<>, 4, 96, 0, &m, weight.data(), out.data());
         for (const int v : out) expect(v == 4, "broadcast");
       }},
      {"largest",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<float>(200);
         auto bits = m.allocate<unsigned>(1);
         for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 199);
         bits[0] = 0;
         simt::launch(largest<>, 4, 64, 0, &m, x.data(), 200u, bits.data());
         expect(__uint_as_float(bits[0]) == 198, "largest");
       }},
      {"through_view",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<float>(70);
         simt::launch(through_view<>, 1, 32, 0, &m, view{x.data(), 10, 2.0f}, 7);
         expect(x[63] == 6, "through_view");
       }},
      {"double_buffer",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<float4>(5 * 32), y = m.allocate<float4>(5 * 32);
         for (std::size_t i = 0; i < x.size(); ++i) x[i] = make_float4(static_cast<float>(i), 0, 0, 1);
         simt::launch(double_buffer<32>, 1, 32, 0, &m, x.data(), y.data(), 5);
         for (std::size_t i = 0; i < y.size(); ++i) expect(y[i].x == x[i / 32 * 32 + 31 - i % 32].x, "double_buffer");
       }},
      {"a grid of size 0",
       {},
       [](simt::machine& m) { simt::launch(rotate<5>, dim3(0), 64, 0, &m, static_cast<int*>(nullptr)); }},
  };
}

}  // namespace suite
