// Checkpoints of something else, of other rules, and weights alone.
#include "train/saved.hpp"

namespace fs = std::filesystem;
using gyre_test::adamw_trainer, gyre_test::contains, gyre_test::depth, gyre_test::error_text, gyre_test::network,
    gyre_test::saved;

namespace {

template <class Model, class P, class Rule>
std::string loading_as(const fs::path& path, Rule rule) {
  gyre_test::reference_network<Model, P> net(gyre::reference{}, gyre::seed{2});
  gyre::trainer trainer(net, rule, depth);
  return error_text([&] { gyre::load_checkpoint(trainer, path); });
}

struct Add : gyre::model<gyre_test::small, gyre::prelude<gyre_test::Block>,
                         gyre::recurrent<gyre_test::Block, gyre::inject::add, gyre::initial_state::zero>,
                         gyre::coda<gyre_test::Block>> {};
struct None : gyre::model<gyre_test::small, gyre::prelude<gyre_test::Block>,
                          gyre::recurrent<gyre_test::Block, gyre::inject::none, gyre::initial_state::embedding>,
                          gyre::coda<gyre_test::Block>> {};

}  // namespace

TEST_CASE("a checkpoint of something else says what it is", "[checkpoint]") {
  const saved s;
  const std::string other = loading_as<gyre_test::Untied, gyre::fp32>(s.path, gyre::adamw{});
  CAPTURE(other);
  CHECK(contains(other, "state.json: fingerprint"));
  CHECK(contains(other, "'embedding: scale 2.8284271247461903, tied head' there"));
  // The same tensors, but for the adapter.
  CHECK(contains(loading_as<Add, gyre::fp32>(s.path, gyre::adamw{}), "injection concat, initial state like_init"));
  CHECK(contains(loading_as<Add, gyre::fp32>(s.path, gyre::adamw{}), "injection add, initial state zero"));
  CHECK(contains(loading_as<gyre_test::Tiny, gyre::fp64>(s.path, gyre::adamw{}),
                 "precision: the checkpoint is of F32, this program trains in F64"));
  CHECK(contains(loading_as<gyre_test::Tiny, gyre::fp32>(s.path, gyre::huginn_adam{}),
                 "rules.optimizer.name: the checkpoint is of 'adamw', this training uses 'huginn_adam'"));
}

TEST_CASE("rules alone make a difference, also where every tensor is the same", "[checkpoint]") {
  CHECK(gyre::parameter_table<Add>::names() == gyre::parameter_table<None>::names());
  CHECK(gyre::fingerprint<Add>() != gyre::fingerprint<None>());
  CHECK(gyre::fingerprint<Add>().size() == 16);
}

TEST_CASE("rules that have changed are listed, and the run goes on", "[checkpoint]") {
  const saved s;
  network net(gyre::reference{}, gyre::seed{2});
  gyre::trainer other(net, gyre::adamw{.lr = 0.5}, gyre::uniform_depth{.low = 1, .high = 2},
                      {.seed = gyre::seed{4}, .balance = {.rate = 0.5}});
  const gyre::resumed loaded = gyre::load_checkpoint(other, s.path);
  CHECK(other.steps() == 1);
  std::string all;
  for (const std::string& line : loaded.differences) all += line + "\n";
  CAPTURE(all);
  CHECK(contains(all, "optimizer.lr: 4e-04 in the checkpoint, 0.5 here"));
  CHECK(contains(all, "depth.name: \"fixed_depth\" in the checkpoint, \"uniform_depth\" here"));
  CHECK(contains(all, "depth.steps: 2 in the checkpoint, nothing here"));
  CHECK(contains(all, "depth.high: nothing in the checkpoint, 2 here"));
  CHECK(contains(all, "options.seed: 0 in the checkpoint, 4 here"));
  CHECK(contains(all, "options.balance.rate: 0.01 in the checkpoint, 0.5 here"));
}

TEST_CASE("weights load alone, from a checkpoint or a bare file, and convert", "[checkpoint]") {
  const saved s;
  gyre_test::reference_network<gyre_test::Tiny, gyre::fp64> wide(gyre::reference{}, gyre::seed{2});
  gyre::load_weights(wide, s.path);
  for (std::size_t i = 0; i < wide.values().size(); ++i) CHECK(wide.values()[i] == static_cast<double>(s.net.values()[i]));
  network net(gyre::reference{}, gyre::seed{2});
  gyre::load_weights(net, s.path / "model.safetensors");
  CHECK(gyre_test::copy_of(net) == gyre_test::copy_of(s.net));
  gyre_test::reference_network<None, gyre::fp32> other(gyre::reference{}, gyre::seed{2});
  CHECK(contains(error_text([&] { gyre::load_weights(other, s.path); }), "state.json: fingerprint"));
  CHECK(contains(error_text([&] { gyre::load_weights(other, s.path / "model.safetensors"); }), "gyre.fingerprint"));
  s.rewrite("model.safetensors", [](auto& tensors) { tensors[1].shape = {4, 2}; });
  CHECK(contains(error_text([&] { gyre::load_weights(net, s.path); }), "expected F32 [8], found F32 [4, 2]"));
}
