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

TEST_CASE("output projections of branches without a norm start smaller by the root of branches and depth") {
  constexpr gyre::dims deep{.vocab = 9, .width = 8, .heads = 2, .mlp = 6, .context = 7, .mean_steps = 5};
  using branch = gyre::sequence_attention<deep, plain>;
  using normed = gyre::mixture_model<deep, gyre::mixture<gyre::sequential, branch, gyre::gated_mlp<deep>>>;
  using bare = gyre::mixture_model<
      deep, gyre::stack<2, gyre::mixture<gyre::with_norms<gyre::parallel_2, gyre::pre_norm>, branch, gyre::gated_mlp<deep>>>>;
  const gyre::tensor_shape shape{8, 6};
  const auto variance = [&]<class A>(gyre::role r) { return A::scheme::of(r, shape, A::facts).variance; };
  CHECK(variance.operator()<normed>(gyre::role::output_projection) == Approx(1. / 6));
  CHECK(variance.operator()<bare>(gyre::role::output_projection) == Approx(1. / 6 / (2 * 2 * 5)));
  CHECK(variance.operator()<bare>(gyre::role::input_projection) == Approx(1. / 6));
  CHECK(variance.operator()<bare>(gyre::role::expert_key) == 1);
  CHECK(variance.operator()<bare>(gyre::role::embedding) == Approx(4e-4));
}

TEST_CASE("a token passes all layers of a step", "[cost]") {
  CHECK_THROWS_WITH(gyre::sizes_of<Layered>(4), "sizes_of: a depth of 4 is no multiple of the 3 layers of a step");
}
