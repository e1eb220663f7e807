// Generation allocates nothing once its requests have been in their largest round. [no_sanitizer]
#include <catch2/catch.hpp>

#include <vector>

#include <gyre/gyre.hpp>

#include "interpose.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 61, .width = 48, .heads = 3, .mlp = 72, .context = 400};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};

}  // namespace

TEST_CASE("decoding with exits and lookups allocates nothing once it runs") {
  gyre::network<Model, gyre::cpu, gyre::fp32> net(gyre::cpu{2}, gyre::seed{1}, false);
  gyre::generator generator(net);
  std::vector<gyre::token> prompt(40, 7);
  long tokens = 0;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < 4; ++i) {
    gyre::generation_request r;
    r.prompt = std::span<const gyre::token>(prompt).first(10 * (i + 1));
    r.key = i, r.max_new = 300;
    r.exit = i == 3 ? gyre::exits::any(5) : gyre::exits::any(gyre::exits::latent_diff{.below = 0.3f, .cap = 8});
    r.lookup = i == 1 ? gyre::cache_lookup::skip : gyre::cache_lookup::latest;
    r.choose.top_p = 0.9f, r.choose.repetition_penalty = 1.2f;
    r.on_token = [&](const gyre::generated&) { return ++tokens, true; };
    ids.push_back(generator.start(r));
  }
  // The pool's scratch grows with the first tasks that each worker happens to take, and with the past.
  for (int i = 0; i < 150; ++i) generator.advance();
  const long before = gyre_test::allocations(), counted = tokens;
  for (int i = 0; i < 100; ++i) generator.advance();
  CHECK(gyre_test::allocations() == before);
  CHECK(tokens == counted + 4 * 100);
  int least = 8;
  for (int i = 0; i < 3; ++i)
    for (const int steps : generator.result(ids[static_cast<std::size_t>(i)]).steps) least = (std::min)(least, steps);
  CHECK(least < 8);
}

TEST_CASE("decoding allocates nothing once it runs") {
  gyre::network<Model, gyre::cpu, gyre::fp32> net(gyre::cpu{2}, gyre::seed{1});
  const std::vector<gyre::token> prompt{1, 2, 3};
  gyre::generator generator(net);
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) generator.advance();
  };
  gyre::generation_request request;
  request.prompt = prompt, request.exit = 6, request.max_new = 36;
  request.draft_steps = GENERATE(0, 2);
  const auto id = generator.start(request);
  run(request.draft_steps > 0 ? 12 : 6);  // drafts: until six tokens have been on their way at once or have been dropped
  CHECK(gyre_test::allocations_in([&] { run(24); }) == 0);
  generator.run();
  CHECK(generator.take(id).tokens.size() == 36);
}
