// Checkpoints: what they hold, and what broken ones do.
#include <sys/stat.h>

#include <limits>

#include "train/saved.hpp"

namespace fs = std::filesystem;
using gyre_test::adamw_trainer, gyre_test::contains, gyre_test::depth, gyre_test::error_text, gyre_test::network,
    gyre_test::saved;

TEST_CASE("a checkpoint holds weights, moments and state under readable names", "[checkpoint]") {
  const saved s;
  CHECK(s.path == s.folder / "run" / "step-00000001");
  const gyre::safetensors_reader weights(s.path / "model.safetensors"), moments(s.path / "optimizer.safetensors");
  CHECK(weights.find("transformer.core_block.0.attn.Wqkv.weight") != nullptr);
  CHECK(weights.tensors().size() == static_cast<std::size_t>(network::table::count));
  CHECK(moments.find("transformer.wte.weight.moment_2") != nullptr);
  CHECK(moments.tensors().size() == 2 * weights.tensors().size());
  const gyre::json state = gyre::parse_json(gyre::read_file(s.path / "state.json"), "state.json");
  const gyre::json_field field(state, "state.json");
  CHECK(field["step"].uint64() == 1);
  CHECK(field["rows"].uint64() == 2);
  CHECK(field["data"].string() == "anything");
  CHECK(field["rules"]["optimizer"]["name"].string() == "adamw");
  CHECK(field["rules"]["depth"]["steps"].int64() == 2);
  CHECK(field["architecture"][1].string() == "width: 8");
  CHECK(field["precision"].string() == "F32");
}

TEST_CASE("a checkpoint tells how its model wants to be run", "[checkpoint]") {
  const saved s;
  const gyre::evaluation_settings told = gyre::evaluation_of(s.path);
  CHECK(told.steps == 2);
  CHECK(told.state_scale == 1);
  const std::string good = gyre::read_file(s.path / "state.json");
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& sentence) {
    std::string bad = good;
    const auto at = bad.find(from, bad.find("\"evaluation\""));
    REQUIRE(at != std::string::npos);
    gyre::write_file(s.path / "state.json", bad.replace(at, from.size(), to));
    CHECK_THAT(error_text([&] { gyre::evaluation_of(s.path); }), Catch::Contains(sentence));
  };
  refused("\"mean_depth\": 2.0", "\"mean_depth\": -2", "state.json: evaluation.mean_depth: -2 is no number of steps");
  refused("\"mean_depth\": 2.0", "\"mean_depth\": 1e300", "evaluation.mean_depth: 1e+300 is no number of steps");
  refused("\"mean_depth\": 2.0", "\"mean_depth\": \"2\"", "evaluation.mean_depth: expected a number");
  refused("\"state_scale\": 1.0", "\"state_scale\": -1", "evaluation.state_scale: -1 is no scale");
  refused("\"evaluation\"", "\"elsewhere\"", "the member 'evaluation' is missing");
}

TEST_CASE("the last two checkpoints are kept; the same step is saved once", "[checkpoint]") {
  saved s;
  CHECK(gyre::save_checkpoint(s.train, s.folder / "run", gyre::json("anything"), gyre_test::unsynced_files()) == s.path);
  // The same step with another state would be another run.
  CHECK(contains(error_text([&] { gyre::save_checkpoint(s.train, s.folder / "run"); }), "exists already"));
  for (int i = 0; i < 3; ++i) {
    s.train.step(gyre_test::random_rows(2, 4).all());
    gyre::save_checkpoint(s.train, s.folder / "run", {}, gyre_test::unsynced_files());
  }
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(s.folder / "run")) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"step-00000003", "step-00000004"});
}

TEST_CASE("broken checkpoints give one clear error and change nothing", "[checkpoint]") {
  const saved s;
  const auto refused = [&](const std::string& part) {
    const std::string text = s.loading_into_another();
    CAPTURE(text, part);
    CHECK(contains(text, part));
  };
  const std::string wte = "transformer.wte.weight";
  SECTION("format") {
    s.replace_in_state("\"format\": 1", "\"format\": 2");
    refused("state.json: format: 2 is unknown; this program reads format 1");
  }
  SECTION("a member is missing") {
    s.replace_in_state("\"step\"", "\"stop\"");
    refused("state.json: the member 'step' is missing");
  }
  SECTION("a member is something else") {
    s.replace_in_state("\"rows\": 2", "\"rows\": \"2\"");
    refused("state.json: rows: expected a number");
  }
  SECTION("not JSON") {
    gyre::write_file(s.path / "state.json", "{");
    refused("state.json");
  }
  SECTION("a file is missing") {
    fs::remove(s.path / "optimizer.safetensors");
    refused("cannot open " + (s.path / "optimizer.safetensors").string());
  }
  SECTION("a file is cut") {
    fs::resize_file(s.path / "model.safetensors", fs::file_size(s.path / "model.safetensors") - 1);
    refused("truncated");
  }
  SECTION("wrong type") {
    const std::vector<double> wide(static_cast<std::size_t>(network::parameter_count));
    s.rewrite("model.safetensors", [&](auto& tensors) { tensors[0] = {tensors[0].name, tensors[0].shape, wide.data()}; });
    refused("model.safetensors: tensor '" + wte + "': expected F32 [11, 8], found F64 [11, 8]");
  }
  SECTION("wrong shape") {
    s.rewrite("optimizer.safetensors", [&](auto& tensors) { tensors[0].shape = {8, 11}; });
    refused("optimizer.safetensors: tensor '" + wte + ".moment_1': expected F32 [11, 8], found F32 [8, 11]");
  }
  SECTION("a tensor is missing") {
    s.rewrite("model.safetensors", [](auto& tensors) { tensors.pop_back(); });
    refused("there is no tensor 'transformer.ln_f.weight'");
  }
  SECTION("a tensor too many") {
    s.rewrite("model.safetensors", [](auto& tensors) { tensors.push_back(tensors[0]), tensors.back().name = "extra"; });
    refused("tensor 'extra' F32 [11, 8] belongs to no part of this architecture");
  }
}

