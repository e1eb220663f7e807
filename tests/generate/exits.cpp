// Exit rules, what they save, and the states on the way.
#include <catch2/catch.hpp>

#include <gyre/generate/generator.hpp>

#include "generate/support.hpp"

using namespace gyre_test;
namespace exits = gyre::exits;

namespace {

/// The reference backend with a meter: rows that went through products of the fused gate and up projection, one each layer.
struct metered : gyre::reference {
  gyre::index* layer_rows = nullptr;
  template <class T, class Prepared>
  void product(gyre::matrix_view<const T> x, gyre::weight_matrix<T, Prepared> w, gyre::matrix_view<T> y, bool accumulate) {
    if (layer_rows != nullptr && y.cols == 2 * plain.mlp) *layer_rows += x.rows;
    gyre::reference::product(x, w, y, accumulate);
  }
};

}  // namespace

TEST_CASE("latent_diff compares the change with the state, at its steps", "[exits]") {
  const exits::latent_diff rule{.below = 0.25f, .cap = 9, .least = 3, .stride = 2};
  static_assert(gyre::exit_rule<exits::latent_diff> && gyre::exit_rule<exits::fixed>);
  for (const auto& [steps, checked] : {std::pair{1, false}, {2, false}, {3, true}, {4, false}, {5, true}, {7, true}})
    CHECK(rule.checks(steps) == checked);
  CHECK(rule.leaves({3, 0.249, 1}));
  CHECK_FALSE(rule.leaves({3, 0.25, 1}));  // below, not at
  CHECK(rule.leaves({3, 0.249e-9, 1e-9}));
  CHECK_FALSE(rule.leaves({3, 0, 0}));  // no state, no verdict
  CHECK_FALSE(rule.leaves({3, std::nan(""), 1}));

  const exits::any any = rule, copy = any;
  CHECK(copy.most_steps() == 9);
  CHECK((copy.checks(5) && !copy.checks(4) && copy.leaves({3, 0.2, 1}) && !copy.leaves({3, 0.3, 1})));
  CHECK(exits::any(7).most_steps() == 7);
  CHECK(exits::any(7).reads() == exits::evidence::none);
}

TEST_CASE("row_change gives the norms of the change and of the state", "[exits]") {
  const double x[] = {3, 4, 0, 1, -2, 2}, before[] = {0, 0, 0, 1, -2, 2};
  double change[4];
  gyre::reference().row_change(gyre::matrix_view<const double>(x, 2, 3), gyre::matrix_view<const double>(before, 2, 3), change);
  CHECK(change[0] == 5);
  CHECK(change[1] == 5);
  CHECK(change[2] == 0);
  CHECK(change[3] == 3);
}

TEST_CASE("tokens that leave early save their steps", "[exits]") {
  gyre::index layer_rows = 0;
  metered device;
  device.layer_rows = &layer_rows;
  const auto net = make_net<Concat, gyre::fp64, metered>(3, device);
  std::vector<std::vector<gyre::token>> prompts;
  for (std::uint32_t i = 0; i < 3; ++i) prompts.push_back(random_tokens(2 + i, 23, i));
  gyre::generator generator(net);
  std::vector<std::uint64_t> ids;
  for (std::uint32_t i = 0; i < 3; ++i) {
    gyre::generation_request r;
    r.prompt = prompts[i], r.key = i, r.max_new = 12;
    r.exit = i == 2 ? exits::any(5) : exits::any(exits::latent_diff{.below = 0.5f, .cap = 8});
    ids.push_back(generator.start(r));
  }
  generator.run();
  // Every token fed runs prelude and coda once (1 + 1 layers) and its own number of steps of 2 layers; the last is not fed.
  gyre::index expected = 0, most = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto result = generator.take(ids[i]);
    const gyre::index cap = i == 2 ? 5 : 8, prompt = 2 + static_cast<gyre::index>(i);
    expected += (prompt - 1) * (2 + 2 * cap);
    most += (prompt - 1) * (2 + 2 * cap);
    for (const int steps : result.steps) expected += 2 + 2 * steps, most += 2 + 2 * cap;
    if (i == 2) CHECK(std::all_of(result.steps.begin(), result.steps.end(), [](int s) { return s == 5; }));
  }
  CHECK(layer_rows == expected);
  CHECK(expected < most * 9 / 10);
}

TEST_CASE("states of every step are shown on request, in float too", "[exits]") {
  const auto net = make_net<Concat, gyre::fp32>(3);
  const auto prompt = random_tokens(5, 23, 4);
  gyre::generation_request r;
  r.prompt = prompt, r.exit = exits::latent_diff{.below = 0.5f, .cap = 8}, r.max_new = 10;
  struct seen {
    int steps = 0;
    bool ended = false;
    std::vector<float> previous, last;
  };
  std::vector<seen> positions(15);
  gyre::generator generator(net, {.prompt_rows = 3});
  gyre::generation_request other = r;
  other.key = 9;
  generator.start(other);  // shown to nobody
  const auto id = generator.start(r, [&](const gyre::token_state<float>& s) {
    seen& p = positions.at(static_cast<std::size_t>(s.position));
    CHECK(s.step == p.steps + 1);
    CHECK_FALSE(p.ended);
    CHECK(s.state.size() == 16);
    p.steps = s.step, p.ended = s.last;
    p.previous = std::exchange(p.last, std::vector<float>(s.state.begin(), s.state.end()));
  });
  generator.run();
  const auto result = generator.take(id);
  for (std::size_t position = 0; position < 14; ++position) {
    const seen& p = positions[position];
    INFO("position " << position);
    CHECK(p.ended);
    CHECK(p.steps == (position < 5 ? 8 : result.steps[position - 4]));
    if (position < 5 || p.steps == 8 || p.steps == 1) continue;
    double moved = 0, size = 0;  // the rule, on the states that were shown
    for (std::size_t j = 0; j < 16; ++j)
      moved += std::pow(double{p.last[j]} - double{p.previous[j]}, 2), size += std::pow(double{p.last[j]}, 2);
    CHECK(std::sqrt(moved) < 0.5 * std::sqrt(size));
  }
  CHECK(positions[14].steps == 0);  // the last token was not fed
}
