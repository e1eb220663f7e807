#include <catch2/catch.hpp>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/pass.hpp>

namespace {

constexpr gyre::dims tiny{.vocab = 7, .width = 8, .heads = 2, .mlp = 12, .context = 16, .mean_steps = 4};
using Block = gyre::sandwich_block<gyre::sequence_attention<tiny>, gyre::gated_mlp<tiny>>;
template <class State>
struct starting_from : gyre::model<tiny, gyre::recurrent<Block, gyre::inject::concat, State>> {};

template <class State>
std::vector<double> logits_of(std::uint64_t seed, double scale) {
  const gyre::network<starting_from<State>, gyre::reference, gyre::fp64> net({}, gyre::seed{2});
  gyre::pass_memory<gyre::reference> memory{{}};
  gyre::batch_layout layout;
  layout.add(3, 0, 0);
  std::vector<double> out(3 * 7);
  gyre::run_logits(net, memory, layout, std::vector<gyre::token>{1, 2, 3}, {gyre::seed{seed}, 0, scale}, 2,
                   gyre::matrix_view<double>(out.data(), 3, 7));
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("scale 0 makes random initial states zeros, whatever the seed", "", gyre::initial_state::like_init,
                   gyre::initial_state::like_init_unscaled, gyre::initial_state::normal, gyre::initial_state::unit) {
  CHECK(logits_of<TestType>(1, 0) == logits_of<gyre::initial_state::zero>(1, 1));
  CHECK(logits_of<TestType>(1, 0) == logits_of<TestType>(2, 0));
  CHECK(logits_of<TestType>(1, 1) != logits_of<TestType>(2, 1));
}
