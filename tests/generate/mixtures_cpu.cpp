// On the cpu backend, in float: decoding a mixture in a mixed batch gives the numbers of one pass over the whole text, and chooses
// the same experts. [threads] [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <tuple>

#include <gyre/backend/cpu.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/model/mixture_model.hpp>

#include "generate/support.hpp"

namespace {

using namespace gyre_test;

constexpr gyre::dims sizes{.vocab = 61, .width = 32, .heads = 4, .kv_heads = 1, .mlp = 24, .context = 40, .rope_base = 10000};
constexpr gyre::routing maps{.count = 4, .active = 2, .router_width = 8};
constexpr gyre::attention_options sequence{.projections = maps, .query_key_bias = false, .query_key_norm = true};
constexpr gyre::depth_attention_options depth{.projections = maps};
using experts = gyre::expert_attention<sizes, gyre::experts{.count = 16, .active = 3, .router_width = 16}>;
struct Dreamer : gyre::mixture_model<sizes, gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, depth>,
                                                          gyre::sequence_attention<sizes, sequence>, experts>> {};
struct Recurrent
    : gyre::mixture_model<sizes, gyre::mixture<gyre::parallel_2, gyre::sequence_attention<sizes, sequence>, experts>> {};

/// The experts of every token, by router, step, sequence and position.
struct choices final : gyre::pass_observer<gyre::fp32> {
  using place = std::tuple<gyre::index, int, std::uint64_t, gyre::index>;
  std::map<place, std::vector<std::int32_t>> made;
  void routed(const gyre::routing_event<gyre::fp32>& e) override {
    for (const gyre::sequence_span& s : e.layout.sequences())
      for (gyre::index i = 0; i < s.count; ++i) {
        const auto set =
            e.chosen.subspan(static_cast<std::size_t>((s.begin + i) * e.active), static_cast<std::size_t>(e.active));
        made[{e.router, e.step, s.key, s.past + i}].assign(set.begin(), set.end());
      }
  }
};

template <class A>
void check_mixed_batch(int threads, const std::vector<int>& depths) {
  const auto net = make_net<A, gyre::fp32>(5, gyre::cpu{threads});
  std::vector<std::vector<gyre::token>> texts;
  gyre::generator generator(net, gyre::generator_options{.prompt_rows = 7});
  choices decoded;
  generator.observe_passes(&decoded);
  for (std::uint32_t i = 0; i < depths.size(); ++i) {
    texts.push_back(random_tokens(1 + 5 * i, sizes.vocab, i));
    gyre::generation_request r;
    r.prompt = texts[i], r.exit = depths[i], r.key = i, r.max_new = 12, r.choose.greedy = true, r.of = gyre::seed{7};
    generator.start(r);
  }
  generator.run();
  int compared = 0, different = 0;
  for (std::uint32_t i = 0; i < depths.size(); ++i) {
    const auto result = generator.take(i + 1);
    REQUIRE(result.tokens.size() == 12);
    const std::size_t prompt = texts[i].size();
    texts[i].insert(texts[i].end(), result.tokens.begin(), result.tokens.end());
    choices whole;
    const auto logits =
        full_logits(net, std::span<const gyre::token>(texts[i]), i, gyre::state_key{gyre::seed{7}, 0, 1}, depths[i], &whole);
    for (std::size_t n = 0; n < result.tokens.size(); ++n) {
      const float* z = logits[static_cast<gyre::index>(prompt + n) - 1];
      double total = 0, largest = 0;
      for (int v = 0; v < sizes.vocab; ++v)
        total += std::exp(double{z[v]}), largest = std::max(largest, std::abs(double{z[v]}));
      CAPTURE(i, n);
      CHECK(std::abs(result.log_probabilities[n] - (double{z[result.tokens[n]]} - std::log(total))) <= 1e-5 * largest);
    }
    for (const auto& [place, set] : whole.made) {
      const auto found = decoded.made.find(place);
      if (found == decoded.made.end()) continue;  // the last token has not been run
      ++compared;
      different += found->second != set;
    }
  }
  // Of weights like these no gap between the last chosen and the first left out is near the rounding of a score.
  CHECK(different == 0);
  INFO(compared << " choices of tokens compared");
  CHECK(compared > 500);
}

}  // namespace

TEST_CASE("on the cpu, mixtures decode in mixed batches what one pass computes, and choose the same experts",
          "[decode][threads]") {
  check_mixed_batch<Dreamer>(1, {6, 1, 3, 6});
  check_mixed_batch<Dreamer>(2, {4, 4, 4, 4});
  check_mixed_batch<Recurrent>(2, {6, 1, 3, 6});
}
