// The closed form of the cost for models with prelude, coda and injection, and for truncated backpropagation: no memory is touched. [no_sanitizer]
#include <gyre/model/sizes_of.hpp>

#include <catch2/catch.hpp>

#include <gyre/backend/cpu.hpp>
#include <gyre/model/activation_memory.hpp>
#include <gyre/model/pass.hpp>

namespace {

constexpr gyre::dims small{.vocab = 11, .width = 12, .heads = 4, .kv_heads = 2, .head_width = 4, .mlp = 7, .context = 9};
constexpr gyre::attention_options normed{.query_key_bias = false, .query_key_norm = true};
template <class Placement, gyre::attention_options O = gyre::attention_options{}, gyre::gain G = gyre::gain::learned>
using block = gyre::block<Placement, gyre::sequence_attention<small, O>, gyre::gated_mlp<small>, G>;

template <class L, class Injection, int Before, int Core, int After, class State = gyre::initial_state::like_init,
          class LoopNorm = gyre::loop_norm::after, gyre::model_options O = gyre::model_options{}>
struct looped : gyre::model<small, gyre::prelude<gyre::stack<Before, L>>,
                            gyre::recurrent<gyre::stack<Core, L>, Injection, State, LoopNorm>,
                            gyre::coda<gyre::stack<After, L>>, gyre::options<O>> {};

struct Huginn : looped<block<gyre::sandwich>, gyre::inject::concat, 2, 4, 2> {};
struct Added : looped<block<gyre::pre_norm, normed>, gyre::inject::add, 1, 1, 3, gyre::initial_state::zero,
                      gyre::loop_norm::none, gyre::model_options{.tied_head = false}> {};
struct Bare : looped<block<gyre::post_norm, gyre::attention_options{.query_key_bias = false}, gyre::gain::none>,
                     gyre::inject::none, 1, 3, 1, gyre::initial_state::embedding, gyre::loop_norm::after,
                     gyre::model_options{.final_gain = gyre::gain::none}> {};
struct AfterBranches : looped<block<gyre::branch_post_norm>, gyre::inject::concat, 1, 2, 1> {};
struct Around : looped<block<gyre::branch_sandwich, normed>, gyre::inject::add, 1, 2, 1> {};
/// A Huginn core with depth attention and experts.
struct Both : looped<gyre::mixture<gyre::sequential, gyre::depth_attention<small>, gyre::sequence_attention<small, normed>,
                                   gyre::expert_attention<small, gyre::experts{.count = 3, .active = 2, .router_width = 4}>>,
                     gyre::inject::concat, 1, 2, 1> {};
struct CoreAlone : gyre::model<small, gyre::recurrent<block<gyre::sandwich>>> {};

template <class A>
void check(int layers, int steps, int gradient_steps) {
  CAPTURE(layers, steps, gradient_steps);
  const gyre::index depth = layers * steps, k = gradient_steps == 0 ? steps : gradient_steps;
  const gyre::model_sizes sizes = gyre::sizes_of<A>(depth, gradient_steps);
  const gyre::model_cost cost = gyre::cost<A>(depth, gradient_steps);
  gyre::index learned = 0;
  for (const gyre::tensor_entry& e : gyre::parameter_table<A>::entries)
    if (gyre::learns(e.kind)) learned += e.shape.size();
  CHECK(cost.parameters() == learned);
  const gyre::index tokens = A::shape.context;
  const auto layout = gyre::batch_layout::uniform(1, tokens);
  const gyre::depth_draw draw{steps - static_cast<int>(k), static_cast<int>(k)};
  const double forward = gyre::plan_pass<A, gyre::cpu, gyre::fp32>(layout, {steps, 0}, false).total().product_flops;
  const double both = gyre::plan_pass<A, gyre::cpu, gyre::fp32>(layout, draw, true).total().product_flops;
  CHECK(forward == static_cast<double>(tokens * cost.forward()));
  CHECK(both - forward == static_cast<double>(tokens * cost.backward()));
  for (const gyre::index rows : {gyre::index{1}, gyre::index{5}}) {
    const auto batch = gyre::batch_layout::uniform(rows, tokens);
    const auto taken = [&]<class P>() {
      return (static_cast<gyre::index>(gyre::plan_pass<A, gyre::cpu, P>(batch, draw, true).tape_bytes) + 63) / 64 * 64;
    };
    CHECK(taken.template operator()<gyre::fp32>() == gyre::activation_bytes(sizes, rows * tokens));
    CHECK(taken.template operator()<gyre::fp64>() == gyre::activation_bytes(sizes, rows * tokens, 8));
  }
  CHECK(cost.sequence_cache == tokens * (A::fixed_cache_width + steps * A::step_cache_width));
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("the closed form of the cost equals the dry run for looped models", "[cost]",
                       ((class A, int Layers), A, Layers), (Huginn, 4), (Added, 1), (Bare, 3), (AfterBranches, 2), (Around, 2),
                       (Both, 2), (CoreAlone, 1)) {
  for (const int steps : {1, 4, 9})
    for (const int k : {0, 1, 3})
      if (k <= steps) check<A>(Layers, steps, k);
}

TEST_CASE("sizes that are no model's are refused", "[cost]") {
  using Catch::Contains;
  gyre::model_sizes s = gyre::sizes_of<Huginn>(8);
  const auto refused = [&](auto change) {
    gyre::model_sizes wrong = s;
    change(wrong);
    gyre::cost_of(wrong);
  };
  CHECK_THROWS_WITH(refused([](auto& w) { w.gradient_steps = 3; }), Contains("gradient_steps must be from 0"));
  CHECK_THROWS_WITH(refused([](auto& w) { w.depth = 9; }), Contains("layers must divide depth"));
  CHECK_THROWS_WITH(refused([](auto& w) { w.coda = -1; }), Contains("prelude and coda"));
  CHECK_THROWS_WITH(refused([](auto& w) { w.form = gyre::mixture_form::parallel_2; }), Contains("branches beside each other"));
}

TEST_CASE("Huginn-0125 has the parameters that its authors give") {
  // recurrent_depth, section 1: width 5280, 55 heads, MLP 17,920, 2 + 4 + 2 layers, vocabulary 65,536, tied head, q/k biases.
  const gyre::model_sizes huginn{.vocab = 65536,
                                 .width = 5280,
                                 .context = 4096,
                                 .depth = 4 * 32,
                                 .layers = 4,
                                 .gradient_steps = 8,
                                 .prelude = 2,
                                 .coda = 2,
                                 .head_width = 96,
                                 .heads = 55,
                                 .kv_heads = 55,
                                 .shared_width = 17920,
                                 .norms = gyre::branch_norms::sandwich,
                                 .injection = gyre::input_injection::concat,
                                 .query_key_norm = false,
                                 .query_key_bias = true,
                                 .loop_norm = true};
  const gyre::model_cost cost = gyre::cost_of(huginn);
  CHECK(cost.parameters() == 3564976800);
  CHECK(static_cast<double>(cost.forward()) == Approx(0.11e12).epsilon(0.1));  // a token at r 32, section 5
}
