// Wrong kernels: barriers and warp operations that not all reach, masks that are not those of the lanes.
#include "suite.hpp"

namespace suite {
namespace {

using enum simt::fault_kind;

template <int = 0>
GYRE_KERNEL void two_barriers(int* out) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}
// Half of the threads go once more through the loop.
template <int = 0>
GYRE_KERNEL void uneven_loop(int* out) {
  const int rounds = threadIdx.x < 40 ? 2 : 3;
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    out[threadIdx.x] = i;
  }
}
template <int = 0>
GYRE_KERNEL void leave_before_barrier(int* out, unsigned n) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = out[n - 1 - threadIdx.x];
}
template <int = 0>
GYRE_KERNEL void barrier_in_branch(int* out) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  out[threadIdx.x] = 1;
}
template <int = 0>
GYRE_KERNEL void shuffle_in_branch(int* out) {
  int v = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 16) v = __shfl_xor_sync(~0u, v, 1);
  __syncthreads();
  out[threadIdx.x] = v;
}
// The same, but the other lanes end.
template <int = 0>
GYRE_KERNEL void shuffle_behind_exit(int* out) {
  if (threadIdx.x == 31) return;
  out[threadIdx.x] = __shfl_xor_sync(~0u, static_cast<int>(threadIdx.x), 1);
}
template <int = 0>
GYRE_KERNEL void different_operations(int* out) {
  int v = static_cast<int>(threadIdx.x);
  if (threadIdx.x % 2 == 0)
    v = __shfl_xor_sync(~0u, v, 1);
  else
    v = __shfl_down_sync(~0u, v, 1);
  out[threadIdx.x] = v;
}
template <int = 0>
GYRE_KERNEL void different_masks(int* out) {
  const unsigned mask = threadIdx.x == 0 ? ~0u : ~1u;
  out[threadIdx.x] = __shfl_sync(mask, static_cast<int>(threadIdx.x), 5);
}
template <int = 0>
GYRE_KERNEL void mask_without_caller(int* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 0);
}
template <int = 0>
GYRE_KERNEL void source_outside_mask(int* out) {
  if (threadIdx.x >= 24) return;
  out[threadIdx.x] = __shfl_xor_sync(0x00ffffffu, static_cast<int>(threadIdx.x), 8);
}
// A block of 40 threads: lane 8 of the second warp does not exist.
template <int = 0>
GYRE_KERNEL void source_beyond_block(int* out) {
  out[threadIdx.x] = __shfl_down_sync(~0u, static_cast<int>(threadIdx.x), 1);
}
template <int = 0>
GYRE_KERNEL void warp_barrier_names_ended_lane(int* out) {
  if (threadIdx.x == 3) return;
  __syncwarp();
  out[threadIdx.x] = 1;
}
template <int = 0>
GYRE_KERNEL void width_of_three(int* out) {
  out[threadIdx.x] = __shfl_sync(~0u, static_cast<int>(threadIdx.x), 0, 3);
}

template <class Kernel>
void run_out(simt::machine& m, Kernel kernel, unsigned threads) {
  auto out = m.allocate<int>(64);
  simt::launch(kernel, 1, threads, 0, &m, out.data());
}

}  // namespace

std::vector<kernel_case> wrong_barriers() {
  return {
      {"two barriers in two branches", divergent_barrier, [](simt::machine& m) { run_out(m, two_barriers<>, 64); }},
      {"a barrier in a loop of uneven length", exited_barrier, [](simt::machine& m) { run_out(m, uneven_loop<>, 64); }},
      {"a barrier behind an exit", exited_barrier,
       [](simt::machine& m) {
         auto out = m.allocate<int>(64);
         simt::launch(leave_before_barrier<>, 1, 64, 0, &m, out.data(), 50u);
       }},
      {"a barrier that half of the threads miss", exited_barrier,
       [](simt::machine& m) { run_out(m, barrier_in_branch<>, 64); }},
      {"a shuffle that half of a warp misses", deadlock, [](simt::machine& m) { run_out(m, shuffle_in_branch<>, 32); }},
      {"a shuffle behind an exit", exited_barrier, [](simt::machine& m) { run_out(m, shuffle_behind_exit<>, 32); }},
      {"two shuffles of one mask", deadlock, [](simt::machine& m) { run_out(m, different_operations<>, 32); }},
      {"two masks of one shuffle", exited_barrier, [](simt::machine& m) { run_out(m, different_masks<>, 32); }},
      {"a mask without its caller", wrong_mask, [](simt::machine& m) { run_out(m, mask_without_caller<>, 32); }},
      {"a source outside of the mask", inactive_lane, [](simt::machine& m) { run_out(m, source_outside_mask<>, 32); }},
      {"a source beyond the block", inactive_lane, [](simt::machine& m) { run_out(m, source_beyond_block<>, 40); }},
      {"__syncwarp names a lane that has ended", exited_barrier,
       [](simt::machine& m) { run_out(m, warp_barrier_names_ended_lane<>, 32); }},
      {"a width of three", wrong_mask, [](simt::machine& m) { run_out(m, width_of_three<>, 32); }},
  };
}

}  // namespace suite
