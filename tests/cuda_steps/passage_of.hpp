#pragma once

#include <bit>

#include <gyre/compose/mixture.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/mixture_model.hpp>
#include <gyre/train/checkpoint.hpp>
#include <gyre/train/huginn_adam.hpp>

#include "passage.hpp"
#include "train/support.hpp"

namespace gyre_test {

inline constexpr gyre::dims odd_sizes{
    .vocab = 257, .width = 40, .heads = 5, .kv_heads = 1, .mlp = 56, .context = 24, .mean_steps = 2};
/// Sequence attention, and eight experts of which two are active, with biases by which rows choose them.
struct mixture_of_experts
    : gyre::mixture_model<
          odd_sizes,
          gyre::mixture<gyre::sequential, gyre::sequence_attention<odd_sizes>,
                        gyre::expert_attention<odd_sizes, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

template <class B>
using network_on = gyre::network<mixture_of_experts, B, gyre::bf16_mixed>;

template <class B>
auto trainer_of(network_on<B>& net) {
  return gyre::trainer(net, gyre::huginn_adam{.lr = 1e-2, .running_start = true}, gyre::fixed_depth{2},
                       gyre::trainer_options{.balance = {.rate = 1e-3}});
}

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
  for (const gyre::tensor_entry& e : gyre::parameter_table<mixture_of_experts>::entries)
    for (gyre::index i = 0; e.kind == gyre::role::selection_bias && i < e.shape.size(); ++i) {
      const float x = masters[static_cast<std::size_t>(e.offset + i)];
      count.first += x != 0, count.second += static_cast<float>(gyre::bfloat16(x)) != x;
    }
  return count;
}

template <class B>
passage pass_on(B device, const std::filesystem::path& from, int steps, const std::filesystem::path& to, int beyond) {
  const random_rows rows(2, 24, 1, mixture_of_experts::shape.vocab);
  network_on<B> net(device, gyre::seed{from.empty() ? 1u : 2u});
  auto trainer = trainer_of(net);
  passage p;
  if (!from.empty()) p.same_settings = gyre::load_checkpoint(trainer, from).differences.empty();
  p.loaded = restored_of(trainer);
  p.rounded = rounded_into_network(trainer);
  for (int n = 0; n < steps; ++n) p.losses.push_back(trainer.step(rows.all()).loss);
  p.rounded = p.rounded && rounded_into_network(trainer);
  p.checkpoint = gyre::save_checkpoint(trainer, to);
  p.saved = restored_of(trainer);
  p.moved_biases = moved_biases(trainer);
  for (int n = 0; n < beyond; ++n) p.beyond.push_back(trainer.step(rows.all()).loss);
  return p;
}

}  // namespace gyre_test
