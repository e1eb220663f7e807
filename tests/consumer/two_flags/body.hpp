// The body of both parts: the same source, compiled with different flags.
#pragma once

#include <algorithm>
#include <gyre/gyre.hpp>
#include <utility>
#include <vector>

#include "parts.hpp"

#define TWO_FLAGS_TEXT_(x) #x
#define TWO_FLAGS_TEXT(x) TWO_FLAGS_TEXT_(x)

namespace {

inline constexpr gyre::dims tiny{.vocab = 97, .width = 32, .heads = 2, .mlp = 88, .context = 40};
struct Block : gyre::sandwich_block<gyre::sequence_attention<tiny>, gyre::gated_mlp<tiny>> {};
struct Tiny : gyre::model<tiny, gyre::prelude<Block>, gyre::recurrent<Block>, gyre::coda<Block>> {};

inline part_result run_body(std::vector<float> from) {
  const gyre::cpu device(2);
  gyre::network<Tiny, gyre::cpu, gyre::fp32> net(device, gyre::seed{5});
  if (!from.empty()) {
    std::copy(from.begin(), from.end(), net.values().begin());
    net.refresh();
  }
  part_result result;
  result.instruction_set = TWO_FLAGS_TEXT(GYRE_ABI);
  result.parameters = std::move(from);
  result.parameters.assign(net.values().begin(), net.values().end());
  result.gradient.resize(net.values().size());

  std::vector<gyre::token> ids, targets;
  for (gyre::token i = 0; i < 80; ++i) ids.push_back(i * i % tiny.vocab), targets.push_back((i + 1) * (i + 1) % tiny.vocab);
  gyre::pass_memory<gyre::cpu> memory(device);
  const gyre::batch_layout layout = gyre::batch_layout::uniform(2, 40);
  result.loss = gyre::run_pass(net, memory, layout, ids, targets, {}, {1, 3}, 1, result.gradient.data()).loss_sum;
  return result;
}

}  // namespace
