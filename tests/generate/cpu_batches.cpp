// Generation on the cpu backend: the same bits for any batch and number of threads. [threads]
#include <gyre/backend/cpu.hpp>

#include <catch2/catch.hpp>

#include <gyre/generate/generator.hpp>
#include <gyre/generate/score.hpp>

#include <thread>

#include "generate/support.hpp"

using namespace gyre_test;

namespace {

// Odd sizes, and a context that spans several tiles of attention.
constexpr gyre::dims odd{.vocab = 47, .width = 36, .heads = 6, .kv_heads = 2, .mlp = 50, .context = 200};
struct Odd : Model<Block<odd>, odd> {};

gyre::generation generated(const net_of<Odd, gyre::fp32, gyre::cpu>& net, const gyre::generation_request& r) {
  gyre::generator generator(net);
  const auto id = generator.start(r);
  generator.run();
  return generator.take(id);
}

}  // namespace

TEST_CASE("on the cpu, a request has the same bits in any batch, on any number of threads", "[generator][threads]") {
  const auto net = make_net<Odd, gyre::fp32>(2, gyre::cpu{2});
  const auto text = random_tokens(160, odd.vocab, 0);
  std::vector<gyre::generation_request> requests;
  const gyre::exits::any rules[] = {gyre::exits::latent_diff{.below = 0.4f, .cap = 6}, 2,
                                    gyre::exits::latent_diff{.below = 0.3f, .cap = 5}, 4};
  for (std::size_t i = 0; i < 4; ++i) {
    gyre::generation_request r;
    r.prompt = std::span<const gyre::token>(text).first(3 + 52 * i);
    r.exit = rules[i], r.key = i, r.max_new = 12 + static_cast<gyre::index>(i);
    if (i == 2) r.lookup = gyre::cache_lookup::skip;
    requests.push_back(r);
  }
  std::vector<gyre::generation> expected;
  for (const auto& r : requests) expected.push_back(generated(net, r));
  for (const int threads : {1, 2, 3}) {
    const auto other = make_net<Odd, gyre::fp32>(2, gyre::cpu{threads});
    gyre::generator generator(other, {.prompt_rows = 29});
    for (const auto& r : requests) generator.start(r);
    generator.run();
    for (std::size_t i = 0; i < 4; ++i) {
      INFO(threads << " threads, request " << i);
      const gyre::generation& result = generator.result(i + 1);
      CHECK(result.tokens == expected[i].tokens);
      CHECK(result.steps == expected[i].steps);
      CHECK(result.log_probabilities == expected[i].log_probabilities);  // the same bits
    }
  }
  // Scoring is decoding the given text.
  const auto scored = gyre::score(net, requests[0].prompt, std::span<const gyre::token>(expected[0].tokens), rules[0]);
  CHECK(scored.steps == expected[0].steps);
  CHECK(*std::min_element(scored.steps.begin(), scored.steps.end()) < 6);
  for (std::size_t n = 0; n < scored.steps.size(); ++n)
    CHECK(scored.log_likelihoods[n] == Approx(expected[0].log_probabilities[n]).epsilon(1e-5));
}

TEST_CASE("threads generate at the same time from shared weights", "[generator][threads]") {
  const auto net = make_net<Odd, gyre::fp32>(2, gyre::cpu{2});
  const auto text = random_tokens(30, odd.vocab, 0);
  gyre::generation_request r;
  r.prompt = text, r.exit = gyre::exits::latent_diff{.below = 0.4f, .cap = 6}, r.max_new = 20;
  const auto expected = generated(net, r);
  std::vector<gyre::generation> results(3);
  {
    std::vector<std::jthread> threads;
    for (auto& result : results) threads.emplace_back([&] { result = generated(net, r); });
  }
  for (const auto& result : results) CHECK(result.log_probabilities == expected.log_probabilities);
}
