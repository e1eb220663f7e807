// Requests: they join and leave, nothing of one depends on the others, and each ends for a reason.
#include <catch2/catch.hpp>

#include <gyre/generate/stream.hpp>

#include "generate/support.hpp"

using namespace gyre_test;
using gyre::finish;

namespace {

using small_net = net_of<ConcatGrouped, gyre::fp32>;

gyre::generation_request request_of(std::span<const gyre::token> prompt, gyre::exits::any exit, gyre::index max_new,
                                    std::uint64_t key = 0) {
  gyre::generation_request r;
  r.prompt = prompt, r.exit = exit, r.max_new = max_new, r.key = key, r.of = gyre::seed{5};
  return r;
}
gyre::generation alone(const small_net& net, const gyre::generation_request& r, gyre::generator_options options = {}) {
  gyre::generator generator(net, options);
  const auto id = generator.start(r);
  generator.run();
  return generator.take(id);
}
void check_same(const gyre::generation& a, const gyre::generation& b) {
  CHECK(a.tokens == b.tokens);
  CHECK(a.steps == b.steps);
  CHECK(a.log_probabilities == b.log_probabilities);  // the same bits
  CHECK(a.reason == b.reason);
}

}  // namespace

TEST_CASE("generation is a range that is made as it is read", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>();
  const auto text = random_tokens(16, 23, 0);
  int seen = 0, least = 99, most = 0;
  for (auto [id, steps] : gyre::generate(net, std::span(text).first(6), gyre::exits::latent_diff{.below = 0.5f, .cap = 8})) {
    CHECK((id >= 0 && id < 23));
    if (seen == 0) CHECK(steps == 8);  // the prompt's last token runs all steps
    least = (std::min)(least, steps), most = (std::max)(most, steps);
    ++seen;
  }
  CHECK(seen == 24 - 6);
  CHECK((least >= 1 && least < most && most <= 8));

  auto stream = gyre::generate(net, request_of(std::span(text).first(6), 2, 5));
  CHECK(stream.result().tokens.empty());
  auto reading = stream.begin();
  CHECK(stream.result().tokens.size() == 1);
  CHECK((*reading).position == 6);
  ++reading, ++reading;
  CHECK(stream.result().tokens.size() == 3);
  CHECK(stream.result().reason == finish::running);
  while (reading != stream.end()) ++reading;
  CHECK(stream.result().tokens.size() == 5);
  CHECK(stream.result().reason == finish::length);
}

TEST_CASE("tokens are chosen from the logits of a pass without a cache, by seed, key and position", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>(8);
  std::vector<double> probabilities(23);
  std::vector<gyre::token> order(23);
  for (const gyre::sampling& choose :
       {gyre::sampling{.greedy = true}, gyre::sampling{.temperature = 0.5f, .repetition_penalty = 4}}) {
    auto tokens = random_tokens(5, 23, 3);
    gyre::generation_request r = request_of(tokens, 4, 15, 6);
    r.choose = choose;
    gyre::generator generator(net);
    const auto id = generator.start(r);
    generator.run();
    const gyre::generation result = generator.take(id);
    REQUIRE(result.tokens.size() == 15);
    for (std::size_t n = 0; n < 15; ++n) {
      const auto logits = full_logits(net, std::span<const gyre::token>(tokens), 6, {gyre::seed{5}, 0, 1}, 4);
      const double* z = logits[static_cast<gyre::index>(tokens.size()) - 1];
      const auto expected = gyre::sample(std::span(z, 23), std::span<const gyre::token>(tokens), choose,
                                         gyre::sampling_uniform(gyre::seed{5}, 6, 5 + n), {probabilities, order});
      CHECK(result.tokens[n] == expected.id);
      CHECK(result.log_probabilities[n] == Approx(expected.log_probability).epsilon(1e-10));
      CHECK(result.steps[n] == 4);
      tokens.push_back(result.tokens[n]);
    }
  }
}

TEST_CASE("a request's result does not depend on the batch around it", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>(2);
  std::vector<std::vector<gyre::token>> prompts;
  std::vector<gyre::generation_request> requests;
  const gyre::exits::any rules[] = {gyre::exits::latent_diff{.below = 0.5f, .cap = 8}, 3,
                                    gyre::exits::latent_diff{.below = 0.4f, .cap = 6, .least = 2, .stride = 2},
                                    gyre::exits::fixed{1}};
  for (std::uint32_t i = 0; i < 4; ++i) prompts.push_back(random_tokens(2 + 3 * i, 23, i));
  for (std::uint32_t i = 0; i < 4; ++i) {
    requests.push_back(request_of(prompts[i], rules[i], 5 + i, 100 + i));
    requests.back().of = gyre::seed{i / 2};  // initial states of two seeds in one round
    if (i == 2) requests.back().lookup = gyre::cache_lookup::skip;
    if (i == 0) requests.back().exit_in_prompt = true;
  }
  std::vector<gyre::generation> expected;
  for (const auto& r : requests) expected.push_back(alone(net, r));
  for (std::size_t i = 0; i < 4; ++i) check_same(alone(net, requests[i], {.prompt_rows = 2}), expected[i]);

  gyre::generator generator(net, {.prompt_rows = 7});
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 4; ++i) {  // each joins a round after the one before
    ids.push_back(generator.start(requests[i]));
    generator.advance();
  }
  generator.run();
  for (std::size_t i = 0; i < 4; ++i) check_same(generator.result(ids[i]), expected[i]);
  for (std::size_t i = 0; i < 4; ++i) generator.take(ids[i]);
  // Caches of ended requests serve again, whatever they held.
  for (std::size_t i = 4; i-- > 0;) ids[i] = generator.start(requests[i]);
  generator.run();
  for (std::size_t i = 0; i < 4; ++i) check_same(generator.take(ids[i]), expected[i]);
}

