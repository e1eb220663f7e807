// What drafted decoding refuses. [own_unit]
#include <catch2/catch.hpp>

#include <gyre/compose/mixture.hpp>
#include <gyre/generate/generator.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/model/mixture_model.hpp>

#include "generate/support.hpp"

using namespace gyre_test;

namespace {

template <gyre::experts O>
struct Refused
    : gyre::model<plain,
                  gyre::recurrent<gyre::sandwich_block<gyre::sequence_attention<plain>, gyre::expert_attention<plain, O>>>> {};
struct Dreamer
    : gyre::mixture_model<plain, gyre::mixture<gyre::sequential, gyre::depth_attention<plain>, gyre::sequence_attention<plain>,
                                               gyre::expert_attention<plain, gyre::experts{.count = 2, .router_width = 8}>>> {};

}  // namespace

TEST_CASE("an observer of passes and drafts exclude each other") {
  const auto net = make_net<Concat>();
  const auto prompt = random_tokens(3, 23, 1);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 4, r.draft_steps = 2;
  struct : gyre::pass_observer<gyre::fp64> {
  } observer;
  gyre::generator generator(net);
  generator.start(r);
  CHECK_THROWS_WITH(generator.observe_passes(&observer), Catch::Contains("a request with draft_steps is running"));
  generator.run();
  generator.observe_passes(&observer);
  CHECK_THROWS_WITH(generator.start(r), Catch::Contains("an observer of passes cannot follow drafts"));
  generator.observe_passes(nullptr);
  generator.start(r);
}

TEST_CASE("drafts are refused with the numbers where they cannot work") {
  const auto prompt = random_tokens(3, 23, 1);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = 4, r.draft_steps = 2;
  const auto start = [&](const auto& net, auto... more) { gyre::generator(net).start(r, more...); };
  using Catch::Contains;
  CHECK_THROWS_WITH(start(make_net<Dreamer>()), Contains("draft_steps is 2, but a layer of the recurrence keeps a memory"));
  CHECK_THROWS_WITH(start(make_net<Refused<gyre::experts{.count = 4, .width = 8, .router_width = 8}>>()),
                    Contains("knows which step runs"));
  CHECK_THROWS_WITH(
      start(make_net<Refused<gyre::experts{
                .count = 4, .width = 8, .router_width = 8, .bias_rows = 2, .encoding = gyre::depth_encoding::none}>>()),
      Contains("knows which step runs"));
  const auto net = make_net<Concat>();
  CHECK_THROWS_WITH(start(net, [](const gyre::token_state<double>&) {}), Contains("the states of each step are not shown"));
  r.exit = gyre::exits::latent_diff{.below = 0.1f, .cap = 4};
  CHECK_THROWS_WITH(start(net), Contains("not a fixed number of steps"));
  r.exit = 4, r.draft_steps = -1;
  CHECK_THROWS_WITH(start(net), Contains("draft_steps is -1"));
}
