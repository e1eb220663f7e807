// Wrong kernels: addresses that are not theirs, addresses that do not suit, launches that no GPU takes.
#include "suite.hpp"

namespace suite {
namespace {

using enum simt::fault_kind;

template <class T>
GYRE_KERNEL void copy(const T* x, T* y, int first, int end) {
  for (int i = first + static_cast<int>(threadIdx.x); i < end; i += static_cast<int>(blockDim.x)) y[i] = x[i];
}
template <int = 0>
GYRE_KERNEL void shared_overrun(int* out) {
  GYRE_SHARED(int[32], a);
  GYRE_SHARED(int[32], b);
  a[threadIdx.x] = b[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = a[threadIdx.x + 1] + b[threadIdx.x];
}
template <int = 0>
GYRE_KERNEL void dynamic_overrun(int* out) {
  GYRE_DYNAMIC_SHARED(int, a);
  a[threadIdx.x] = 1;
  out[threadIdx.x] = a[threadIdx.x];
}
template <int = 0>
GYRE_KERNEL void half_aligned(const float* x, float* y) {
  const float4 v = reinterpret_cast<const float4*>(x)[threadIdx.x];
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
template <int = 0>
GYRE_KERNEL void member_off_alignment(const float* x, float* y) {
  y[threadIdx.x] = reinterpret_cast<const float4*>(x)[threadIdx.x].y;
}
template <int = 0>
GYRE_KERNEL void misaligned_store(float* y) {
  *reinterpret_cast<float2*>(y + 3 * threadIdx.x) = make_float2(1, 2);
}
template <int = 0>
GYRE_KERNEL void misaligned_atomic(unsigned* x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(x + 1), 1ull);
}
template <int = 0>
GYRE_KERNEL void atomic_beyond(int* x, int i) {
  atomicAdd(x + i, 1);
}
template <int = 0>
GYRE_KERNEL void misaligned_rows(int* out) {
  GYRE_SHARED(short[8][9], matrix);
  for (unsigned i = threadIdx.x; i < 72; i += 32) matrix[i / 9][i % 9] = 0;
  __syncthreads();
  out[threadIdx.x] = static_cast<int>(simt::load_matrices<1>(&matrix[threadIdx.x % 8][0]).part[0]);
}
template <int = 0>
GYRE_KERNEL void misaligned_copy(const int* x) {
  GYRE_SHARED(int[64], tile);
  __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
}
template <int = 0>
GYRE_KERNEL void local_of_another(int* out) {
  GYRE_SHARED(int*, pointer);
  int local = 7;
  if (threadIdx.x == 0) pointer = &local;
  __syncthreads();
  out[threadIdx.x] = *pointer;
  __syncthreads();
}
template <int = 0>
GYRE_KERNEL void fixed_shared(int* out) {
  GYRE_SHARED(char[40000], a);
  GYRE_SHARED(char[10000], b);
  a[threadIdx.x] = b[threadIdx.x] = 1;
  *out = 1;
}
template <int = 0>
GYRE_KERNEL void nothing(int) {}
struct large {
  char bytes[40000];
};
template <int = 0>
GYRE_KERNEL void large_parameter(large) {}

void run_limits(simt::machine& m, dim3 grid, dim3 block, std::size_t shared_bytes) {
  m.settings.blocks.count = 1;
  simt::launch(nothing<>, grid, block, shared_bytes, &m, 1);
}

}  // namespace

std::vector<kernel_case> wrong_memory() {
  return {
    {"one element too far is read", out_of_bounds,
     [](simt::machine& m) {
       auto x = m.allocate<float>(100), y = m.allocate<float>(101);
       simt::launch(copy<float>, 1, 32, 0, &m, x.data(), y.data(), 0, 101);
     }},
        {"a byte before the beginning is written", out_of_bounds,
         [](simt::machine& m) {
           auto x = m.allocate<char>(100), y = m.allocate<char>(100);
           simt::launch(copy<char>, 1, 32, 0, &m, x.data() + 1, y.data(), -1, 99);
         }},
        {"an element reaches over the end", out_of_bounds,
         [](simt::machine& m) {
           auto x = m.allocate<double>(10), y = m.allocate<double>(10);
           auto short_y = m.allocate<char>(78);
           simt::launch(copy<double>, 1, 32, 0, &m, x.data(), reinterpret_cast<double*>(short_y.data()), 0, 10);
         }},
        {"the next object of an arena", out_of_bounds,
         [](simt::machine& m) {
           simt::guarded_arena arena(m.memory(), 4096);
           int* const x = arena.take<int>(10, "x");
           int* const y = arena.take<int>(10, "y");
           simt::launch(copy<int>, 1, 32, 0, &m, static_cast<const int*>(x), y, 0, 11);
         }},
        {"a freed frame of an arena", out_of_bounds,
         [](simt::machine& m) {
           simt::guarded_arena arena(m.memory(), 4096);
           int* const x = arena.take<int>(10, "x");
           const std::size_t mark = arena.mark();
           int* const y = arena.take<int>(10, "y");
           arena.release(mark);
           simt::launch(copy<int>, 1, 32, 0, &m, static_cast<const int*>(y), x, 0, 10);
         }},
        {"memory of the host", out_of_bounds,
         [](simt::machine& m) {
           auto y = m.allocate<int>(10);
           const std::vector<int> x(10);
           simt::launch(copy<int>, 1, 32, 0, &m, x.data(), y.data(), 0, 10);
         }},
        {"a null pointer", out_of_bounds,
         [](simt::machine& m) {
           auto x = m.allocate<int>(10);
           simt::launch(copy<int>, 1, 32, 0, &m, x.data(), static_cast<int*>(nullptr), 0, 10);
         }},
        {"shared memory of the next object", out_of_bounds,
         [](simt::machine& m) {
           auto out = m.allocate<int>(32);
           simt::launch(shared_overrun<>, 1, 32, 0, &m, out.data());
         }},
        {"more than the dynamic shared memory", out_of_bounds,
         [](simt::machine& m) {
           auto out = m.allocate<int>(32);
           simt::launch(dynamic_overrun<>, 1, 32, 31 * sizeof(int), &m, out.data());
         }},
        {"local memory of another thread", out_of_bounds,
         [](simt::machine& m) {
           auto out = m.allocate<int>(32);
           simt::launch(local_of_another<>, 1, 32, 0, &m, out.data());
         }},
        {"an atomic beyond the end", out_of_bounds,
         [](simt::machine& m) {
           auto x = m.allocate<int>(4);
           simt::launch(atomic_beyond<>, 1, 1, 0, &m, x.data(), 4);
         }},
        {"a vector's member off its alignment", misaligned,
         [](simt::machine& m) {
           auto x = m.allocate<float>(132), y = m.allocate<float>(32);
           simt::launch(member_off_alignment<>, 1, 32, 0, &m, x.data() + 2, y.data());
         }},
#if !defined(__clang__)  // which does not check copies of whole objects; docs/simt.md says so
        {"a vector load off its alignment", misaligned,
         [](simt::machine& m) {
           auto x = m.allocate<float>(132), y = m.allocate<float>(32);
           simt::launch(half_aligned<>, 1, 32, 0, &m, x.data() + 2, y.data());
         }},
        {"a vector store off its alignment", misaligned,
         [](simt::machine& m) {
           auto y = m.allocate<float>(100);
           simt::launch(misaligned_store<>, 1, 32, 0, &m, y.data());
         }},
#endif
        {"an atomic off its alignment", misaligned,
         [](simt::machine& m) {
           auto x = m.allocate<unsigned>(4);
           simt::launch(misaligned_atomic<>, 1, 1, 0, &m, x.data());
         }},
        {"rows of a matrix off their alignment", misaligned,
         [](simt::machine& m) {
           auto out = m.allocate<int>(32);
           simt::launch(misaligned_rows<>, 1, 32, 0, &m, out.data());
         }},
        {"an asynchronous copy off its alignment", misaligned,
         [](simt::machine& m) {
           auto x = m.allocate<int>(64);
           simt::launch(misaligned_copy<>, 1, 8, 0, &m, x.data());
         }},
        {"too much static shared memory", launch_limit,
         [](simt::machine& m) {
           auto out = m.allocate<int>(1);
           simt::launch(fixed_shared<>, 1, 1, 0, &m, out.data());
         }},
        {"no dynamic shared memory", launch_limit,
         [](simt::machine& m) {
           auto out = m.allocate<int>(32);
           simt::launch(dynamic_overrun<>, 1, 32, 0, &m, out.data());
         }},
        {"shared memory that sm_90 has and sm_80 has not", launch_limit,
         [](simt::machine& m) { run_limits(m, 1, 32, 164 * 1024); }},
        {"shared memory that sm_80 has and sm_120 has not", launch_limit,
         [](simt::machine& m) {
           m.settings.target = simt::sm_120;
           run_limits(m, 1, 32, 100 * 1024);
         }},
        {"a grid too large in y", launch_limit, [](simt::machine& m) { run_limits(m, dim3(1, 65536), 32, 0); }},
        {"a grid too large in z", launch_limit, [](simt::machine& m) { run_limits(m, dim3(1, 1, 65536), 32, 0); }},
        {"a block of 1056 threads", launch_limit, [](simt::machine& m) { run_limits(m, 1, 1056, 0); }},
        {"a block too large in z", launch_limit, [](simt::machine& m) { run_limits(m, 1, dim3(1, 1, 65), 0); }},
        {"parameters of 40000 bytes", launch_limit,
         [](simt::machine& m) { simt::launch(large_parameter<>, 1, 1, 0, &m, large{}); }},
  };
}

}  // namespace suite
