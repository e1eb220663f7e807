// The k-hops task: following k pointers, k told by the input. The nodes on the way are not shown, so a model has to find them
// within one token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <gyre/core/error.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A random permutation f of 8 nodes. A row holds its 8 edges in random order, an edge i -> f(i) being the one token 8 i + f(i),
/// then a question: a random node i, token 64 + i, and a random number k in 1 .. 8, token 71 + k. The target there is the token of
/// the node f^k(i), 64 + f^k(i); the others are -1 and do not count. A row may ask several questions of its permutation, one after
/// the other: they are drawn independently, and no answer is ever an input.
struct k_hops_task {
  static constexpr int nodes = 8, most_hops = 8, most_questions = 20;
  static constexpr int length = nodes + 2, most_length = nodes + 2 * most_questions;  // tokens of a row: 10, 48
  static constexpr int length_of(int questions) { return nodes + 2 * questions; }
  static constexpr token first_node = nodes * nodes;                    // 64
  static constexpr token first_count = first_node + nodes;              // 72: one hop
  static constexpr int vocabulary = nodes * nodes + nodes + most_hops;  // 80

  /// One row of as many questions as fit; both spans hold `length` tokens, or 2 more for each further question.
  static void row(random_sequence numbers, std::span<token> inputs, std::span<token> targets) {
    std::array<token, nodes> f, edges;
    numbers.permutation(std::span<token>(f));
    numbers.permutation(std::span<token>(edges));
    for (std::size_t i = 0; i < nodes; ++i) {
      inputs[i] = nodes * edges[i] + f[static_cast<std::size_t>(edges[i])];
      targets[i] = -1;
    }
    for (std::size_t q = nodes; q + 1 < inputs.size(); q += 2) {
      token at = static_cast<token>(numbers.below(nodes));
      const auto hops = static_cast<token>(numbers.below(most_hops)) + 1;
      inputs[q] = first_node + at, targets[q] = -1;
      for (token k = 0; k < hops; ++k) at = f[static_cast<std::size_t>(at)];
      inputs[q + 1] = first_count + hops - 1, targets[q + 1] = first_node + at;
    }
  }

  /// A batch: inputs and targets are (rows, length_of(questions)). Row i is a function of (stream, step, first_row + i) alone, so
  /// that a batch may be cut into parts; a row of fewer questions is the beginning of one of more. Streams of another seed or id,
  /// or other steps, give fresh rows.
  static void fill(const random_stream& stream, std::uint64_t step, std::uint32_t first_row, std::span<token> inputs,
                   std::span<token> targets, int questions = 1) {
    require(questions >= 1 && questions <= most_questions, "k_hops_task: ", questions, " questions to a row; 1 to ",
            most_questions, " are possible");
    const auto n = static_cast<std::size_t>(length_of(questions));
    require(inputs.size() == targets.size() && inputs.size() % n == 0, "k_hops_task: ", inputs.size(), " inputs and ",
            targets.size(), " targets; both must be rows of ", n);
    for (std::size_t at = 0; at < inputs.size(); at += n)
      row(random_sequence(stream, step, first_row + static_cast<std::uint32_t>(at / n)), inputs.subspan(at, n),
          targets.subspan(at, n));
  }
};

GYRE_END
