// Drafted decoding gives the tokens and the numbers of decoding without drafts. [threads]
#include <gyre/generate/wavefront.hpp>

#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/expert_attention.hpp>

#include "generate/support.hpp"

using namespace gyre_test;

namespace {

/// Twelve requests that differ in everything: depth, drafts, sampling, prompt and length; some without drafts.
struct requests {
  std::vector<std::vector<gyre::token>> prompts;
  std::vector<gyre::generation_request> all;

  explicit requests(int vocabulary, gyre::index most_new) {
    const int steps[] = {8, 5, 1, 3, 7, 8}, drafts[] = {2, 1, 3, 1, 0, 8, 2, 4, 1, 2, 5, 3};
    for (std::uint32_t i = 0; i < 12; ++i) prompts.push_back(random_tokens(1 + 2 * i % 7, vocabulary, i));
    for (std::size_t i = 0; i < 12; ++i) {
      gyre::generation_request r;
      r.prompt = prompts[i], r.key = i, r.of = gyre::seed{5}, r.exit = steps[i % 6], r.draft_steps = drafts[i];
      r.state_scale = i % 5 == 0 ? 1 : 0.02;
      r.choose.greedy = i % 3 == 0, r.choose.temperature = i % 3 == 1 ? 0.05f : 0.7f;
      if (i % 4 == 1) r.choose.repetition_penalty = 1.3f;
      r.max_new = i % 2 == 0 ? 0 : 1 + static_cast<gyre::index>(i) % most_new;
      if (i == 9) r.stop_tokens = {3, 7, 11, 13};
      all.push_back(r);
    }
  }
};

template <class Net>
std::vector<gyre::generation> run_all(const Net& net, const std::vector<gyre::generation_request>& wanted) {
  gyre::generator generator(net);
  std::vector<std::uint64_t> ids;
  for (const auto& r : wanted) ids.push_back(generator.start(r));
  generator.run();
  std::vector<gyre::generation> results;
  for (const auto id : ids) results.push_back(generator.take(id));
  return results;
}

template <class Net>
void check_same(const Net& net) {
  // The added state of one model is so near its fixed point that hardly a draft is wrong.
  constexpr std::uint64_t wrong = std::is_same_v<typename Net::architecture_type, AddGrouped> ? 0 : 5;
  requests wanted(static_cast<int>(Net::architecture_type::shape.vocab), 20);
  const auto drafted = run_all(net, wanted.all);
  auto plainly = wanted.all;
  for (auto& r : plainly) r.draft_steps = 0;
  const auto expected = run_all(net, plainly);
  std::uint64_t drafted_tokens = 0, accepted = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(drafted[i].tokens == expected[i].tokens);
    CHECK(drafted[i].log_probabilities == expected[i].log_probabilities);
    CHECK(drafted[i].steps == expected[i].steps);
    CHECK(drafted[i].reason == expected[i].reason);
    CHECK((wanted.all[i].draft_steps > 0 || drafted[i].drafted == 0));
    drafted_tokens += drafted[i].drafted, accepted += drafted[i].accepted;
    // Alone, it is the same.
    if (i < 4) CHECK(run_all(net, {wanted.all[i]})[0].log_probabilities == expected[i].log_probabilities);
  }
  // Neither trivial case: some drafts were right and, but for one model, some were not.
  CHECK(accepted > 10);
  CHECK(accepted + wrong <= drafted_tokens);
}

struct Experts
    : gyre::model<
          plain, gyre::prelude<Block<plain>>,
          gyre::recurrent<
              gyre::sandwich_block<gyre::sequence_attention<plain>,
                                   gyre::expert_attention<plain, gyre::experts{.count = 4,
                                                                               .active = 2,
                                                                               .width = 8,
                                                                               .router_width = 8,
                                                                               .encoding = gyre::depth_encoding::none}>>>,
          gyre::coda<Block<plain>>> {};

}  // namespace

TEMPLATE_TEST_CASE("drafts change nothing: reference", "[decode]", ConcatGrouped, AddGrouped, NoInjection, Experts) {
  check_same(make_net<TestType, gyre::fp64>());
}

TEMPLATE_TEST_CASE("drafts change nothing: cpu", "[decode][threads]", Concat, AddGrouped, Experts) {
  check_same(make_net<TestType, gyre::fp32>(2, gyre::cpu{2}));
}

TEST_CASE("drafts with all the steps of a token are all right, and nothing is drafted where it would be too late", "[decode]") {
  const auto net = make_net<Concat, gyre::fp64>();
  const auto prompt = random_tokens(3, 23, 1);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 4, r.draft_steps = 4;
  CHECK(run_all(net, {r})[0].drafted == 0);
  r.exit = 1, r.draft_steps = 1;
  const auto one = run_all(net, {r})[0];
  CHECK(one.drafted == 0);
  CHECK(one.tokens.size() == 24 - 3);
}

TEST_CASE("a wavefront needs fewer rounds than tokens times steps, and every round is short", "[decode]") {
  // With drafts that are always right a round of draft_steps steps gives one token, once the first has arrived.
  const auto net = make_net<NoInjection, gyre::fp64>();
  const auto prompt = random_tokens(2, 23, 3);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 8, r.draft_steps = 2, r.choose.greedy = true;
  gyre::generator generator(net);
  const auto id = generator.start(r);
  int rounds = 0;
  while (generator.advance()) ++rounds;
  const auto done = generator.take(id);
  REQUIRE(done.tokens.size() == 22);
  const auto wrong = static_cast<int>(done.drafted - done.accepted);
  CAPTURE(rounds, done.drafted, done.accepted);
  CHECK(rounds <= 22 + 3 * (wrong + 1));
}