TEST_CASE("random numbers come from the seed and the sequence's key", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>(2);
  const auto prompt = random_tokens(4, 23, 0);
  gyre::generation_request r = request_of(prompt, 3, 15);
  r.choose.temperature = 2;
  const auto first = alone(net, r);
  check_same(alone(net, r), first);
  r.key = 1;
  CHECK(alone(net, r).tokens != first.tokens);
  r.key = 0, r.of = gyre::seed{6};
  CHECK(alone(net, r).tokens != first.tokens);
  r = request_of(prompt, 3, 15), r.choose.greedy = true;
  const auto greedy = alone(net, r);
  r.key = 1;  // other initial states, other probabilities
  CHECK(alone(net, r).log_probabilities != greedy.log_probabilities);
  r.state_scale = 0;  // the same initial states for all
  const auto certain = alone(net, r);
  r.key = 0;
  CHECK(alone(net, r).log_probabilities == certain.log_probabilities);
  r.choose = {.temperature = 2};  // then the draws alone differ
  const auto drawn = alone(net, r);
  r.key = 1;
  CHECK(alone(net, r).tokens != drawn.tokens);
}

TEST_CASE("generation ends for a reason", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>(2);
  const auto prompt = random_tokens(4, 23, 0), full = random_tokens(24, 23, 1);
  gyre::generation_request r = request_of(prompt, 2, 10);
  const auto free = alone(net, r);
  CHECK(free.reason == finish::length);
  REQUIRE(free.tokens.size() == 10);

  r.max_new = 0;
  const auto filled = alone(net, r);
  CHECK(filled.reason == finish::context);
  CHECK(filled.tokens.size() == 20);
  CHECK(std::equal(free.tokens.begin(), free.tokens.end(), filled.tokens.begin()));
  r.max_new = 21;
  CHECK(alone(net, r).reason == finish::context);
  const auto none = alone(net, request_of(full, 2, 0));
  CHECK(none.reason == finish::context);
  CHECK(none.tokens.empty());

  r.max_new = 10;
  std::size_t at = 3;
  while (std::find(free.tokens.begin(), free.tokens.begin() + static_cast<std::ptrdiff_t>(at), free.tokens[at]) !=
         free.tokens.begin() + static_cast<std::ptrdiff_t>(at))
    ++at;  // a token that has not come before
  r.stop_tokens = {free.tokens[at]};
  const auto stopped = alone(net, r);
  CHECK(stopped.reason == finish::stop_token);
  CHECK(stopped.tokens == std::vector(free.tokens.begin(), free.tokens.begin() + static_cast<std::ptrdiff_t>(at)));
}

TEST_CASE("callbacks see each token once, may cancel, throw and start", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>(2);
  const auto prompt = random_tokens(4, 23, 0);
  const auto expected = alone(net, request_of(prompt, 2, 10));

  gyre::generator generator(net);
  std::vector<gyre::token> seen;
  gyre::generation_request r = request_of(prompt, 2, 10);
  r.on_token = [&](const gyre::generated& g) {
    CHECK(g.position == static_cast<gyre::index>(4 + seen.size()));
    seen.push_back(g.id);
    return seen.size() < 4;
  };
  const auto cancelled = generator.start(r);
  bool thrown = false;
  gyre::generation_request throwing = request_of(prompt, 2, 10), later = request_of(prompt, 2, 10);
  std::size_t calls = 0;
  std::uint64_t started = 0;
  throwing.on_token = [&](const gyre::generated&) {
    if (++calls == 3 && !thrown) thrown = true, throw std::runtime_error("the reader is gone");
    if (calls == 6) started = generator.start(later);
    CHECK_THROWS_WITH(generator.advance(), Catch::Contains("callbacks"));
    return true;
  };
  const auto other = generator.start(throwing);
  CHECK_THROWS_WITH(generator.run(), "the reader is gone");
  generator.run();
  CHECK(generator.result(cancelled).reason == finish::cancelled);
  CHECK(generator.result(cancelled).tokens == std::vector(expected.tokens.begin(), expected.tokens.begin() + 4));
  CHECK(seen == generator.result(cancelled).tokens);
  CHECK(calls == 10);
  check_same(generator.take(other), expected);
  check_same(generator.take(started), expected);
  CHECK_THROWS_WITH(generator.result(other), Catch::Contains("no request 2"));

  const auto running = generator.start(request_of(prompt, 2, 10));
  generator.advance();
  CHECK_THROWS_WITH(generator.take(running), Catch::Contains("still running"));
  generator.cancel(running);
  CHECK_FALSE(generator.advance());
  CHECK(generator.take(running).tokens.size() == 1);
}

TEST_CASE("observers of states may cancel and start requests in the middle of a round", "[generator]") {
  const auto net = make_net<ConcatGrouped, gyre::fp32>(2);
  const auto prompt = random_tokens(4, 23, 0);
  const auto expected = alone(net, request_of(prompt, 3, 10));
  gyre::generator generator(net);
  std::uint64_t watched = 0, started = 0;
  const auto other = generator.start(request_of(prompt, 3, 10));
  watched = generator.start(request_of(prompt, 3, 10), [&](const gyre::token_state<float>& s) {
    if (s.position != 6 || s.step != 2) return;
    generator.cancel(watched);
    started = generator.start(request_of(prompt, 3, 10));
  });
  generator.run();
  CHECK(generator.result(watched).reason == finish::cancelled);
  CHECK(generator.take(watched).tokens == std::vector(expected.tokens.begin(), expected.tokens.begin() + 3));
  check_same(generator.take(other), expected);
  check_same(generator.take(started), expected);
}
