// Whole models on a GPU: training steps and generation, as a user's program has them; and that nvcc compiles all of it.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/gyre.hpp>

#include "nvcc/on_gpu.hpp"

namespace gyre_test {

/// Two heads of 64, for which attention in bf16 has its own kernels.
inline constexpr gyre::dims even{.vocab = 257, .width = 128, .heads = 2, .mlp = 176, .context = 96, .mean_steps = 3};
struct block : gyre::sandwich_block<gyre::sequence_attention<even>, gyre::gated_mlp<even>> {};
struct huginn_like
    : gyre::model<even, gyre::prelude<block>, gyre::recurrent<gyre::stack<1, block>, gyre::inject::concat>, gyre::coda<block>> {
};

/// Depth attention, sequence attention with tied mixed projections, and eight experts of which two are active.
inline constexpr gyre::dims odd{
    .vocab = 257, .width = 40, .heads = 5, .kv_heads = 1, .mlp = 56, .context = 96, .mean_steps = 3};
struct dreamer_like
    : gyre::mixture_model<
          odd, gyre::mixture<gyre::sequential, gyre::depth_attention<odd, gyre::depth_attention_options{}>,
                             gyre::sequence_attention<
                                 odd, gyre::attention_options{.projections = {.count = 3, .active = 2, .router_width = 8}}>,
                             gyre::expert_attention<odd, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

struct trained {
  std::vector<double> losses;
  std::vector<gyre::token> said;
  bool operator==(const trained&) const = default;
};
template <class Model, class P>
trained train_and_generate(const gyre::cuda& device) {
  constexpr gyre::index rows = 3, length = 40;
  gyre::network<Model, gyre::cuda, P> net(device, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{.lr = 1e-3}, gyre::uniform_depth{.low = 2, .high = 3, .backprop = 2});
  std::vector<gyre::token> ids(rows * length), targets(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<gyre::token>(i * 7 % 61), targets[i] = static_cast<gyre::token>((i + 1) * 7 % 61);
  const gyre::batch all{ids, targets, rows, length};
  trained result;
  for (int n = 0; n < 20; ++n) result.losses.push_back(trainer.step(all).loss);
  for (auto [id, steps] : gyre::generate(net, std::span<const gyre::token>(ids).first(7), gyre::exits::fixed{3})) {
    result.said.push_back(id);
    if (result.said.size() == 5) break;
  }
  return result;
}

template <class Model, class P>
void check_model() {
  const std::optional<gyre::cuda> device = on_gpu<gyre::cuda>();
  if (!device) return;
  const trained first = train_and_generate<Model, P>(*device);
  CHECK(first.losses[0] == Approx(std::log(257.0)).epsilon(0.2));  // knows nothing yet
  CHECK(first.losses.back() < 0.9 * first.losses[0]);
  CHECK(first.said.size() == 5);
  CHECK(train_and_generate<Model, P>(*device) == first);  // the same bits
}

}  // namespace gyre_test
