// Tokens of different exit steps that look at one another, against the definition written out in plain loops.
#include <catch2/catch.hpp>

#include <set>

#include "generate/straight_line.hpp"
#include "generate/support.hpp"

using namespace gyre_test;

namespace {

/// Decodes `length` tokens after a prompt of 3, beside another sequence, and compares all logits and exit steps.
template <class A>
void check_lookup(gyre::cache_lookup lookup, bool half_split, float below, bool exit_in_prompt) {
  using fed = fed_sequence<A, gyre::reference, gyre::fp64>;
  const auto net = make_net<A>(3);
  gyre::detail::decoder<A, gyre::reference, gyre::fp64> decoder(net);
  const gyre::exits::latent_diff rule{.below = below, .cap = 7};
  const std::size_t prompt = 3, length = 18;
  const bool skip = lookup == gyre::cache_lookup::skip;
  std::vector<fed> sequences;
  std::vector<straight_line> lines;
  for (std::uint32_t i = 0; i < 2; ++i) {
    sequences.emplace_back(decoder, random_tokens(length, A::shape.vocab, i), 40 + i, rule, lookup);
    lines.emplace_back(net, A::shape, 1, 2, 1,
                       straight_rules{half_split, skip, rule.below, rule.cap, exit_in_prompt ? 0 : prompt, 7, 40 + i});
  }
  std::set<int> different;
  while (!sequences[0].done()) {
    const std::size_t before = sequences[0].fed, count = before == 0 ? prompt : 1;
    const typename fed::share shares[] = {sequences[0].next(count, before > 0 || exit_in_prompt),
                                          sequences[1].next(count, before > 0 || exit_in_prompt)};
    const auto round = decoder.run(shares);
    for (std::size_t i = 0; i < 2; ++i) {
      numbers logits;
      for (std::size_t p = before; p < before + count; ++p) {
        logits = lines[i].next(sequences[i].ids[p]);
        INFO("sequence " << i << ", position " << p);
        CHECK(round.steps[i * count + p - before] == lines[i].steps());
        different.insert(lines[i].steps());
      }
      const double scale = largest(logits.data(), A::shape.vocab);
      const double error = difference(round.logits[static_cast<gyre::index>(i)], logits.data(), A::shape.vocab);
      INFO("sequence " << i << ", position " << sequences[i].fed - 1 << ": " << error << " of " << scale);
      CHECK(error <= 1e-12 * scale);
    }
  }
  INFO("exit steps must differ for this test to say anything");
  CHECK(different.size() >= 3);
}

}  // namespace

TEST_CASE("tokens that left early offer their deepest keys and values", "[lookup]") {
  check_lookup<Concat>(gyre::cache_lookup::latest, false, 0.5f, false);
  check_lookup<ConcatGrouped>(gyre::cache_lookup::latest, true, 0.5f, false);
}

TEST_CASE("tokens that left early are left out", "[lookup]") {
  check_lookup<Concat>(gyre::cache_lookup::skip, false, 0.5f, false);
  check_lookup<ConcatGrouped>(gyre::cache_lookup::skip, true, 0.5f, false);
}

TEST_CASE("tokens of a prompt leave one by one and see one another as in decoding", "[lookup]") {
  check_lookup<Concat>(gyre::cache_lookup::latest, false, 0.5f, true);
  check_lookup<ConcatGrouped>(gyre::cache_lookup::skip, true, 0.5f, true);
}