TEST_CASE("a folder of another training is not saved into", "[checkpoint]") {
  const saved s;
  network net(gyre::reference{}, gyre::seed{1});
  adamw_trainer other(net, gyre::adamw{}, depth);
  const auto saving = [&] {
    return error_text(
        [&] { gyre::save_checkpoint(other, s.folder / "run", gyre::json("anything"), gyre_test::unsynced_files()); });
  };
  const std::string before = gyre::read_file(s.path / "model.safetensors");
  CHECK(contains(saving(), "holds step-00000001, later than this training's step 0"));
  other.step(gyre_test::random_rows(2, 4, 9).all());  // as many steps, rows and tokens, but of other text
  CHECK(contains(saving(), "exists already"));
  CHECK(gyre::read_file(s.path / "model.safetensors") == before);
}

TEST_CASE("numbers that are not finite are neither saved nor loaded", "[checkpoint]") {
  saved s;
  s.train.step(gyre_test::random_rows(2, 4).all());
  s.net.values()[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(error_text([&] { gyre::save_checkpoint(s.train, s.folder / "run"); }),
             Catch::Contains("save_checkpoint: not saved: tensor 'transformer.wte.weight' holds nan at 3"));
  CHECK(*gyre::latest_checkpoint(s.folder / "run") == s.path);
  s.rewrite("model.safetensors", [](auto&) {});
  network other(gyre::reference{}, gyre::seed{2});
  const auto before = gyre_test::copy_of(other);
  CHECK_THAT(error_text([&] { gyre::load_weights(other, s.path); }),
             Catch::Contains("model.safetensors: tensor 'transformer.wte.weight' holds nan at 3"));
  CHECK((gyre_test::copy_of(other) == before));
  CHECK_THAT(s.loading_into_another(), Catch::Contains("model.safetensors: tensor 'transformer.wte.weight' holds nan at 3"));
}

TEST_CASE("parts of different checkpoints do not go together", "[checkpoint]") {
  saved s;
  s.train.step(gyre_test::random_rows(2, 4).all());
  const fs::path second = gyre::save_checkpoint(s.train, s.folder / "run", gyre::json("anything"), gyre_test::unsynced_files());
  for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string own = gyre::read_file(s.path / name);
    fs::copy_file(second / name, s.path / name, fs::copy_options::overwrite_existing);
    CHECK_THAT(s.loading_into_another(), Catch::Contains(std::string(name) + ": __metadata__.gyre.step: '2', not '1'"));
    gyre::write_file(s.path / name, own);
  }
  CHECK(s.loading_into_another() == "no error");
}

TEST_CASE("a pipe in a checkpoint is refused at once", "[checkpoint]") {
  const saved s;
  for (const char* name : {"state.json", "model.safetensors", "optimizer.safetensors"}) {
    fs::rename(s.path / name, s.folder / "aside");
    REQUIRE(::mkfifo((s.path / name).c_str(), 0600) == 0);
    CHECK_THAT(s.loading_into_another(),
               Catch::Contains(name) && (Catch::Contains("is no file") || Catch::Contains("not a regular file")));
    fs::remove(s.path / name);
    fs::rename(s.folder / "aside", s.path / name);
  }
}

TEST_CASE("a full disk loses nothing", "[checkpoint]") {
  saved s;
  s.train.step(gyre_test::random_rows(2, 4).all());
  for (const long room : {0L, 100L, 5000L, 20000L}) {
    gyre_test::faulty_files full((s.folder / "run").string());
    full.room = room;
    const std::string text = error_text([&] { gyre::save_checkpoint(s.train, s.folder / "run", {}, full); });
    CAPTURE(room, text);
    CHECK(contains(text, "No space left on device"));
    CHECK(gyre::latest_checkpoint(s.folder / "run") == s.path);
    CHECK(s.loading_into_another() == "no error");
    CHECK(std::distance(fs::directory_iterator(s.folder / "run"), {}) == 1);
  }
}
