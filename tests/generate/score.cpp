// Log-likelihoods of given continuations.
#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/generate/score.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/model/mixture_model.hpp>

#include "generate/support.hpp"

using namespace gyre_test;

namespace {

double log_likelihood(const double* logits, int vocabulary, gyre::token t) {
  double total = 0;
  for (int v = 0; v < vocabulary; ++v) total += std::exp(logits[v]);
  return logits[t] - std::log(total);
}

constexpr gyre::dims narrow{.vocab = 23, .width = 16, .heads = 4, .mlp = 4, .context = 24};
struct Narrow : gyre::model<narrow, gyre::recurrent<Block<narrow>>> {};
struct Remembering : gyre::mixture_model<plain, gyre::mixture<gyre::sequential, gyre::depth_attention<plain>,
                                                              gyre::sequence_attention<plain>, gyre::gated_mlp<plain>>> {};

}  // namespace

TEST_CASE("scores are those of a pass without a cache, at any depth and in any batch", "[score]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>(4);
  std::vector<std::vector<gyre::token>> texts;
  std::vector<gyre::score_item> items;
  const std::size_t lengths[] = {7, 25, 2, 12, 6}, prompts[] = {3, 1, 1, 11, 6};  // 25: a whole context and its last target
  for (std::uint32_t i = 0; i < 5; ++i) texts.push_back(random_tokens(lengths[i], 23, i));
  for (std::size_t i = 0; i < 5; ++i) {
    const std::span<const gyre::token> all(texts[i]);
    items.push_back({all.first(prompts[i]), all.subspan(prompts[i])});
  }
  for (const int r : {1, 4, 8}) {
    const auto together = gyre::score(net, std::span<const gyre::score_item>(items), r, {.of = gyre::seed{5}, .key = 2});
    const auto apart =
        gyre::score(net, std::span<const gyre::score_item>(items), r, {.of = gyre::seed{5}, .key = 2, .rows = 1});
    REQUIRE(together.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      REQUIRE(together[i].log_likelihoods.size() == items[i].continuation.size());
      CHECK(together[i].log_likelihoods == apart[i].log_likelihoods);  // the same bits
      const auto logits =
          full_logits(net, std::span<const gyre::token>(texts[i]).first(lengths[i] - 1), 2, {gyre::seed{5}, 0, 1}, r);
      double total = 0;
      for (std::size_t n = 0; n < items[i].continuation.size(); ++n) {
        const double expected =
            log_likelihood(logits[static_cast<gyre::index>(prompts[i] + n) - 1], 23, items[i].continuation[n]);
        CHECK(std::abs(together[i].log_likelihoods[n] - expected) <= 1e-11);
        CHECK(together[i].steps[n] == r);
        total += expected;
      }
      CHECK(together[i].total() == Approx(total));
    }
  }
}

TEST_CASE("scoring with an exit rule is decoding the given text", "[score]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>(4);
  const auto prompt = random_tokens(5, 23, 1);
  for (const bool in_prompt : {false, true})
    for (const auto lookup : {gyre::cache_lookup::latest, gyre::cache_lookup::skip}) {
      gyre::generation_request r;
      r.prompt = prompt, r.exit = gyre::exits::latent_diff{.below = 0.5f, .cap = 8}, r.max_new = 15;
      r.key = 3, r.of = gyre::seed{11}, r.lookup = lookup, r.exit_in_prompt = in_prompt;
      gyre::generator generator(net);
      const auto id = generator.start(r);
      generator.run();
      const auto spoken = generator.take(id);
      const auto scored = gyre::score(net, std::span<const gyre::token>(prompt), std::span<const gyre::token>(spoken.tokens),
                                      r.exit, {.of = gyre::seed{11}, .key = 3, .lookup = lookup, .exit_in_prompt = in_prompt});
      CHECK(scored.steps == spoken.steps);
      CHECK(*std::min_element(spoken.steps.begin(), spoken.steps.end()) < 8);
      for (std::size_t n = 0; n < 15; ++n) CHECK(std::abs(scored.log_likelihoods[n] - spoken.log_probabilities[n]) <= 1e-11);
    }
}

TEST_CASE("a scorer serves again and refuses what it cannot score", "[score]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>(4);
  const auto text = random_tokens(26, 23, 1);
  const std::span<const gyre::token> all(text);
  gyre::scorer scorer(net);
  const auto once = [&](std::size_t prompt, std::size_t continuation, gyre::exits::any exit) {
    const gyre::score_item item{all.first(prompt), all.subspan(prompt, continuation)};
    return scorer({&item, 1}, exit)[0];
  };
  const auto first = once(2, 5, 4);
  CHECK(once(2, 20, gyre::exits::latent_diff{.below = 0.5f, .cap = 6}).steps.size() == 20);
  CHECK(once(2, 5, 4).log_likelihoods == first.log_likelihoods);
  CHECK(once(3, 0, 4).log_likelihoods.empty());
  CHECK(scorer({}, 4).empty());
  CHECK_THROWS_WITH(once(0, 4, 4), Catch::Contains("prompt of item 0 is empty"));
  CHECK_THROWS_WITH(once(20, 6, 4), Catch::Contains("20 + 6 tokens") && Catch::Contains("context of 24"));
  CHECK_THROWS_WITH(once(2, 5, 0), Catch::Contains("steps is 0"));
  const gyre::token bad[] = {1, 23};
  const gyre::score_item outside{all.first(2), bad};
  CHECK_THROWS_WITH(scorer({&outside, 1}, 4), Catch::Contains("token 23 of item 0"));
  CHECK_THROWS_WITH(gyre::scorer(net, {.rows = 0}), Catch::Contains("rows is 0"));
}

TEST_CASE("a plan for scoring holds where attention is what takes most memory", "[score]") {
  const auto net = make_net<Narrow, gyre::fp32>(4, gyre::cpu{1});
  const auto text = random_tokens(24, 23, 1);
  const std::span<const gyre::token> all(text);
  for (const int r : {1, 4}) CHECK(gyre::score(net, all.first(4), all.subspan(4), r).log_likelihoods.size() == 20);
}

TEST_CASE("with a memory over depths too, scoring with an exit rule is decoding the given text", "[score]") {
  const auto net = make_net<Remembering, gyre::fp64>(4);
  const auto prompt = random_tokens(5, 23, 1);
  int varied = 0;  // texts whose tokens leave after different steps
  for (const float below : {0.15f, 0.2f, 0.25f, 0.3f, 0.35f, 0.4f, 0.5f}) {
    gyre::generation_request r;
    r.prompt = prompt, r.exit = gyre::exits::latent_diff{.below = below, .cap = 12}, r.max_new = 15;
    r.key = 3, r.of = gyre::seed{9}, r.choose.greedy = true;
    gyre::generator generator(net);
    const auto id = generator.start(r);
    generator.run();
    const auto spoken = generator.take(id);
    const auto [fewest, most] = std::minmax_element(spoken.steps.begin(), spoken.steps.end());
    varied += *fewest < *most;
    const auto scored = gyre::score(net, std::span<const gyre::token>(prompt), std::span<const gyre::token>(spoken.tokens),
                                    r.exit, {.of = gyre::seed{9}, .key = 3});
    CAPTURE(below, *fewest, *most);
    CHECK(scored.steps == spoken.steps);
    REQUIRE(scored.log_likelihoods.size() == spoken.tokens.size());
    for (std::size_t n = 0; n < spoken.tokens.size(); ++n)
      CHECK(std::abs(scored.log_likelihoods[n] - spoken.log_probabilities[n]) <= 1e-11);
  }
  CHECK(varied > 0);
}
