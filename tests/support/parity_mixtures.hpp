// Whole passes of depth-recurrent attention mixtures against golden files of an independent reference
// (tests/golden/make_mixtures.py): logits, what every router chose, and the losses of routers.
#pragma once

#include <gyre/compose/mixture.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>

#include "support/parity.hpp"

namespace gyre_test {

/// Sizes of the golden mixtures with this many heads; 0 key/value heads: as many.
constexpr gyre::dims golden_dims(int heads, int kv_heads, int head_width) {
  return {.vocab = 11,
          .width = 12,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_width = head_width,
          .mlp = 5,
          .context = 8,
          .rope_base = 10000};
}
inline constexpr gyre::dims golden_sizes = golden_dims(4, 2, 8);

/// What is asked of sequence attention there, with these projections.
constexpr gyre::attention_options golden_attention(gyre::routing maps = {}) {
  return {.projections = maps, .query_key_bias = false, .query_key_norm = true};
}

/// The layer of most golden mixtures: experts take 12 x 5, the shared one 12 x 3.
template <class Form, gyre::depth_attention_options Depth, gyre::experts Experts, gyre::dims Heads = golden_sizes,
          gyre::dims DepthHeads = Heads, gyre::routing Maps = gyre::routing{}>
struct golden_mixture
    : gyre::mixture<Form, gyre::depth_attention<DepthHeads, Depth>, gyre::sequence_attention<Heads, golden_attention(Maps)>,
                    gyre::expert_attention<Heads, Experts>> {};

/// A Dreamer: the layers are the whole model, and one norm stands before the head.
template <class Layers>
struct golden_dreamer
    : gyre::model<golden_sizes,
                  gyre::recurrent<Layers, gyre::inject::none, gyre::initial_state::embedding, gyre::loop_norm::none>,
                  gyre::options<gyre::model_options{.embedding_scale = 1}>> {};

/// A file's numbers, whatever type they are stored as, in T.
template <class T>
std::vector<T> stored_numbers(const gyre::safetensors_reader& file, const std::string& name) {
  const gyre::stored_tensor& tensor = file.at(name);
  gyre::index size = 1;
  for (const gyre::index extent : tensor.shape) size *= extent;
  std::vector<double> values(static_cast<std::size_t>(size));
  file.read_converted<double>(name, tensor.shape, std::span<double>(values));
  return {values.begin(), values.end()};
}

/// What one pass gives, in double.
struct mixture_results {
  std::vector<double> embedded, logits;
  std::vector<std::int32_t> chosen;  // of all routers, in the order in which they ran
  double auxiliary_loss = 0;         // summed over tokens
};

/// A golden file, read once for all scalars and backends.
struct mixture_file {
  gyre::safetensors_reader file;
  std::vector<gyre::token> ids;
  gyre::batch_layout layout;
  std::vector<int> steps;
  std::size_t parameters = 0;

  explicit mixture_file(const std::string& name)
      : file(std::filesystem::path("tests/golden/mixtures") / (name + ".safetensors")) {
    const auto integers = [&](const std::string& tensor) {
      std::vector<std::int32_t> values(static_cast<std::size_t>(file.at(tensor).shape.at(0)));
      file.read<std::int32_t>(tensor, file.at(tensor).shape, std::span<std::int32_t>(values));
      return values;
    };
    for (const std::int32_t id : integers("tokens")) ids.push_back(id);
    std::uint64_t key = 0;
    for (const std::int32_t count : integers("sequences")) layout.add(count, 0, key++);
    for (const std::int32_t r : integers("steps")) {
      steps.push_back(r);
      chosen.push_back(integers("chosen.r" + std::to_string(r)));
    }
    for (const auto& t : file.tensors()) parameters += t.name.starts_with("transformer.");
  }
  /// Compares the results after steps[number] steps.
  void check(const mixture_results& got, std::size_t number, double tolerance) const {
    const std::string r = ".r" + std::to_string(steps[number]);
    INFO("after " << steps[number] << " steps");
    CHECK(got.chosen == chosen[number]);
    near(got.logits, "logits" + r, tolerance);
    near({got.auxiliary_loss / static_cast<double>(ids.size())}, "auxiliary" + r, tolerance);
    if (!got.embedded.empty()) near(got.embedded, "s_0", tolerance);
  }

