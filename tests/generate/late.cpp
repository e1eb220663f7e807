// Generating on a backend whose calls return before their work is done: the same bits, because whoever reads waits. [own_unit]
#include <catch2/catch.hpp>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/generate/score.hpp>

#include "generate/support.hpp"
#include "support/late.hpp"

using namespace gyre_test;

namespace {

template <class Net>
std::vector<gyre::generation> run_all(const Net& net, int draft_steps, std::vector<double>& states) {
  gyre::generator generator(net);
  std::vector<std::vector<gyre::token>> prompts;
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 3; ++i) prompts.push_back(random_tokens(3 + i, 23, i));
  for (std::uint32_t i = 0; i < 3; ++i) {
    gyre::generation_request r;
    r.prompt = prompts[i], r.key = i, r.of = gyre::seed{5}, r.choose.temperature = 0.7f, r.draft_steps = draft_steps;
    r.exit = 4 + static_cast<int>(i);
    if (draft_steps == 0 && i > 0) r.exit = gyre::exits::latent_diff{.below = 0.3f, .cap = 6};
    if (i == 1) r.lookup = gyre::cache_lookup::skip;
    gyre::state_observer<float> watch;
    if (draft_steps == 0 && i == 2)
      watch = [&states](const auto& token) { states.insert(states.end(), token.state.begin(), token.state.end()); };
    ids.push_back(generator.start(r, watch));
  }
  generator.run();
  std::vector<gyre::generation> results;
  for (const auto id : ids) results.push_back(generator.take(id));
  return results;
}

}  // namespace

TEST_CASE("generation waits for the device where the host reads", "[generator][late]") {
  const auto plain_net = make_net<Concat, gyre::fp32>(1, gyre::cpu{1});
  const auto net = make_net<Concat, gyre::fp32>(1, late(gyre::cpu{1}));
  for (const int draft_steps : {0, 2}) {
    CAPTURE(draft_steps);
    std::vector<double> plain_states, states;
    const auto plainly = run_all(plain_net, draft_steps, plain_states), waited = run_all(net, draft_steps, states);
    for (std::size_t i = 0; i < plainly.size(); ++i) {
      CHECK(waited[i].tokens == plainly[i].tokens);
      CHECK(waited[i].steps == plainly[i].steps);
      CHECK(waited[i].log_probabilities == plainly[i].log_probabilities);
    }
    CHECK(states == plain_states);
    CHECK(states.empty() == (draft_steps > 0));
  }
  const auto prompt = random_tokens(4, 23, 7), continuation = random_tokens(6, 23, 8);
  CHECK(gyre::score(net, prompt, continuation, 3).log_likelihoods ==
        gyre::score(plain_net, prompt, continuation, 3).log_likelihoods);
}