TEST_CASE("a draft is drawn as the token itself will be: with its uniform number, and after the drafts before it", "[decode]") {
  // One step before the last the logits are nearly the final ones, so most drafts are right, if they are drawn alike. Three
  // tokens are on their way at a time.
  const auto net = make_net<ConcatGrouped, gyre::fp64>();
  requests wanted(23, 20);
  std::uint64_t drafted_tokens = 0, accepted = 0;
  for (auto& r : wanted.all) {
    r.exit = 24, r.draft_steps = 9, r.state_scale = 0, r.choose.greedy = false, r.choose.temperature = 1, r.max_new = 0;
    r.stop_tokens = {};
    const auto done = run_all(net, {r})[0];
    drafted_tokens += done.drafted, accepted += done.accepted;
  }
  CAPTURE(drafted_tokens, accepted);
  CHECK(drafted_tokens > 100);
  CHECK(4 * accepted > 3 * drafted_tokens);
}

TEST_CASE("requests with drafts are cancelled and joined by others in the middle", "[decode]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>();
  requests wanted(23, 20);
  const auto expected = run_all(net, wanted.all);
  gyre::generator generator(net);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 12; ++i) {
    ids.push_back(generator.start(wanted.all[i]));
    generator.advance();
    if (i % 4 == 3) generator.cancel(ids[i - 3]);
  }
  generator.run();
  for (std::size_t i = 0; i < 12; ++i) {
    const auto got = generator.take(ids[i]);
    if (i % 4 == 0) {
      CHECK(std::equal(got.tokens.begin(), got.tokens.end(), expected[i].tokens.begin()));
    } else {
      CHECK(got.tokens == expected[i].tokens);
    }
  }
}

TEST_CASE("what a callback throws in a round of drafts passes through, and the next call goes on", "[decode]") {
  const auto net = make_net<ConcatGrouped, gyre::fp64>();
  requests wanted(23, 20);
  gyre::generation_request r = wanted.all[0];
  const auto expected = run_all(net, {r})[0];
  int calls = 0;
  std::string byte = "x";
  r.bytes = [&](gyre::token) -> std::string_view {
    if (++calls % 3 == 2) throw std::runtime_error("no bytes today");
    return byte;
  };
  gyre::generator generator(net);
  const auto id = generator.start(r);
  int thrown = 0;
  for (bool more = true; more;) {
    try {
      more = generator.advance();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  CHECK(thrown > 5);
  CHECK(generator.take(id).tokens == expected.tokens);
}

TEST_CASE("a request that a callback of its round cancels stays as it is", "[decode]") {
  const auto net = make_net<Concat, gyre::fp64>();
  const auto prompt = random_tokens(3, 23, 1);
  const auto ended = [&](int draft_steps, bool by_another, int at) {
    gyre::generator generator(net);
    gyre::generation_request r;
    r.prompt = prompt, r.exit = 6, r.draft_steps = draft_steps, r.max_new = 16;
    std::uint64_t id = 0;
    int calls = 0, seen_after = 0;
    const auto cancelling = [&](gyre::token) -> std::string_view {
      if (++calls == at) generator.cancel(id);
      return "x";
    };
    r.on_token = [&](const gyre::generated&) { return seen_after += calls >= at, true; };
    r.bytes = cancelling;
    if (by_another) r.bytes = [&](gyre::token) -> std::string_view { return seen_after += calls >= at, "x"; };
    id = generator.start(r);
    if (by_another) {
      gyre::generation_request other = r;
      other.key = 1, other.draft_steps = 0, other.bytes = cancelling, other.on_token = {};
      generator.start(other);
    }
    generator.run();
    const auto result = generator.take(id);
    CHECK(result.reason == gyre::finish::cancelled);
    CHECK(seen_after == 0);
    return result.tokens;
  };
  CHECK(ended(2, false, 5) == ended(0, false, 5));
  for (int at = 2; at < 12; ++at) ended(2, true, at);  // in rounds with an answer and in rounds without
}

TEST_CASE("a draft into logits that are no numbers ends nothing: plain decoding does not go there", "[decode]") {
  struct Untied : Model<Block<plain>, plain, gyre::inject::concat, gyre::initial_state::like_init,
                        gyre::options<gyre::model_options{.tied_head = false}>> {};
  auto net = make_net<Untied, gyre::fp64>();
  const auto prompt = random_tokens(3, 23, 1);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 6, r.choose.temperature = 2;
  const auto expected = run_all(net, {r})[0];
  std::vector<bool> used(23);
  for (const auto& tokens : {prompt, expected.tokens})
    for (const gyre::token t : tokens) used[static_cast<std::size_t>(t)] = true;
  REQUIRE(std::count(used.begin(), used.end(), false) > 2);
  for (std::size_t t = 0; t < 23; ++t)
    if (!used[t]) std::fill_n(net.values().begin() + static_cast<std::ptrdiff_t>(t) * 16, 16, std::nan(""));
  net.refresh();
  r.draft_steps = 1;
  const auto drafted = run_all(net, {r})[0];
  CHECK(drafted.tokens == expected.tokens);
  CHECK(drafted.accepted < drafted.drafted);
}
