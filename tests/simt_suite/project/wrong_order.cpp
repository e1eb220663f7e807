// Wrong kernels: accesses without an order, reads of what nothing wrote, copies that nothing awaits.
#include "suite.hpp"

namespace suite {
namespace {

using enum simt::fault_kind;

GYRE_DEVICE int warp_sum(int v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// First: no barrier before the sums are read. Otherwise: none before they are overwritten by a second sum.
template <bool First>
GYRE_KERNEL void block_sums(const int* x, int* out) {
  GYRE_SHARED(int[2], sums);
  const int a = warp_sum(x[threadIdx.x]);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = a;
  if constexpr (!First) __syncthreads();
  const int total = sums[0] + sums[1], b = warp_sum(total);
  if constexpr (First) __syncthreads();
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = b;
  __syncthreads();
  out[threadIdx.x] = sums[0] + sums[1];
}

// A shuffle between a write and a read of shared memory orders nothing.
template <int = 0>
GYRE_KERNEL void shuffle_is_no_fence(int* out) {
  GYRE_SHARED(int[32], slots);
  slots[threadIdx.x] = static_cast<int>(threadIdx.x);
  const int v = __shfl_xor_sync(~0u, static_cast<int>(threadIdx.x), 1);
  out[threadIdx.x] = slots[threadIdx.x ^ 1u] + v;
}
template <int = 0>
GYRE_KERNEL void vote_is_no_fence(int* out) {
  GYRE_SHARED(int[32], slots);
  slots[threadIdx.x] = static_cast<int>(threadIdx.x);
  const bool all = __all_sync(~0u, 1) != 0;
  out[threadIdx.x] = slots[31 - threadIdx.x] + all;
}

// Each half synchronises by itself, but reads what the other half wrote.
template <int = 0>
GYRE_KERNEL void wrong_half(int* out) {
  GYRE_SHARED(int[32], slots);
  slots[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp(threadIdx.x < 16 ? 0x0000ffffu : 0xffff0000u);
  out[threadIdx.x] = slots[31 - threadIdx.x];
}

// Lanes 0, 1 and 2 read; lane 3 writes once it has synchronised with 1 and 2. The first of three readers is what counts.
template <int Reader>
GYRE_KERNEL void forgotten_reader(int* out) {
  GYRE_SHARED(int, slot);
  if (threadIdx.x == 0) slot = 5;
  __syncthreads();
  if (threadIdx.x < 3) out[threadIdx.x] = slot;
  if (threadIdx.x < 4 && threadIdx.x != Reader) {
    __syncwarp(0xfu & ~(1u << Reader));
    if (threadIdx.x == 3) slot = 6;
  }
}

// Two threads write bytes of one word, and one of them a byte of the other.
template <int = 0>
GYRE_KERNEL void overlapping_bytes(unsigned char* out) {
  GYRE_SHARED(unsigned char[8], bytes);
  bytes[threadIdx.x] = 1;
  if (threadIdx.x == 2) bytes[3] = 2;
  __syncthreads();
  out[threadIdx.x] = bytes[threadIdx.x];
}

template <int = 0>
GYRE_KERNEL void plain_count(const int* key, int* counts) {
  if (threadIdx.x == 0) counts[key[blockIdx.x]] += 1;
}
template <int = 0>
GYRE_KERNEL void plain_count_in_block(int* count) {
  GYRE_SHARED(int, mine);
  if (threadIdx.x == 0) mine = 0;
  __syncthreads();
  mine += 1;
  __syncthreads();
  if (threadIdx.x == 0) *count = mine;
}
template <int = 0>
GYRE_KERNEL void blocks_write_one_place(float* out) {
  if (threadIdx.x == 0) out[blockIdx.x / 2] = static_cast<float>(blockIdx.x);
}
// Block 0 reads what block 1 writes.
template <int = 0>
GYRE_KERNEL void neighbour_block(int* x) {
  const int next = x[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 32 + threadIdx.x] = next;
}

enum class fence { none, after };
template <fence Fence>
GYRE_KERNEL void last_block(int* partial, unsigned* ticket, int* out) {
  GYRE_SHARED(bool, last);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 1;
    last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    if constexpr (Fence == fence::after) __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
    *out = sum;
  }
}
// All threads write, but the fence of thread 0 comes before the barrier behind those writes.
template <int = 0>
GYRE_KERNEL void fence_too_early(int* partial, unsigned* ticket, int* out) {
  GYRE_SHARED(bool, last);
  partial[blockIdx.x * 32 + threadIdx.x] = 1;
  if (threadIdx.x == 0) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(ticket, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 32 + threadIdx.x];
  out[threadIdx.x] = sum;
}

// Each block reads, and the last one to take a ticket writes. If block 0 takes none, nothing orders its reads.
template <bool Each>
GYRE_KERNEL void hand_over(int* x, unsigned* ticket, int* out) {
  if (threadIdx.x < 2) out[blockIdx.x * 2 + threadIdx.x] = *x;
  __syncthreads();
  if (threadIdx.x > 0 || (!Each && blockIdx.x == 0)) return;
  __threadfence();
  if (atomicAdd(ticket, 1u) == (Each ? 2u : 1u)) *x = 1;
}
template <bool Each>
void run_hand_over(simt::machine& m) {
  auto x = m.allocate<int>(1), out = m.allocate<int>(6);
  auto ticket = m.allocate<unsigned>(1);
  ticket[0] = 0;
  simt::launch(hand_over<Each>, 3, 32, 0, &m, x.data(), ticket.data(), out.data());
}

// Atomics do not order each other, and a plain read beside them is a race.
template <int = 0>
GYRE_KERNEL void read_beside_atomics(int* count, int* out) {
  atomicAdd(count, 1);
  if (threadIdx.x == 0) *out = *count;
}

template <int = 0>
GYRE_KERNEL void unwritten_tail(const int* x, int n, int* out) {
  GYRE_SHARED(int[32], tile);
  if (static_cast<int>(threadIdx.x) < n) tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}

enum class missing { wait, enough_wait, barrier, barrier_before_refill };
template <missing Missing>
GYRE_KERNEL void pipeline(const int* x, int* y, int tiles) {
  GYRE_SHARED(int[2][32], buffer);
  const auto load = [&](int tile) {
    __pipeline_memcpy_async(&buffer[tile % 2][threadIdx.x], &x[tile * 32 + static_cast<int>(threadIdx.x)], 4);
    __pipeline_commit();
  };
  load(0);
  for (int tile = 0; tile < tiles; ++tile) {
    const bool more = tile + 1 < tiles;
    if (more) load(tile + 1);
    if constexpr (Missing == missing::enough_wait)
      __pipeline_wait_prior(1);
    else if constexpr (Missing != missing::wait)
      more ? __pipeline_wait_prior(1) : __pipeline_wait_prior(0);
    if constexpr (Missing != missing::barrier) __syncthreads();
    y[tile * 32 + static_cast<int>(threadIdx.x)] = buffer[tile % 2][31 - threadIdx.x];
    if constexpr (Missing != missing::barrier_before_refill) __syncthreads();
  }
}
template <missing Missing>
void run_pipeline(simt::machine& m) {
  auto x = m.allocate<int>(4 * 32), y = m.allocate<int>(4 * 32);
  for (int& v : x) v = 1;
  simt::launch(pipeline<Missing>, 1, 32, 0, &m, x.data(), y.data(), 4);
}

template <class Kernel>
void run_shared(simt::machine& m, Kernel kernel, unsigned threads = 32) {
  auto out = m.allocate<int>(64);
  simt::launch(kernel, 1, threads, 0, &m, out.data());
}

}  // namespace

std::vector<kernel_case> wrong_order() {
  return {
      {"no barrier before sums are read", race,
       [](simt::machine& m) {
         auto x = m.allocate<int>(64), out = m.allocate<int>(64);
         simt::launch(block_sums<true>, 1, 64, 0, &m, x.data(), out.data());
       }},
      {"no barrier before sums are overwritten", race,
       [](simt::machine& m) {
         auto x = m.allocate<int>(64), out = m.allocate<int>(64);
         simt::launch(block_sums<false>, 1, 64, 0, &m, x.data(), out.data());
       }},
      {"a shuffle is no fence", race, [](simt::machine& m) { run_shared(m, shuffle_is_no_fence<>); }},
      {"a vote is no fence", race, [](simt::machine& m) { run_shared(m, vote_is_no_fence<>); }},
      {"__syncwarp of the wrong half", race, [](simt::machine& m) { run_shared(m, wrong_half<>); }},
      {"the first of three readers", race, [](simt::machine& m) { run_shared(m, forgotten_reader<0>); }},
      {"the second of three readers", race, [](simt::machine& m) { run_shared(m, forgotten_reader<1>); }},
      {"the last of three readers", race, [](simt::machine& m) { run_shared(m, forgotten_reader<2>); }},
      {"overlapping bytes", race,
       [](simt::machine& m) {
         auto out = m.allocate<unsigned char>(8);
         simt::launch(overlapping_bytes<>, 1, 8, 0, &m, out.data());
       }},
      {"counting without atomics", race,
       [](simt::machine& m) {
         auto key = m.allocate<int>(8), counts = m.allocate<int>(2);
         for (std::size_t i = 0; i < 8; ++i) key[i] = static_cast<int>(i % 2);
         simt::launch(plain_count<>, 8, 32, 0, &m, key.data(), counts.data());
       }},
      {"counting in a block without atomics", race, [](simt::machine& m) { run_shared(m, plain_count_in_block<>, 64); }},
      {"two blocks write one place", race,
       [](simt::machine& m) {
         auto out = m.allocate<float>(3);
         simt::launch(blocks_write_one_place<>, 6, 32, 0, &m, out.data());
       }},
      {"a block reads what the next one writes", race,
       [](simt::machine& m) {
         auto x = m.allocate<int>(3 * 32);
         simt::launch(neighbour_block<>, 3, 32, 0, &m, x.data());
       }},
      {"a ticket without a fence", race,
       [](simt::machine& m) {
         auto partial = m.allocate<int>(4), out = m.allocate<int>(1);
         auto ticket = m.allocate<unsigned>(1);
         ticket[0] = 0;
         simt::launch(last_block<fence::none>, 4, 32, 0, &m, partial.data(), ticket.data(), out.data());
       }},
      {"a fence behind the ticket", race,
       [](simt::machine& m) {
         auto partial = m.allocate<int>(4), out = m.allocate<int>(1);
         auto ticket = m.allocate<unsigned>(1);
         ticket[0] = 0;
         simt::launch(last_block<fence::after>, 4, 32, 0, &m, partial.data(), ticket.data(), out.data());
       }},
      {"a fence before the barrier", race,
       [](simt::machine& m) {
         auto partial = m.allocate<int>(4 * 32), out = m.allocate<int>(32);
         auto ticket = m.allocate<unsigned>(1);
         ticket[0] = 0;
         simt::launch(fence_too_early<>, 4, 32, 0, &m, partial.data(), ticket.data(), out.data());
       }},
      {"readers of a block that takes no ticket", race, run_hand_over<false>},
      {"readers of blocks that all take tickets", {}, run_hand_over<true>},
      {"a plain read beside atomics", race,
       [](simt::machine& m) {
         auto count = m.allocate<int>(1), out = m.allocate<int>(1);
         simt::launch(read_beside_atomics<>, 1, 32, 0, &m, count.data(), out.data());
       }},
      {"the unwritten end of a tile", unwritten_shared,
       [](simt::machine& m) {
         auto x = m.allocate<int>(32), out = m.allocate<int>(32);
         simt::launch(unwritten_tail<>, 1, 32, 0, &m, x.data(), 31, out.data());
       }},
      {"an asynchronous copy is not awaited", missing_async_wait, [](simt::machine& m) { run_pipeline<missing::wait>(m); }},
      {"the last copy is not awaited", missing_async_wait, [](simt::machine& m) { run_pipeline<missing::enough_wait>(m); }},
      {"no barrier behind the wait", race, [](simt::machine& m) { run_pipeline<missing::barrier>(m); }},
      {"a buffer is refilled without a barrier", race,
       [](simt::machine& m) { run_pipeline<missing::barrier_before_refill>(m); }},
  };
}

}  // namespace suite
