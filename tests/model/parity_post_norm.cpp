// Golden passes of models with norm placement post_norm: every injection, and over all placements every pair of the other choices.
// The memory of parity_sandwich.cpp, other arithmetic. [no_sanitizer]
#include "support/parity.hpp"

using namespace gyre_test;

namespace {

constexpr gyre::dims concat_dims{.vocab = 13, .width = 8, .heads = 4, .kv_heads = 4, .head_width = 2, .mlp = 10, .context = 16};
using concat_block = golden_block<concat_dims, gyre::post_norm, gyre::gain::none, gyre::pairing::half_split, true>;
struct concat_model : gyre::model<concat_dims, gyre::prelude<gyre::stack<1, concat_block>>,
                                  gyre::recurrent<gyre::stack<2, concat_block>, gyre::inject::concat,
                                                  gyre::initial_state::embedding, gyre::loop_norm::after>,
                                  gyre::coda<gyre::stack<1, concat_block>>> {};

constexpr gyre::dims add_dims{.vocab = 13, .width = 8, .heads = 4, .kv_heads = 4, .head_width = 2, .mlp = 10, .context = 16};
using add_block = golden_block<add_dims, gyre::post_norm, gyre::gain::learned, gyre::pairing::adjacent, true>;
struct add_model
    : gyre::model<
          add_dims,
          gyre::recurrent<gyre::stack<1, add_block>, gyre::inject::add, gyre::initial_state::like_init, gyre::loop_norm::after>,
          gyre::coda<gyre::stack<1, add_block>>> {};

constexpr gyre::dims none_dims{.vocab = 13, .width = 8, .heads = 4, .kv_heads = 2, .head_width = 2, .mlp = 10, .context = 16};
using none_block = golden_block<none_dims, gyre::post_norm, gyre::gain::none, gyre::pairing::adjacent, false>;
struct none_model : gyre::model<none_dims, gyre::prelude<gyre::stack<1, none_block>>,
                                gyre::recurrent<gyre::stack<2, none_block>, gyre::inject::none, gyre::initial_state::embedding,
                                                gyre::loop_norm::after>,
                                gyre::coda<gyre::stack<1, none_block>>,
                                gyre::options<gyre::model_options{.tied_head = false, .embedding_scale = 1}>> {};

}  // namespace

TEST_CASE("golden passes: post_norm, concat") { check_golden_everywhere<concat_model>("post_norm_concat"); }
TEST_CASE("golden passes: post_norm, add") { check_golden_everywhere<add_model>("post_norm_add"); }
TEST_CASE("golden passes: post_norm, none") { check_golden_everywhere<none_model>("post_norm_none"); }
