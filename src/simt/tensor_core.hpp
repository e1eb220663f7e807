// Tensor-core operations, with the layouts of the PTX manual, section "Matrix Fragments for mma.m16n8k16" and "ldmatrix".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "launch_state.hpp"

namespace gyre_simt::detail {

inline float fp32_of(std::uint16_t bf16) { return std::bit_cast<float>(std::uint32_t{bf16} << 16); }

// D = A B + C, A (16, 16) bf16 by rows, B (16, 8) bf16 by columns, C (16, 8) fp32. A lane gives 8 elements of A, 4 of B and
// 4 of C. Products are summed in fp32 in the order of k; the hardware's order and rounding are its own.
inline void finish_multiply_bf16(launch_state&, gpu_thread* lanes, unsigned) {
  float a[16][16], b[16][8], c[16][8];
  for (unsigned l = 0; l < 32; ++l) {
    std::uint16_t from_a[8], from_b[4];
    float from_c[4];
    std::memcpy(from_a, lanes[l].request.given, 16);
    std::memcpy(from_b, lanes[l].request.given + 16, 8);
    std::memcpy(from_c, lanes[l].request.given + 24, 16);
    const unsigned group = l / 4, in_group = l % 4;
    for (unsigned i = 0; i < 8; ++i) a[group + i / 2 % 2 * 8][in_group * 2 + i % 2 + i / 4 * 8] = fp32_of(from_a[i]);
    for (unsigned i = 0; i < 4; ++i) b[in_group * 2 + i % 2 + i / 2 * 8][group] = fp32_of(from_b[i]);
    for (unsigned i = 0; i < 4; ++i) c[group + i / 2 * 8][in_group * 2 + i % 2] = from_c[i];
  }
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned k = 0; k < 16; ++k)
      for (unsigned column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
  for (unsigned l = 0; l < 32; ++l) {
    float to[4];
    for (unsigned i = 0; i < 4; ++i) to[i] = c[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
    std::memcpy(lanes[l].request.result, to, 16);
  }
}

// 1, 2 or 4 matrices (8, 8) of 16 bits. Lanes 8 m to 8 m + 7 give the addresses of the rows of matrix m; each lane receives two
// neighbouring elements of a row of each, of a column if transposed.
template <bool transposed>
void finish_load_matrix(launch_state&, gpu_thread* lanes, unsigned) {
  const unsigned matrices = static_cast<unsigned>(lanes[0].request.argument);
  for (unsigned m = 0; m < matrices; ++m) {
    std::uint16_t rows[8][8];
    for (unsigned r = 0; r < 8; ++r) {
      const unsigned char* row = nullptr;
      std::memcpy(&row, lanes[m * 8 + r].request.given, sizeof(row));
      std::memcpy(rows[r], row, 16);
    }
    for (unsigned l = 0; l < 32; ++l) {
      const unsigned r = l / 4, c = l % 4 * 2;
      const std::uint16_t two[2] = {transposed ? rows[c][r] : rows[r][c], transposed ? rows[c + 1][r] : rows[r][c + 1]};
      std::memcpy(lanes[l].request.result + 4 * m, two, 4);
    }
  }
}

}  // namespace gyre_simt::detail
