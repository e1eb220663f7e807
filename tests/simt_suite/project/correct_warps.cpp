// Correct kernels whose lanes meet in warps.
#include "suite.hpp"

namespace suite {
namespace {

// Each half of a warp goes its own way and synchronises by itself.
template <int = 0>
GYRE_KERNEL void halves(int* out) {
  GYRE_SHARED(int[32], slots);
  const unsigned lane = threadIdx.x, mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  slots[lane] = static_cast<int>(lane);
  if (lane < 16) {
    __syncwarp(mask);
    out[lane] = slots[15 - lane];
  } else {
    __syncwarp(mask);
    out[lane] = slots[47 - lane] + 100;
  }
  const int sum = __shfl_xor_sync(mask, out[lane], 1);
  __syncwarp(mask);
  slots[lane] = sum;
}

template <int Warps>
GYRE_KERNEL void exchange(const int* x, int* out) {
  GYRE_SHARED(int[Warps][32], slots);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = x[threadIdx.x];
  for (unsigned step = 1; step < 32; step *= 2) {
    slots[warp][lane] = v;
    __syncwarp();
    const int other = slots[warp][lane ^ step];
    __syncwarp();
    v += other;
  }
  out[threadIdx.x] = v;
}

template <int = 0>
GYRE_KERNEL void scan(const int* x, int* out) {
  int v = x[threadIdx.x];
  const int in_group = static_cast<int>(threadIdx.x % 8);
  for (unsigned d = 1; d < 8; d *= 2) {
    const int before = __shfl_up_sync(~0u, v, d, 8);
    if (in_group >= static_cast<int>(d)) v += before;
  }
  const int last = __shfl_sync(~0u, v, 7, 8), next = __shfl_down_sync(~0u, v, 1, 8);
  out[threadIdx.x] = v * 10000 + last * 100 + next;
}

// Keeps what is positive, in its order within the warp.
template <int = 0>
GYRE_KERNEL void compact(const int* x, unsigned n, int* kept, unsigned* count) {
  const unsigned i = threadIdx.x, lane = i % 32;
  if (i - lane >= n) return;  // whole warps leave
  const int v = i < n ? x[i] : 0;
  const unsigned votes = __ballot_sync(~0u, v > 0);
  unsigned base = 0;
  if (lane == 0) base = atomicAdd(count, static_cast<unsigned>(__popc(votes)));
  base = __shfl_sync(~0u, base, 0);
  if (v > 0) kept[base + static_cast<unsigned>(__popc(votes & ((1u << lane) - 1)))] = v;
}

// A block of 40: the second warp has 8 lanes, and masks may name the others.
template <int = 0>
GYRE_KERNEL void partial_warp(int* out) {
  GYRE_SHARED(int[40], slots);
  slots[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  const unsigned neighbour = threadIdx.x ^ 1u;
  const bool any = __any_sync(~0u, threadIdx.x == 35) != 0;
  out[threadIdx.x] = slots[neighbour] + (any ? 1000 : 0);
}

// Lanes leave in groups that later masks do not name.
template <int = 0>
GYRE_KERNEL void early_exit(int* out, unsigned live) {
  const unsigned lane = threadIdx.x;
  const unsigned mask = __ballot_sync(~0u, lane < live);
  if (lane >= live) return;
  int v = static_cast<int>(lane);
  v = __shfl_sync(mask, v, static_cast<int>(live - 1 - lane));
  out[lane] = v;
}

template <int = 0>
GYRE_KERNEL void grouped_add(const int* key, unsigned* counts) {
  const unsigned peers = __match_any_sync(~0u, key[threadIdx.x]);
  if (threadIdx.x == static_cast<unsigned>(__ffs(static_cast<int>(peers)) - 1))
    atomicAdd(&counts[key[threadIdx.x]], static_cast<unsigned>(__popc(peers)));
  const int total = __reduce_add_sync(~0u, key[threadIdx.x]), most = __reduce_max_sync(~0u, -key[threadIdx.x]);
  if (threadIdx.x == 0) counts[8] = static_cast<unsigned>(total), counts[9] = static_cast<unsigned>(-most);
}

// A warp hands a value on through a fence and an atomic of its own block; the other warp sees it because it came later.
template <int = 0>
GYRE_KERNEL void last_warp(int* partial, unsigned* ticket, int* out) {
  GYRE_SHARED(unsigned[2], tickets);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  partial[threadIdx.x] = static_cast<int>(threadIdx.x);
  __threadfence();
  __syncwarp();
  if (lane == 0) tickets[warp] = atomicAdd(ticket, 1u);
  __syncwarp();
  if (tickets[warp] == 1) {
    int sum = partial[lane] + partial[32 + lane];
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) *out = sum;
  }
}

// C (16, 8) = A (16, 16) B^T, B (8, 16).
template <int = 0>
GYRE_KERNEL void tensor_product(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  GYRE_SHARED(__nv_bfloat16[16][24], rows_a);
  GYRE_SHARED(__nv_bfloat16[8][24], rows_b);
  const unsigned lane = threadIdx.x;
  for (unsigned i = lane; i < 256; i += 32) rows_a[i / 16][i % 16] = a[i];
  for (unsigned i = lane; i < 128; i += 32) rows_b[i / 16][i % 16] = b[i];
  __syncthreads();
  const auto from_a = simt::load_matrices<4>(&rows_a[lane % 16][lane / 16 * 8]);
  const auto from_b = simt::load_matrices<2>(&rows_b[lane % 8][lane / 8 % 2 * 8]);
  simt::fragment_c sum{};
  simt::multiply_bf16(sum, {{from_a.part[0], from_a.part[1], from_a.part[2], from_a.part[3]}},
                      {{from_b.part[0], from_b.part[1]}});
  for (unsigned i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum.part[i];
}

template <int = 0>
GYRE_KERNEL void transposed_load(const short* in, short* out) {
  GYRE_SHARED(short[8][8], matrix);
  matrix[threadIdx.x / 4][threadIdx.x % 4 * 2] = in[threadIdx.x * 2];
  matrix[threadIdx.x / 4][threadIdx.x % 4 * 2 + 1] = in[threadIdx.x * 2 + 1];
  __syncwarp();
  const auto m = simt::load_matrices<1, true>(&matrix[threadIdx.x % 8][0]);
  out[threadIdx.x * 2] = static_cast<short>(m.part[0] & 0xffff);
  out[threadIdx.x * 2 + 1] = static_cast<short>(m.part[0] >> 16);
}

}  // namespace

std::vector<kernel_case> correct_warps() {
  return {
      {"halves",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<int>(32);
         simt::launch(halves<>, 1, 32, 0, &m, out.data());
         expect(out[0] == 15 && out[16] == 131, "halves");
       }},
      {"exchange",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<int>(96), out = m.allocate<int>(96);
         for (int& v : x) v = 1;
         simt::launch(exchange<3>, 1, 96, 0, &m, x.data(), out.data());
         for (const int v : out) expect(v == 32, "exchange");
       }},
      {"scan",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<int>(32), out = m.allocate<int>(32);
         for (int& v : x) v = 1;
         simt::launch(scan<>, 1, 32, 0, &m, x.data(), out.data());
         expect(out[9] == 20803 && out[31] == 80808, "scan");
       }},
      {"compact",
       {},
       [](simt::machine& m) {
         auto x = m.allocate<int>(50), kept = m.allocate<int>(50);
         auto count = m.allocate<unsigned>(1);
         for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? static_cast<int>(i) + 1 : -1;
         count[0] = 0;
         simt::launch(compact<>, 1, 96, 0, &m, x.data(), 50u, kept.data(), count.data());
         expect(count[0] == 25, "compact");
       }},
      {"partial_warp",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<int>(40);
         simt::launch(partial_warp<>, 1, 40, 0, &m, out.data());
         expect(out[0] == 1 && out[39] == 1038, "partial_warp");
       }},
      {"early_exit",
       {},
       [](simt::machine& m) {
         auto out = m.allocate<int>(20);
         simt::launch(early_exit<>, 1, 32, 0, &m, out.data(), 20u);
         expect(out[0] == 19 && out[19] == 0, "early_exit");
       }},
      {"grouped_add",
       {},
       [](simt::machine& m) {
         auto key = m.allocate<int>(32);
         auto counts = m.allocate<unsigned>(10);
         for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<int>(i % 8);
         for (unsigned& c : counts) c = 0;
         simt::launch(grouped_add<>, 1, 32, 0, &m, key.data(), counts.data());
         expect(counts[5] == 4 && counts[8] == 112 && counts[9] == 0, "grouped_add");
       }},
      {"last_warp",
       {},
       [](simt::machine& m) {
         auto partial = m.allocate<int>(64), out = m.allocate<int>(1);
         auto ticket = m.allocate<unsigned>(1);
         ticket[0] = 0;
         simt::launch(last_warp<>, 1, 64, 0, &m, partial.data(), ticket.data(), out.data());
         expect(out[0] == 2016, "last_warp");
       }},
      {"tensor_product",
       {},
       [](simt::machine& m) {
         auto a = m.allocate<__nv_bfloat16>(256), b = m.allocate<__nv_bfloat16>(128);
         auto c = m.allocate<float>(128);
         for (std::size_t i = 0; i < a.size(); ++i) a[i] = __float2bfloat16(static_cast<float>(i % 7) - 3);
         for (std::size_t i = 0; i < b.size(); ++i) b[i] = __float2bfloat16(static_cast<float>(i % 5) - 2);
         simt::launch(tensor_product<>, 1, 32, 0, &m, a.data(), b.data(), c.data());
         for (std::size_t i = 0; i < 16; ++i)
           for (std::size_t j = 0; j < 8; ++j) {
             float sum = 0;
             for (std::size_t k = 0; k < 16; ++k) sum += __bfloat162float(a[i * 16 + k]) * __bfloat162float(b[j * 16 + k]);
             expect(c[i * 8 + j] == sum, "tensor_product");
           }
       }},
      {"transposed_load",
       {},
       [](simt::machine& m) {
         auto in = m.allocate<short>(64), out = m.allocate<short>(64);
         for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<short>(i);
         simt::launch(transposed_load<>, 1, 32, 0, &m, in.data(), out.data());
         for (std::size_t i = 0; i < 8; ++i)
           for (std::size_t j = 0; j < 8; ++j) expect(out[i * 8 + j] == in[j * 8 + i], "transposed_load");
       }},
  };
}

}  // namespace suite
