// Generation with layers that know their depth: the memory over depths of a token is gone when the token is done, and how deep
// others go does not matter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include <gyre/compose/mixture.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>

#include "generate/support.hpp"

namespace {

using namespace gyre_test;

constexpr gyre::dims with_depth{.vocab = 11, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 24};
struct Layer : gyre::chain<gyre::residual<gyre::branch_sandwich, gyre::depth_attention<with_depth>>,
                           gyre::residual<gyre::branch_sandwich, gyre::sequence_attention<with_depth>>,
                           gyre::residual<gyre::branch_sandwich, gyre::gated_mlp<with_depth>>> {
  static constexpr int layers = 1;
};
struct Dreamer : gyre::model<with_depth, gyre::recurrent<Layer, gyre::inject::none, gyre::initial_state::embedding>> {};

// No memory over depths, but its router counts the steps that remain.
struct Routed
    : gyre::chain<
          gyre::residual<gyre::branch_sandwich, gyre::sequence_attention<with_depth>>,
          gyre::residual<gyre::branch_sandwich,
                         gyre::expert_attention<with_depth, gyre::experts{.count = 4, .active = 2, .router_width = 8}>>> {
  static constexpr int layers = 1;
};
struct Recurrent : gyre::model<with_depth, gyre::recurrent<Routed, gyre::inject::none, gyre::initial_state::embedding>> {};

// Keys and values in the cache were mixed by their own token's choice.
constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 8};
struct Mixed
    : gyre::mixture<gyre::parallel_2, gyre::depth_attention<with_depth, gyre::depth_attention_options{.projections = maps}>,
                    gyre::sequence_attention<with_depth, gyre::attention_options{.projections = maps}>,
                    gyre::expert_attention<with_depth, gyre::experts{.count = 4, .active = 1, .router_width = 8}>> {};
struct MixedDreamer : gyre::model<with_depth, gyre::recurrent<Mixed, gyre::inject::none, gyre::initial_state::embedding>> {};

}  // namespace

TEMPLATE_TEST_CASE("decoding step by step equals the parallel pass of each request's own depth", "[generator]", Dreamer,
                   Recurrent, MixedDreamer) {
  const auto net = make_net<TestType>(5);
  const int depths[] = {6, 1, 3};
  std::vector<std::vector<gyre::token>> texts;
  for (std::uint32_t i = 0; i < 3; ++i) texts.push_back(random_tokens(2 + 3 * i, with_depth.vocab, i));
  gyre::generator generator(net);
  for (std::uint32_t i = 0; i < 3; ++i) {
    gyre::generation_request r;
    r.prompt = texts[i], r.exit = depths[i], r.key = i, r.max_new = 9, r.choose.greedy = true, r.of = gyre::seed{7};
    generator.start(r);
  }
  generator.run();
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto result = generator.take(i + 1);
    REQUIRE(result.tokens.size() == 9);
    for (std::size_t n = 0; n < result.tokens.size(); ++n) {
      const auto logits = full_logits(net, std::span<const gyre::token>(texts[i]), i, {gyre::seed{7}, 0, 1}, depths[i]);
      const double* z = logits[static_cast<gyre::index>(texts[i].size()) - 1];
      double total = 0, largest = 0;
      for (int v = 0; v < with_depth.vocab; ++v) total += std::exp(z[v]), largest = std::max(largest, std::abs(z[v]));
      CHECK(std::abs(result.log_probabilities[n] - (z[result.tokens[n]] - std::log(total))) <= 1e-12 * largest);
      texts[i].push_back(result.tokens[n]);
    }
  }
}
