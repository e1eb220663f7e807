// A mixture trained in bf16_mixed goes from the cpu to the kernels of cuda and back, through checkpoints. What they hold is restored
// bit for bit on either side, and the training goes on as one that stays on the cpu does.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/cuda.hpp>
#include <gyre/train/checkpoint.hpp>

#include "io/support.hpp"
#include "models.hpp"
#include "train/support.hpp"

namespace gyre_test {

namespace {

template <class B>
using network_on = gyre::network<dreamer_like, B, gyre::bf16_mixed>;

template <class B>
auto trainer_of(network_on<B>& net) {
  return gyre::trainer(net, gyre::huginn_adam{.lr = 1e-2, .running_start = true}, gyre::fixed_depth{2},
                       gyre::trainer_options{.balance = {.rate = 1e-3}});
}

/// What a checkpoint promises to restore.
struct restored {
  std::vector<std::uint32_t> masters, moments;  // their bits
  std::uint64_t steps = 0, rows = 0, tokens = 0;
  bool operator==(const restored&) const = default;
};
template <class Trainer>
restored restored_of(const Trainer& trainer) {
  const auto bits = [](const std::vector<float>& from) {
    std::vector<std::uint32_t> to;
    for (const float x : from) to.push_back(std::bit_cast<std::uint32_t>(x));
    return to;
  };
  return {bits(masters_of(trainer)), bits(moments_of(trainer)), trainer.steps(), trainer.rows_seen(), trainer.tokens_seen()};
}

/// Whether the network has the masters, rounded.
template <class Trainer>
bool rounded_into_network(const Trainer& trainer) {
  std::vector<std::uint16_t> wanted;
  for (const float x : masters_of(trainer)) wanted.push_back(gyre::bfloat16(x).bits);
  return bits_of(trainer.net()) == wanted;
}

/// Masters of biases by which rows choose experts: how many have moved, and how many of them bf16 could not hold.
template <class Trainer>
std::pair<int, int> moved_biases(const Trainer& trainer) {
  const std::vector<float> masters = masters_of(trainer);
  std::pair<int, int> count{0, 0};
  for (const gyre::tensor_entry& e : gyre::parameter_table<dreamer_like>::entries)
    for (gyre::index i = 0; e.kind == gyre::role::selection_bias && i < e.shape.size(); ++i) {
      const float x = masters[static_cast<std::size_t>(e.offset + i)];
      count.first += x != 0, count.second += static_cast<float>(gyre::bfloat16(x)) != x;
    }
  return count;
}

}  // namespace

TEST_CASE("a mixture in bf16_mixed changes from the cpu to the kernels of cuda and back", "[cuda_kernels][bf16][early]") {
  const scratch_folder folder;
  const random_rows rows(2, 24, 1, dreamer_like::shape.vocab);
  std::vector<double> stays, changes;  // losses
  const auto train = [&](auto& trainer, int steps, std::vector<double>& losses) {
    for (int n = 0; n < steps; ++n) losses.push_back(trainer.step(rows.all()).loss);
  };

  network_on<gyre::cpu> net(gyre::cpu(1), gyre::seed{1});
  auto on_cpu = trainer_of(net);
  train(on_cpu, 3, stays);
  changes = stays;
  const auto first = gyre::save_checkpoint(on_cpu, folder / "first");
  const restored saved = restored_of(on_cpu);
  const auto [moved, finer] = moved_biases(on_cpu);
  CHECK(moved > 0);
  CHECK(finer > 0);
  train(on_cpu, 3, stays);

  network_on<gyre::simulated_cuda> other(gyre::simulated_cuda(), gyre::seed{2});
  auto on_cuda = trainer_of(other);
  CHECK(gyre::load_checkpoint(on_cuda, first).differences.empty());
  CHECK((restored_of(on_cuda) == saved));
  CHECK(rounded_into_network(on_cuda));
  train(on_cuda, 2, changes);
  CHECK(rounded_into_network(on_cuda));
  const auto second = gyre::save_checkpoint(on_cuda, folder / "second");
  const restored saved_again = restored_of(on_cuda);
  CHECK(saved_again.steps == 5);
  CHECK((saved_again.masters != saved.masters));

  network_on<gyre::cpu> back(gyre::cpu(1), gyre::seed{3});
  auto again = trainer_of(back);
  CHECK(gyre::load_checkpoint(again, second).differences.empty());
  CHECK((restored_of(again) == saved_again));
  CHECK(rounded_into_network(again));
  train(again, 1, changes);
  CHECK(again.steps() == 6);

  // Backends differ by rounding, in bf16 by up to 2^-8 of what they store.
  REQUIRE(changes.size() == stays.size());
  for (std::size_t n = 0; n < stays.size(); ++n) {
    CAPTURE(n, stays[n], changes[n]);
    CHECK(std::fabs(changes[n] - stays[n]) <= std::ldexp(stays[n], -8));
  }
  CHECK(changes.back() < 0.9 * changes.front());
}

}  // namespace gyre_test
