// Generation with mixtures: experts and mixed projections keep nothing between tokens but the usual cache, so decoding equals one
// pass over the whole text, whatever else is in the batch. [own_unit]
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

constexpr gyre::dims sizes{.vocab = 11, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 24};
constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 4};
constexpr gyre::attention_options sequence{.projections = maps, .query_key_norm = true};
constexpr gyre::depth_attention_options depth{.projections = maps};

template <class Form>
struct Layer : gyre::mixture<Form, gyre::depth_attention<sizes, depth>, gyre::sequence_attention<sizes, sequence>,
                             gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 8}>> {};
template <class Form>
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layer<Form>, gyre::inject::none, gyre::initial_state::embedding>,
                             gyre::initialised<gyre::mixture_initialisation<>>> {};
// Without depth attention sequences of different depths run in one batch.
struct Recurrent
    : gyre::model<sizes,
                  gyre::recurrent<
                      gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes, sequence>,
                                    gyre::expert_attention<sizes, gyre::experts{.count = 6, .active = 2, .router_width = 8}>>,
                      gyre::inject::none, gyre::initial_state::embedding>,
                  gyre::initialised<gyre::mixture_initialisation<>>> {};
using layer_of_layered =
    gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes>,
                  gyre::expert_attention<sizes, gyre::experts{.count = 4, .active = 2, .router_width = 8}>>;
struct Layered
    : gyre::model<sizes, gyre::recurrent<gyre::stack<3, layer_of_layered>, gyre::inject::none, gyre::initial_state::embedding>,
                  gyre::initialised<gyre::mixture_initialisation<>>> {};

template <class A>
void check_decoding(std::vector<int> depths) {
  const auto net = make_net<A>(5);
  std::vector<std::vector<gyre::token>> texts;
  for (std::uint32_t i = 0; i < depths.size(); ++i) texts.push_back(random_tokens(2 + 3 * i, sizes.vocab, i));
  gyre::generator generator(net);
  for (std::uint32_t i = 0; i < depths.size(); ++i) {
    gyre::generation_request r;
    r.prompt = texts[i], r.exit = depths[i], r.key = i, r.max_new = 9, r.choose.greedy = true, r.of = gyre::seed{7};
    generator.start(r);
  }
  generator.run();
  for (std::uint32_t i = 0; i < depths.size(); ++i) {
    const auto result = generator.take(i + 1);
    REQUIRE(result.tokens.size() == 9);
    for (std::size_t n = 0; n < result.tokens.size(); ++n) {
      const auto logits = full_logits(net, std::span<const gyre::token>(texts[i]), i, {gyre::seed{7}, 0, 1}, depths[i]);
      const double* z = logits[static_cast<gyre::index>(texts[i].size()) - 1];
      double total = 0, largest = 0;
      for (int v = 0; v < sizes.vocab; ++v) total += std::exp(z[v]), largest = std::max(largest, std::abs(z[v]));
      CAPTURE(i, n);
      CHECK(std::abs(result.log_probabilities[n] - (z[result.tokens[n]] - std::log(total))) <= 1e-12 * largest);
      texts[i].push_back(result.tokens[n]);
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("decoding a mixture step by step equals the parallel pass", "[generator]", gyre::sequential,
                   gyre::parallel_3, gyre::parallel_2) {
  check_decoding<Dreamer<TestType>>({6, 1, 3});
}

TEST_CASE("so does decoding without depth attention, and a layered model", "[generator]") {
  check_decoding<Recurrent>({6, 1, 3});
  check_decoding<Layered>({1, 1, 1});
}