 private:
  std::vector<std::vector<std::int32_t>> chosen;  // for every entry of `steps`

  void near(const std::vector<double>& got, const std::string& name, double tolerance) const {
    const auto want = stored_numbers<double>(file, name);
    REQUIRE(got.size() == want.size());
    double worst = 0, largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max(worst, std::isnan(got[i]) ? INFINITY : std::abs(got[i] - want[i]));
      largest = std::max(largest, std::abs(want[i]));
    }
    INFO(name << ": worst difference " << worst << ", largest value " << largest);
    CHECK(worst <= tolerance * largest);
  }
};

template <gyre::precision P>
struct choice_record final : gyre::pass_observer<P> {
  std::vector<std::int32_t> chosen;
  void routed(const gyre::routing_event<P>& e) override { chosen.insert(chosen.end(), e.chosen.begin(), e.chosen.end()); }
};

/// One pass of the file's model.
template <class Model, class Backend, class P>
class mixture_run {
  using T = gyre::activation_t<P>;

 public:
  explicit mixture_run(const mixture_file& golden) : golden_(golden), net_(Backend{}, gyre::seed{1}, false) {
    const auto names = gyre::parameter_table<Model>::names();
    REQUIRE(golden.parameters == names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& entry = gyre::parameter_table<Model>::entries[i];
      INFO(names[i]);
      const auto values = stored_numbers<T>(golden.file, names[i]);
      REQUIRE(static_cast<gyre::index>(values.size()) == entry.shape.size());
      std::copy(values.begin(), values.end(), net_.values().begin() + entry.offset);
    }
    net_.refresh();
  }
  mixture_results run(int steps) {
    const auto tokens = static_cast<gyre::index>(golden_.ids.size());
    const auto s0 = stored_numbers<T>(golden_.file, "s_0");
    std::vector<std::byte> memory(1 << 22);
    gyre::arena tape(memory.data(), memory.size() / 2), scratch(memory.data() + memory.size() / 2, memory.size() / 2);
    gyre::record_stack records;
    choice_record<P> record;
    Backend device = net_.device();
    gyre::context<Backend, P> c{device, tape, scratch, records, golden_.layout, net_.tables()};
    gyre::statistic_t<P> auxiliary_loss{};
    c.keep = false;
    c.auxiliary_loss = &auxiliary_loss;
    c.observer = &record;
    typename Model::template tape<P> t{};
    mixture_results result;
    const auto e = Model::embed(c, net_.parameters(), std::span<const gyre::token>(golden_.ids), t);
    if (Model::loop::state_policy::is_embedding) result.embedded.assign(e.data, e.data + e.size());
    const auto s = Model::loop::forward(c, net_.parameters() + Model::loop_at, e,
                                        gyre::rows<const T, Model::width>{s0.data(), tokens}, {steps, 0}, t.steps);
    std::vector<T> logits(golden_.ids.size() * Model::shape.vocab);
    Model::logits(c, net_.parameters(), Model::finish(c, net_.parameters(), s, t),
                  gyre::matrix_view<T>(logits.data(), tokens, Model::shape.vocab));
    result.logits.assign(logits.begin(), logits.end());
    result.chosen = record.chosen;
    result.auxiliary_loss = static_cast<double>(auxiliary_loss);
    return result;
  }

 private:
  const mixture_file& golden_;
  gyre::network<Model, Backend, P> net_;
};

template <class Model, class Backend, class P>
void check_mixture(const mixture_file& golden, double tolerance) {
  mixture_run<Model, Backend, P> run(golden);
  for (std::size_t i = 0; i < golden.steps.size(); ++i) golden.check(run.run(golden.steps[i]), i, tolerance);
}

template <class Model>
void check_mixture_everywhere(const std::string& name) {
  const mixture_file golden(name);
  INFO(name);
  SECTION("reference, double") { check_mixture<Model, gyre::reference, gyre::fp64>(golden, 1e-12); }
  SECTION("cpu, double") { check_mixture<Model, gyre::cpu, gyre::fp64>(golden, 1e-12); }
  SECTION("cpu, float") { check_mixture<Model, gyre::cpu, gyre::fp32>(golden, 1e-5); }
}

}  // namespace gyre_test
