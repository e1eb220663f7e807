// What the tests of training share: a tiny model, batches, and ways to look at a trainer.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/network.hpp>
#include <gyre/train/trainer.hpp>

namespace gyre_test {

inline constexpr gyre::dims small{.vocab = 11, .width = 8, .heads = 2, .mlp = 6, .context = 8, .mean_steps = 4};
struct Block : gyre::sandwich_block<gyre::sequence_attention<small>, gyre::gated_mlp<small>> {};
struct Tiny : gyre::model<small, gyre::prelude<Block>, gyre::recurrent<Block>, gyre::coda<Block>> {};
struct Untied : gyre::model<small, gyre::recurrent<Block>, gyre::options<gyre::model_options{.tied_head = false}>> {};

template <class Model = Tiny, class P = gyre::fp64>
using reference_network = gyre::network<Model, gyre::reference, P>;

/// Rows of random tokens that own their memory. A sixth of the targets does not count.
struct random_rows {
  std::vector<gyre::token> inputs, targets;
  gyre::index rows, length;

  random_rows(gyre::index rows_, gyre::index length_, unsigned number = 1, int vocab = small.vocab)
      : rows(rows_), length(length_) {
    std::mt19937 random(number);
    for (gyre::index i = 0; i < rows * length; ++i) {
      inputs.push_back(static_cast<gyre::token>(random() % static_cast<unsigned>(vocab)));
      targets.push_back(random() % 6 == 0 ? -1 : static_cast<gyre::token>(random() % static_cast<unsigned>(vocab)));
    }
  }
  gyre::batch all() const { return slice(0, rows); }
  gyre::batch slice(gyre::index first, gyre::index count) const {
    const auto at = static_cast<std::size_t>(first * length), size = static_cast<std::size_t>(count * length);
    return {std::span(inputs).subspan(at, size), std::span(targets).subspan(at, size), count, length};
  }
};

template <class Network>
auto copy_of(const Network& net) {
  const auto values = net.values();
  return std::vector<typename Network::scalar>(values.begin(), values.end());
}
/// Of a trainer in bf16_mixed.
template <class Trainer>
auto masters_of(const Trainer& trainer) {
  const auto values = trainer.masters();
  return std::vector<float>(values.begin(), values.end());
}
template <class Network>
std::vector<std::uint16_t> bits_of(const Network& net) {
  std::vector<std::uint16_t> bits;
  for (const gyre::bfloat16 x : net.values()) bits.push_back(x.bits);
  return bits;
}
/// All moments, tensor after tensor.
template <class Trainer>
auto moments_of(const Trainer& trainer) {
  using table = typename Trainer::network_type::table;
  std::vector<typename Trainer::state_type::scalar> all;
  for (int n = 0; n < table::count; ++n)
    for (int which = 0; which < Trainer::rule_type::moments(table::entries[static_cast<std::size_t>(n)].kind); ++which)
      for (const auto x : trainer.state().moment(n, which)) all.push_back(x);
  return all;
}

/// Makes gains and biases, which start as ones and zeros, differ from each other.
template <class Network>
void scatter(Network& net, unsigned number = 7) {
  std::mt19937 random(number);
  std::uniform_real_distribution<double> uniform(-0.2, 0.2);
  for (auto& w : net.values()) w += static_cast<typename Network::scalar>(uniform(random));
  net.refresh();
}

}  // namespace gyre_test
