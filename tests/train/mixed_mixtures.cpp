// Training a mixture in bf16_mixed: masters keep what bf16 cannot, and nothing depends on threads. [threads]
// [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/trainer.hpp>

#include "train/support.hpp"

namespace {

using gyre::bf16_mixed, gyre_test::random_rows, gyre_test::bits_of, gyre_test::masters_of;

constexpr gyre::dims sizes{.vocab = 11, .width = 8, .heads = 2, .mlp = 6, .context = 8};
struct Layer
    : gyre::mixture<
          gyre::sequential, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes>,
          gyre::expert_attention<
              sizes, gyre::experts{.count = 6, .active = 2, .router_width = 4, .balance_weight = 0.01, .z_weight = 0.001}>> {};
struct Dreamer : gyre::model<sizes, gyre::recurrent<Layer, gyre::inject::concat, gyre::initial_state::like_init>> {};
using backend = gyre::cpu;
template <class P>
using network = gyre::network<Dreamer, backend, P>;

template <class P>
auto trainer_of(network<P>& net) {
  return gyre::trainer(net, gyre::adamw{.lr = 3e-3}, gyre::fixed_depth{3});
}

}  // namespace

TEST_CASE("masters keep what bf16 parameters cannot, and parameters are masters rounded", "[trainer][bf16]") {
  network<bf16_mixed> net(backend{1}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{.lr = 1e-6, .decay = 0}, gyre::fixed_depth{3},
                        gyre::trainer_options{.balance = {.rate = 1e-6}});
  const auto start = masters_of(trainer);
  const auto start_bits = bits_of(net);
  for (std::size_t i = 0; i < start.size(); ++i) REQUIRE(start[i] == static_cast<float>(net.values()[i]));
  const random_rows rows(4, 8);
  for (int i = 0; i < 3; ++i) trainer.step(rows.all());
  const auto now = masters_of(trainer);
  const auto bits = bits_of(net);
  std::size_t moved = 0, rounded_away = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    REQUIRE(bits[i] == gyre::bfloat16(now[i]).bits);
    moved += now[i] != start[i], rounded_away += now[i] != start[i] && bits[i] == start_bits[i];
  }
  CHECK(moved > now.size() / 2);
  CHECK(rounded_away > moved / 2);
  for (const gyre::tensor_entry& e : gyre::parameter_table<Dreamer>::entries)
    if (e.kind == gyre::role::selection_bias)
      for (gyre::index i = 0; i < e.shape.size(); ++i) {
        const auto at = static_cast<std::size_t>(e.offset + i);
        CHECK(bits[at] == gyre::bfloat16(now[at]).bits);
        CHECK(std::fabs(now[at]) <= 3.1e-6f);
      }
}

TEST_CASE("training in bf16_mixed has the same bits for any number of threads", "[trainer][bf16][threads]") {
  const auto weights_after = [](int threads) {
    network<bf16_mixed> net(backend{threads}, gyre::seed{1});
    auto trainer = trainer_of(net);
    const random_rows rows(5, 8);
    for (int i = 0; i < 3; ++i) trainer.step(rows.all());
    return masters_of(trainer);
  };
  const auto one = weights_after(1);
  CHECK(weights_after(2) == one);
  CHECK(weights_after(3) == one);
}
