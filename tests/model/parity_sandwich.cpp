// Golden passes of models with norm placement sandwich: every injection, and over all placements every pair of the other choices.
// [own_unit]
#include "support/parity.hpp"

using namespace gyre_test;

namespace {

constexpr gyre::dims concat_dims{
    .vocab = 13, .width = 16, .heads = 4, .kv_heads = 4, .head_width = 4, .mlp = 12, .context = 16};
using concat_block = golden_block<concat_dims, gyre::sandwich, gyre::gain::learned, gyre::pairing::adjacent, true>;
struct concat_model : gyre::model<concat_dims, gyre::prelude<gyre::stack<1, concat_block>>,
                                  gyre::recurrent<gyre::stack<2, concat_block>, gyre::inject::concat,
                                                  gyre::initial_state::like_init, gyre::loop_norm::after>,
                                  gyre::coda<gyre::stack<1, concat_block>>> {};

constexpr gyre::dims add_dims{.vocab = 13, .width = 8, .heads = 4, .kv_heads = 2, .head_width = 2, .mlp = 10, .context = 16};
using add_block = golden_block<add_dims, gyre::sandwich, gyre::gain::none, gyre::pairing::half_split, true>;
struct add_model
    : gyre::model<
          add_dims, gyre::prelude<gyre::stack<1, add_block>>,
          gyre::recurrent<gyre::stack<2, add_block>, gyre::inject::add, gyre::initial_state::like_init, gyre::loop_norm::after>,
          gyre::coda<gyre::stack<1, add_block>>, gyre::options<gyre::model_options{.tied_head = false, .embedding_scale = 1}>> {
};

constexpr gyre::dims none_dims{.vocab = 13, .width = 8, .heads = 2, .kv_heads = 2, .head_width = 4, .mlp = 10, .context = 16};
using none_block = golden_block<none_dims, gyre::sandwich, gyre::gain::learned, gyre::pairing::half_split, false>;
struct none_model : gyre::model<none_dims, gyre::prelude<gyre::stack<1, none_block>>,
                                gyre::recurrent<gyre::stack<2, none_block>, gyre::inject::none, gyre::initial_state::embedding,
                                                gyre::loop_norm::after>,
                                gyre::coda<gyre::stack<1, none_block>>> {};

}  // namespace

TEST_CASE("golden passes: sandwich, concat") { check_golden_everywhere<concat_model>("sandwich_concat"); }
TEST_CASE("golden passes: sandwich, add") { check_golden_everywhere<add_model>("sandwich_add"); }
TEST_CASE("golden passes: sandwich, none") { check_golden_everywhere<none_model>("sandwich_none"); }
