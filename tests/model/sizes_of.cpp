// Also models that are stacks.
#include "model/drawn_mixtures.hpp"

namespace {

constexpr gyre::dims small{.vocab = 9, .width = 8, .heads = 2, .mlp = 6, .context = 7};
constexpr gyre::attention_options plain{.query_key_bias = false, .query_key_norm = true};
struct Layered
    : gyre::mixture_model<
          small,
          gyre::stack<
              3, gyre::mixture<gyre::sequential, gyre::sequence_attention<small, plain>,
                               gyre::expert_attention<small, gyre::experts{.count = 4, .active = 2, .router_width = 4}>>>> {};
struct Dense
    : gyre::mixture_model<
          small,
          gyre::stack<3, gyre::mixture<gyre::sequential, gyre::sequence_attention<small, plain>, gyre::gated_mlp<small>>>> {};

}  // namespace

TEST_CASE("the closed form of the cost equals the dry run for random mixtures, 0 to 9") {
  gyre_test::check_drawn<0>(std::make_integer_sequence<int, 10>{});
}

TEST_CASE("the closed form knows layered models, with experts and dense") {
  gyre_test::check_counts<Layered>(3, 1);
  gyre_test::check_counts<Dense>(3, 1);
}
