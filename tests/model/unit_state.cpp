// Models of mixtures whose state starts at RMS 1.
#include <catch2/catch.hpp>

#include <cmath>

#include <gyre/backend/cpu.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/model/network.hpp>

namespace {

constexpr gyre::dims sizes{.vocab = 101, .width = 48, .heads = 3, .mlp = 16, .context = 8};
using layer = gyre::mixture<gyre::sequential, gyre::sequence_attention<sizes, gyre::mixture_attention>, gyre::gated_mlp<sizes>>;
struct Small : gyre::mixture_model<sizes, layer> {};
struct Unit : gyre::mixture_model<sizes, layer, gyre::unit_state<gyre::mixture_initialisation<>>, gyre::model_options{}> {};

// Mean square of the embedded tokens.
template <class Model>
double state(const gyre::network<Model, gyre::cpu, gyre::fp32>& net) {
  double sum = 0;
  for (const float x : net.values().first(101 * 48)) sum += std::pow(x * Model::embedding_scale(), 2);
  return sum / (101 * 48);
}

}  // namespace

TEST_CASE("unit_state: embeddings of variance 1 / h, scaled by sqrt(h), and all else as the other scheme has it") {
  const gyre::network<Small, gyre::cpu, gyre::fp32> small(gyre::cpu(1), gyre::seed{1});
  const gyre::network<Unit, gyre::cpu, gyre::fp32> unit(gyre::cpu(1), gyre::seed{1});
  // A normal that is cut at 3 std has a variance of 0.9733; five standard errors of 4,848 squares are 0.1.
  CHECK(state(unit) == Approx(0.9733).margin(0.1));
  CHECK(state(small) == Approx(0.9733 * 0.02 * 0.02).epsilon(0.1));
  CHECK(Unit::parameter_count == Small::parameter_count);
  for (std::size_t i = 101 * 48; i < static_cast<std::size_t>(Unit::parameter_count); ++i)
    CHECK(unit.values()[i] == small.values()[i]);
}
