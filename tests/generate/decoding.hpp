// Feeds sequences to a decoder, in ragged batches, and compares with one pass without a cache.
#pragma once

#include <catch2/catch.hpp>

#include <span>
#include <vector>

#include "generate/support.hpp"

namespace gyre_test {

template <class A, class P, class B = gyre::reference>
struct decoding {
  using T = gyre::activation_t<P>;
  using fed = fed_sequence<A, B, P>;

  explicit decoding(B device = B{}) : net(make_net<A, P, B>(1, device)), decoder(net) {}
  decoding(const decoding&) = delete;
  decoding& operator=(const decoding&) = delete;

  net_of<A, P, B> net;
  gyre::detail::decoder<A, B, P> decoder;

  /// Feeds every sequence: a prompt, then token by token, all in ragged batches. Calls see(sequence, position, logits).
  template <class F>
  void feed(std::vector<fed>& sequences, std::span<const std::size_t> prompts, F&& see) {
    std::vector<typename fed::share> shares;
    for (bool first = true;; first = false) {
      shares.clear();
      std::vector<std::size_t> owners;
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (sequences[i].done()) continue;
        shares.push_back(sequences[i].next(first ? prompts[i] : 1));
        owners.push_back(i);
      }
      if (shares.empty()) return;
      const auto round = decoder.run(shares);
      REQUIRE(round.logits.rows == static_cast<gyre::index>(shares.size()));
      gyre::index row = 0;
      for (const std::size_t i : owners) see(i, sequences[i].fed - 1, round.logits[row++]);
      CHECK(decoder.taken()[0] <= decoder.planned()[0]);
      if (first) CHECK(decoder.taken() == decoder.planned());  // the largest round: nothing more was planned
    }
  }
  std::vector<fed> sequences(std::span<const std::size_t> lengths, std::span<const int> steps) {
    std::vector<fed> all;
    for (std::uint32_t i = 0; i < lengths.size(); ++i)
      all.emplace_back(decoder, random_tokens(lengths[i], A::shape.vocab, i), 10 + i, steps[i % steps.size()]);
    return all;
  }
};

template <class A, class P, class B = gyre::reference>
void check_against_full_pass(std::span<const int> steps, B device = B{}) {
  using T = gyre::statistic_t<P>;
  decoding<A, P, B> d(device);
  const std::size_t lengths[] = {9, 21, 6}, prompts[] = {4, 1, 6};
  auto sequences = d.sequences(lengths, steps);
  std::vector<matrix<T>> expected;
  for (std::size_t i = 0; i < sequences.size(); ++i)
    expected.push_back(full_logits(d.net, std::span<const gyre::token>(sequences[i].ids), sequences[i].key(),
                                   sequences[i].initial(), steps[i % steps.size()]));
  int seen = 0;
  d.feed(sequences, prompts, [&](std::size_t i, std::size_t position, const T* logits) {
    const T* full = expected[i][static_cast<gyre::index>(position)];
    const double error = difference(logits, full, A::shape.vocab), scale = largest(full, A::shape.vocab);
    INFO("sequence " << i << ", position " << position << ", difference " << error << ", largest logit " << scale);
    CHECK(error <= tolerance<T> * scale);
    CHECK(scale > 0.1);
    ++seen;
  });
  CHECK(seen == (9 - 4 + 1) + (21 - 1 + 1) + 1);
}

}  // namespace gyre_test
