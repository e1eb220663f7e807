// The hops task: following pointers, one hop a recurrence step. Its answers need exactly as many steps as hops.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <gyre/core/error.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A random permutation f of 8 nodes. A row holds its 8 edges in random order, an edge i -> f(i) being the one token
/// 8 i + f(i), then the 8 starts in order, start i being token 64 + i. The targets of the last 8 positions are 64 + f^k(i); the
/// others are -1 and do not count.
struct hops_task {
  static constexpr int nodes = 8;
  static constexpr int length = 2 * nodes;                  // tokens of a row
  static constexpr int vocabulary = nodes * nodes + nodes;  // 72
  static constexpr token first_start = nodes * nodes;       // 64

  /// One row; both spans hold `length` tokens.
  static void row(random_sequence numbers, int hops, std::span<token, length> inputs, std::span<token, length> targets) {
    require(hops >= 1, "hops_task: hops is ", hops, "; at least 1 is needed");
    std::array<token, nodes> f, edges;
    numbers.permutation(std::span<token>(f));
    numbers.permutation(std::span<token>(edges));
    for (std::size_t i = 0; i < nodes; ++i) {
      const token from = edges[i];
      inputs[i] = nodes * from + f[static_cast<std::size_t>(from)];
      targets[i] = -1;
      token at = static_cast<token>(i);
      for (int k = 0; k < hops; ++k) at = f[static_cast<std::size_t>(at)];
      inputs[nodes + i] = first_start + static_cast<token>(i);
      targets[nodes + i] = first_start + at;
    }
  }

  /// A batch: inputs and targets are (rows, length). Row i is a function of (stream, step, first_row + i) and `hops` alone, so
  /// that a batch may be cut into parts. Streams of another seed or id, or other steps, give fresh permutations.
  static void fill(const random_stream& stream, std::uint64_t step, std::uint32_t first_row, int hops, std::span<token> inputs,
                   std::span<token> targets) {
    require(inputs.size() == targets.size() && inputs.size() % length == 0, "hops_task: ", inputs.size(), " inputs and ",
            targets.size(), " targets; both must be rows of ", length);
    for (std::size_t at = 0; at < inputs.size(); at += length)
      row(random_sequence(stream, step, first_row + static_cast<std::uint32_t>(at / length)), hops,
          inputs.subspan(at).template first<length>(), targets.subspan(at).template first<length>());
  }
};

GYRE_END
