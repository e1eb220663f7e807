// Tensor-core products of bf16 and the loads that feed them: instructions on a GPU, emulated with the same layouts otherwise.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#include <gyre/simt/cuda.hpp>
#else
#include <gyre/simt/intrinsics.hpp>
#endif

namespace gyre_simt {

/// A lane's part of A (16, 16), bf16 by rows, in mma.m16n8k16: with group = lane / 4 and pair = lane % 4, two elements each of
/// rows group, group + 8, group, group + 8 at columns 2 pair, 2 pair, 2 pair + 8, 2 pair + 8.
struct fragment_a {
  std::uint32_t part[4];
};
/// A lane's part of B (16, 8), bf16 by columns: rows 2 pair, 2 pair + 1 and 2 pair + 8, 2 pair + 9 of column group.
struct fragment_b {
  std::uint32_t part[2];
};
/// A lane's part of C (16, 8), fp32: columns 2 pair, 2 pair + 1 of rows group and group + 8.
struct fragment_c {
  float part[4];
};
/// A lane's parts of 8 x 8 matrices of 16-bit elements: elements 2 pair, 2 pair + 1 of row group (column group if transposed).
template <unsigned Matrices>
struct loaded_matrices {
  std::uint32_t part[Matrices];
};

#if defined(__CUDACC__)

/// C += A B by all 32 lanes of a warp together. On a GPU below sm_80 it is not there, and traps.
__device__ __forceinline__ void multiply_bf16(fragment_c& c, const fragment_a& a, const fragment_b& b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(c.part[0]), "+f"(c.part[1]), "+f"(c.part[2]), "+f"(c.part[3])
               : "r"(a.part[0]), "r"(a.part[1]), "r"(a.part[2]), "r"(a.part[3]), "r"(b.part[0]), "r"(b.part[1]));
#else
  (void)c, (void)a, (void)b;
  __trap();
#endif
}

/// Loads 1, 2 or 4 matrices from shared memory. Lanes 8 m to 8 m + 7 give the addresses of the 8 rows of matrix m, each of 16
/// bytes and aligned to 16; the addresses of other lanes are not used.
template <unsigned Matrices, bool Transposed = false>
__device__ __forceinline__ loaded_matrices<Matrices> load_matrices(const void* row) {
  static_assert(Matrices == 1 || Matrices == 2 || Matrices == 4);
  loaded_matrices<Matrices> m;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (Matrices == 1 && !Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0},[%1];" : "=r"(m.part[0]) : "r"(at) : "memory");
  else if constexpr (Matrices == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0},[%1];" : "=r"(m.part[0]) : "r"(at) : "memory");
  else if constexpr (Matrices == 2 && !Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
                 : "=r"(m.part[0]), "=r"(m.part[1])
                 : "r"(at)
                 : "memory");
  else if constexpr (Matrices == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];"
                 : "=r"(m.part[0]), "=r"(m.part[1])
                 : "r"(at)
                 : "memory");
  else if constexpr (!Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(m.part[0]), "=r"(m.part[1]), "=r"(m.part[2]), "=r"(m.part[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(m.part[0]), "=r"(m.part[1]), "=r"(m.part[2]), "=r"(m.part[3])
                 : "r"(at)
                 : "memory");
  return m;
}

#else

GYRE_SIMT_ENGINE inline void multiply_bf16(fragment_c& c, const fragment_a& a, const fragment_b& b, GYRE_SIMT_POSITION) {
  struct {
    fragment_a a;
    fragment_b b;
    fragment_c c;
  } given{a, b, c};
  static_assert(sizeof(given) == 40);
  detail::with_warp(detail::warp_call::multiply_bf16, ~0u, &given, sizeof(given), &c, sizeof(c), 0, 32, at);
}

template <unsigned Matrices, bool Transposed = false>
GYRE_SIMT_ENGINE loaded_matrices<Matrices> load_matrices(const void* row, GYRE_SIMT_POSITION) {
  static_assert(Matrices == 1 || Matrices == 2 || Matrices == 4);
  const unsigned lane = (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
  if (lane < 8 * Matrices) detail::before_warp_read(row, 16, 16, "load_matrices", at);
  loaded_matrices<Matrices> m;
  detail::with_warp(Transposed ? detail::warp_call::load_matrix_transposed : detail::warp_call::load_matrix, ~0u, &row,
                    sizeof(row), &m, sizeof(m), static_cast<int>(Matrices), 32, at);
  return m;
}

#endif

}  // namespace gyre_simt
