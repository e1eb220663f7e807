// Training in bf16_mixed follows training in fp32.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/train/adamw.hpp>

#include "train/support.hpp"

namespace {

using gyre::bf16_mixed, gyre::fp32, gyre_test::random_rows, gyre_test::Tiny;
template <class P>
using network = gyre::network<Tiny, gyre::cpu, P>;

/// Gradient of the mean loss, from the same weights in both precisions.
template <class P>
std::vector<float> gradient(const network<bf16_mixed>& weights, const random_rows& rows) {
  network<P> net(gyre::cpu{1}, gyre::seed{9});
  std::transform(weights.values().begin(), weights.values().end(), net.values().begin(),
                 [](float x) { return gyre::parameter_t<P>(x); });
  net.refresh();
  gyre::pass_memory<gyre::cpu> memory(net.device());
  std::vector<float> g(static_cast<std::size_t>(Tiny::parameter_count));
  gyre::run_pass(net, memory, gyre::batch_layout::uniform(rows.rows, rows.length), rows.inputs, rows.targets,
                 {gyre::seed{5}, 1, 1}, {1, 3}, 1.0f / static_cast<float>(rows.inputs.size()), g.data());
  return g;
}

}  // namespace

TEST_CASE("gradients in bf16_mixed point where those in fp32 do", "[trainer][bf16]") {
  const random_rows rows(4, 8);
  for (std::uint64_t number = 1; number < 4; ++number) {
    const network<bf16_mixed> net(gyre::cpu{1}, gyre::seed{number});
    const auto exact = gradient<fp32>(net, rows), rounded = gradient<bf16_mixed>(net, rows);
    double off = 0, size = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      off += std::pow(static_cast<double>(rounded[i]) - static_cast<double>(exact[i]), 2),
          size += std::pow(static_cast<double>(exact[i]), 2);
    // About 40 roundings of 2^-9 follow each other, of independent signs: sqrt(40) 2^-9 / sqrt(3) = 0.007; three times that.
    CHECK(std::sqrt(off / size) < 0.021);
    CHECK(off > 0);
  }
}

TEST_CASE("training in bf16_mixed follows training in fp32", "[trainer][bf16]") {
  network<fp32> net(gyre::cpu{1}, gyre::seed{1});
  network<bf16_mixed> mixed_net(gyre::cpu{1}, gyre::seed{1});
  const gyre::adamw rule{.lr = 3e-3};
  gyre::trainer trainer(net, rule, gyre::fixed_depth{3});
  gyre::trainer mixed(mixed_net, rule, gyre::fixed_depth{3});
  const random_rows rows(6, 8);
  double first = 0;
  for (int i = 0; i < 60; ++i) {
    const auto a = trainer.step(rows.all()), b = mixed.step(rows.all());
    if (i == 0) {
      first = a.loss;
      CHECK(b.loss == Approx(a.loss).epsilon(0.01));
      CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(0.05));
      CHECK(b.seen.state_norm == Approx(a.seen.state_norm).epsilon(0.01));
    }
    if (i == 59) {
      INFO(first << ", then " << a.loss << " and " << b.loss);
      CHECK(a.loss < 0.7 * first);
      CHECK(b.loss == Approx(a.loss).epsilon(0.1));
    }
  }
}

TEST_CASE("an optimiser's masters are the network's weights from open() on, and refused before", "[trainer][bf16]") {
  network<bf16_mixed> net(gyre::cpu{1}, gyre::seed{1}), other(gyre::cpu{1}, gyre::seed{1});
  using state = gyre::optimizer_state<gyre::adamw, network<bf16_mixed>>;
  state opened(net.device()), at_once(other.device());
  const auto before = gyre_test::bits_of(net);
  CHECK_THROWS_WITH(opened.masters(net), Catch::Contains("open()"));
  CHECK_THROWS_WITH(opened.round(net), Catch::Contains("open()"));
  CHECK(gyre_test::bits_of(net) == before);
  opened.open(net);
  const std::span<float> masters = opened.masters(net);
  REQUIRE(masters.size() == net.values().size());
  for (std::size_t i = 0; i < masters.size(); ++i) REQUIRE(masters[i] == static_cast<float>(net.values()[i]));

  // The first update opens what is not, and nothing that is: masters that were changed before it stay changed.
  masters[0] += 0.25f;
  const float changed = masters[0];
  const std::vector<float> g(static_cast<std::size_t>(Tiny::parameter_count), 0.0f);
  const gyre::adamw rule{.decay = 0};
  opened.apply(rule, net, g.data(), 1, 1);
  at_once.apply(rule, other, g.data(), 1, 1);
  CHECK(opened.masters(net)[0] == changed);
  CHECK(gyre_test::bits_of(net)[0] == gyre::bfloat16(changed).bits);
  CHECK(gyre_test::bits_of(other) == before);
  CHECK(at_once.masters(other)[0] == static_cast<float>(other.values()[0]));

  gyre::network<Tiny, gyre::cpu, fp32> wide(gyre::cpu{1}, gyre::seed{1});  // whose weights are the masters
  gyre::optimizer_state<gyre::adamw, decltype(wide)> of_wide(wide.device());
  CHECK(of_wide.masters(wide).data() == wide.values().data());
}
