// The permutations task: prefix products in the symmetric group S5. Its word problem is complete for NC1 (Barrington 1989), so that
// a transformer of fixed depth is not expected to solve it at every length (Merrill, Petty, Sabharwal, arXiv 2404.08819).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <gyre/core/error.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A row holds random elements x_1 .. x_n of S5, drawn alike and independently; the target at position t is the product so far,
/// p_t = x_t after p_(t-1), p_1 = x_1: p_t(i) = x_t(p_(t-1)(i)), permutations acting in the order in which they are read.
///
/// Element g is the one whose images g(0) g(1) g(2) g(3) g(4) are the g-th of all 120 in lexicographic order, from 0: the identity
/// is 0, the reversal 119. That is the order of Python's itertools.permutations(range(5)), by which published versions of the
/// task number them.
///
/// With drawn_from::swaps the elements are the four swaps of neighbours, which generate S5: a product is then one of four moves
/// away from the one before it, so that small models learn long rows, while of all elements the second position alone has 14,400
/// pairs to learn. Such a row begins with the identity, whose target does not count. Without a beginning attention could not count
/// equal tokens: in a row a a both have one state, for positions only turn scores, and a is not a after a.
struct permutations_task {
  enum class drawn_from { all, swaps };
  static constexpr std::size_t points = 5;
  static constexpr int vocabulary = 120;  // 5!
  static constexpr int most_length = 48;  // tokens of a row
  /// (0 1), (1 2), (2 3), (3 4).
  static constexpr std::array<token, points - 1> swaps{24, 6, 2, 1};
  using images = std::array<token, points>;

  /// g(0) .. g(4).
  static constexpr images images_of(token g) {
    if (g < 0 || g >= vocabulary) fail("permutations_task: element ", g, " is none of the ", vocabulary, " of S5");
    images left{0, 1, 2, 3, 4}, out{};
    token remaining = g, block = vocabulary;
    for (std::size_t i = 0; i < points; ++i) {
      block /= static_cast<token>(points - i);  // (4 - i)!: elements that share their first i + 1 images
      const auto which = static_cast<std::size_t>(remaining / block);
      remaining %= block;
      out[i] = left[which];
      for (std::size_t j = which; j + 1 < points - i; ++j) left[j] = left[j + 1];
    }
    return out;
  }
  /// The number of an element.
  static constexpr token element_of(const images& g) {
    token number = 0;
    for (std::size_t i = 0; i < points; ++i) {
      token smaller = 0;  // of the images that follow
      for (std::size_t j = i + 1; j < points; ++j) smaller += g[j] < g[i];
      number = number * static_cast<token>(points - i) + smaller;
    }
    return number;
  }
  /// `second` after `first`: i -> second(first(i)).
  static constexpr images after(const images& second, const images& first) {
    images out{};
    for (std::size_t i = 0; i < points; ++i) out[i] = second[static_cast<std::size_t>(first[i])];
    return out;
  }
  /// The number of `second` after `first`.
  static constexpr token product(token second, token first) { return element_of(after(images_of(second), images_of(first))); }

  /// One row; both spans have as many tokens, 1 to most_length.
  static void row(random_sequence numbers, std::span<token> inputs, std::span<token> targets,
                  drawn_from elements = drawn_from::all) {
    images so_far = images_of(0);
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      if (elements == drawn_from::all)
        inputs[t] = static_cast<token>(numbers.below(vocabulary));
      else
        inputs[t] = t == 0 ? 0 : swaps[numbers.below(swaps.size())];
      so_far = after(images_of(inputs[t]), so_far);
      targets[t] = element_of(so_far);
    }
    if (elements == drawn_from::swaps) targets[0] = -1;
  }

  /// A batch: inputs and targets are (rows, length). Row i is a function of (stream, step, first_row + i) alone, and the beginning
  /// of a longer row of that number. Streams of another seed or id, or other steps, give fresh rows.
  static void fill(const random_stream& stream, std::uint64_t step, std::uint32_t first_row, int length,
                   std::span<token> inputs, std::span<token> targets, drawn_from elements = drawn_from::all) {
    require(length >= 1 && length <= most_length, "permutations_task: rows of ", length, " elements; 1 to ", most_length,
            " are possible");
    const auto n = static_cast<std::size_t>(length);
    require(inputs.size() == targets.size() && inputs.size() % n == 0, "permutations_task: ", inputs.size(), " inputs and ",
            targets.size(), " targets; both must be rows of ", length);
    for (std::size_t at = 0; at < inputs.size(); at += n)
      row(random_sequence(stream, step, first_row + static_cast<std::uint32_t>(at / n)), inputs.subspan(at, n),
          targets.subspan(at, n), elements);
  }
};

GYRE_END
