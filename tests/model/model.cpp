// What a model type says of itself: how deep it is for the initialisation, which of its tensors there are, and its fingerprint.
// [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/description.hpp>
#include <gyre/model/pass.hpp>

namespace {

using gyre::chain, gyre::stack, gyre::prelude, gyre::coda, gyre::recurrent, gyre::checkpoint;

constexpr gyre::dims tiny{.vocab = 7, .width = 8, .heads = 2, .mlp = 12, .context = 16, .mean_steps = 4};
template <gyre::dims D>
struct block_of : gyre::sandwich_block<gyre::sequence_attention<D>, gyre::gated_mlp<D>> {};
using Block = block_of<tiny>;
template <class... Parts>
using with = gyre::model<tiny, Parts...>;

// L = lP + rbar lR + lC, however the layers are bundled (recurrent_depth, section 2).
constexpr double flat = 2 + 4 * 3 + 1;
static_assert(with<prelude<stack<2, Block>>, recurrent<chain<Block, Block, Block>>, coda<Block>>::facts.effective_depth ==
              flat);
static_assert(with<prelude<chain<stack<2, Block>>>, recurrent<chain<Block, stack<2, Block>>>, coda<Block>>::facts
                  .effective_depth == flat);
static_assert(with<prelude<stack<1, stack<2, Block>>>, recurrent<checkpoint<stack<3, Block>>>, coda<chain<Block>>>::facts
                  .effective_depth == flat);
static_assert(with<prelude<Block>, recurrent<stack<3, stack<2, Block>>>>::core_depth == 6);

struct Plain : with<recurrent<Block>> {};
struct PlainLast : with<recurrent<Block>, gyre::options<gyre::model_options{.final_gain = gyre::gain::none}>> {};

constexpr gyre::dims other(double rope_base, double eps) {
  gyre::dims d = tiny;
  d.rope_base = rope_base, d.norm_eps = eps;
  return d;
}
struct OtherBase : with<recurrent<block_of<other(77, tiny.norm_eps)>>> {};
struct OtherEps : with<recurrent<block_of<other(tiny.rope_base, 1e-2)>>> {};

template <class A>
std::vector<double> logits_of(const std::vector<double>& parameters) {
  gyre::network<A, gyre::reference, gyre::fp64> net({}, gyre::seed{2});
  std::copy(parameters.begin(), parameters.end(), net.values().begin());
  net.refresh();
  gyre::pass_memory<gyre::reference> memory{{}};
  gyre::batch_layout layout;
  layout.add(4, 0, 0);
  std::vector<double> out(4 * 7);
  gyre::run_logits(net, memory, layout, std::vector<gyre::token>{1, 2, 3, 4}, {gyre::seed{3}, 8}, 3,
                   gyre::matrix_view<double>(out.data(), 4, 7));
  return out;
}
template <class A>
std::vector<double> initial_parameters() {
  const gyre::network<A, gyre::reference, gyre::fp64> net({}, gyre::seed{2});
  return {net.values().begin(), net.values().end()};
}

}  // namespace

TEST_CASE("a last norm without a weight is one whose weights are 1") {
  CHECK(Plain::parameter_count == PlainLast::parameter_count + tiny.width);
  std::vector<double> parameters = initial_parameters<Plain>();  // gains begin as 1
  const std::vector<double> learned = logits_of<Plain>(parameters);
  parameters.resize(static_cast<std::size_t>(PlainLast::parameter_count));  // they are the last
  CHECK(logits_of<PlainLast>(parameters) == learned);
  CHECK(gyre::fingerprint<Plain>() != gyre::fingerprint<PlainLast>());
}

TEST_CASE("layers with other numbers than the model's have another fingerprint") {
  const std::vector<double> parameters = initial_parameters<Plain>(), here = logits_of<Plain>(parameters);
  CHECK(logits_of<OtherBase>(parameters) != here);
  CHECK(logits_of<OtherEps>(parameters) != here);
  CHECK(gyre::fingerprint<OtherBase>() != gyre::fingerprint<Plain>());
  CHECK(gyre::fingerprint<OtherEps>() != gyre::fingerprint<Plain>());
  CHECK(gyre::describe<OtherBase>().find("rope base 77") != std::string::npos);
}
