// Whole forward passes against golden files of an independent reference (tests/golden/make_golden.py).
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/network.hpp>

namespace gyre_test {

template <gyre::dims D, class Placement, gyre::gain Gain, gyre::pairing Pairs, bool Bias>
struct golden_block
    : gyre::block<Placement, gyre::sequence_attention<D, gyre::attention_options{.pairs = Pairs, .query_key_bias = Bias}>,
                  gyre::gated_mlp<D>, Gain> {};

/// The golden file's values of one tensor, in T.
template <class T>
std::vector<T> golden_values(const gyre::safetensors_reader& file, const std::string& name) {
  const gyre::stored_tensor& tensor = file.at(name);
  std::vector<double> values((tensor.end - tensor.begin) / sizeof(double));
  file.read<double>(name, tensor.shape, std::span<double>(values));
  return {values.begin(), values.end()};
}

/// Logits after r steps from the file's weights, tokens and state, against the file's logits.
template <class Model, class Backend, class P>
void check_golden(const std::string& name, double tolerance) {
  using T = gyre::activation_t<P>;
  constexpr int h = Model::width;
  const gyre::safetensors_reader file(std::filesystem::path("tests/golden/model") / (name + ".safetensors"));
  gyre::network<Model, Backend, P> net(Backend{}, gyre::seed{1});
  const auto names = gyre::parameter_table<Model>::names();
  std::size_t known = 0;
  for (const auto& t : file.tensors()) known += t.name.starts_with("transformer.") || t.name.starts_with("lm_head.");
  REQUIRE(known == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& entry = gyre::parameter_table<Model>::entries[i];
    const auto values = golden_values<T>(file, names[i]);
    REQUIRE(static_cast<gyre::index>(values.size()) == entry.shape.size());
    std::copy(values.begin(), values.end(), net.values().begin() + entry.offset);
  }
  net.refresh();

  std::vector<gyre::token> ids(static_cast<std::size_t>(file.at("tokens").shape.at(0)));
  file.read<gyre::token>("tokens", file.at("tokens").shape, std::span<gyre::token>(ids));
  const auto tokens = static_cast<gyre::index>(ids.size());
  const auto s0 = golden_values<T>(file, "s_0");
  const auto layout = gyre::batch_layout::uniform(1, tokens);
  for (int r : {1, 4, 8}) {
    std::vector<std::byte> memory(1 << 22);
    gyre::arena tape(memory.data(), memory.size() / 2), scratch(memory.data() + memory.size() / 2, memory.size() / 2);
    gyre::record_stack records;
    Backend device = net.device();
    gyre::context<Backend, P> c{device, tape, scratch, records, layout, net.tables()};
    c.keep = false;
    typename Model::template tape<P> t{};
    const auto e = Model::embed(c, net.parameters(), std::span<const gyre::token>(ids), t);
    if constexpr (Model::loop::state_policy::is_embedding)
      for (gyre::index i = 0; i < e.size(); ++i) {
        INFO("s_0 must be the embedded input, element " << i);
        CHECK(std::abs(static_cast<double>(e.data[i] - s0[static_cast<std::size_t>(i)])) <= 10 * tolerance);
      }
    const auto s = Model::loop::forward(c, net.parameters() + Model::loop_at, e, gyre::rows<const T, h>{s0.data(), tokens},
                                        {r, 0}, t.steps);
    std::vector<T> logits(ids.size() * Model::shape.vocab);
    Model::logits(c, net.parameters(), Model::finish(c, net.parameters(), s, t),
                  gyre::matrix_view<T>(logits.data(), tokens, Model::shape.vocab));
    const auto expected = golden_values<double>(file, "logits.r" + std::to_string(r));
    REQUIRE(logits.size() == expected.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - expected[i]));
      largest = std::max(largest, std::abs(expected[i]));
    }
    INFO(name << ", r = " << r << ": worst difference " << worst << ", largest logit " << largest);
    CHECK(largest > 0);
    CHECK(worst <= tolerance * largest);
  }
}

template <class Model>
void check_golden_everywhere(const std::string& name) {
  check_golden<Model, gyre::reference, gyre::fp64>(name, 1e-12);
  check_golden<Model, gyre::cpu, gyre::fp64>(name, 1e-12);
  check_golden<Model, gyre::cpu, gyre::fp32>(name, 1e-5);
}

}  // namespace gyre_test
