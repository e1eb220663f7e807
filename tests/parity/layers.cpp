// Layers on two backends: recorded, and in lockstep. [own_unit]
#include <gyre/parity/catch.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/rms_norm.hpp>
#include <gyre/parity/lockstep.hpp>
#include <gyre/parity/step.hpp>

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::index, gyre::matrix_view;

inline constexpr gyre::dims narrow{.vocab = 7, .width = 20, .heads = 1, .mlp = 13, .context = 40};
using mlp = gyre::gated_mlp<narrow>;
constexpr std::array<index, 4> lengths{1, 0, 33, 7};

namespace {

parity::report compare_layer(auto device) {
  const auto input = parity::make_layer_input<mlp, float>(lengths, gyre::seed{4});
  const auto of = [&](auto b) { return parity::record_layer<mlp, gyre::fp32>(b, input); };
  const gyre::reference left;
  return parity::compare_recordings("gated_mlp", {of(left), of(left)}, {of(device), of(device)},
                                    parity::record_layer<mlp, parity::bounded_precision<float>>(left, input));
}

}  // namespace

TEST_CASE("a layer agrees forward and backward", "[parity]") {
  const parity::report r = compare_layer(gyre::cpu(1));
  CHECK_THAT(r, parity::agrees());
  CHECK(r.elements > 1000);
}

TEST_CASE("losses of a layer's own are among its calls", "[parity]") {
  using layer = gyre::expert_attention<narrow, gyre::experts{.count = 3, .active = 2, .router_width = 4, .z_weight = 0.1}>;
  const auto calls = parity::record_layer<layer, gyre::fp32>(gyre::reference(),
                                                             parity::make_layer_input<layer, float>(lengths, gyre::seed{4}));
  const auto count = [&](gyre::operation wanted) {
    return std::count_if(calls.begin(), calls.end(), [&](const parity::recorded_call& call) { return call.of == wanted; });
  };
  CHECK(count(gyre::operation::router_loss) == 1);
  CHECK(count(gyre::operation::sum) == 1);
  CHECK(count(gyre::operation::router_loss_backward) == 1);
}

TEST_CASE("the first operation of a layer that diverges is named", "[parity]") {
  // Wrong by 1e-4 in one element, which all that follows inherits.
  const auto wrong = parity::replace<gyre::operation::gated_silu>(
      gyre::cpu(1), [](gyre::cpu& b, matrix_view<const float> h, matrix_view<float> a) {
        b.gated_silu(h, a);
        if (a.size() > 0) a[a.rows - 1][2] += 1e-4F;
      });
  const parity::report r = compare_layer(wrong);
  REQUIRE_FALSE(r.passed());
  INFO(r);
  CHECK_THAT(r.findings.front().text, Catch::Contains(", gated_silu: 1 of "));
  CHECK_THAT(r, parity::fails(parity::fault::tolerance));
}

TEST_CASE("in lockstep every call of a layer has the tolerance of its operation", "[parity]") {
  const auto input = parity::make_layer_input<mlp, float>(lengths, gyre::seed{4});
  const parity::lockstep both(gyre::reference(), gyre::cpu(1));
  parity::record_layer<mlp, gyre::fp32>(both, input);
  CHECK(both.first_failure() == nullptr);
  CHECK(both.reports().size() >= 8);

  const auto wrong = parity::replace<gyre::operation::gated_silu_backward>(
      gyre::cpu(1), [](gyre::cpu& b, matrix_view<const float> h, matrix_view<const float> da, matrix_view<float> dh) {
        b.gated_silu_backward(h, da, dh);
        if (dh.size() > 0) dh[0][0] *= 1.0001F;
      });
  const parity::lockstep caught(gyre::reference(), wrong);
  parity::record_layer<mlp, gyre::fp32>(caught, input);
  REQUIRE(caught.first_failure() != nullptr);
  CHECK(caught.first_failure()->subject == "gated_silu_backward");
  index failures = 0;
  for (const parity::report& r : caught.reports()) failures += !r.passed();
  CHECK(failures == 1);
}

}  // namespace gyre_test
