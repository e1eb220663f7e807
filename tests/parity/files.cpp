// Trials in files: what is in them, and how results of others are compared.
#include <gyre/parity/catch.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/parity/files.hpp>

#include "support/skip.hpp"

namespace gyre_test {

namespace parity = gyre::parity;
using gyre::index, gyre::operation;

namespace {

/// A file that goes with the test.
struct scratch_file {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("gyre-parity-" + std::to_string(std::random_device()()) + ".safetensors");
  ~scratch_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

template <operation Op>
parity::trial trial_of(index number) {
  return parity::draw_trial(Op, "float", parity::setting<Op>::dimensions, 40, number);
}

/// Writes a trial and gives its left results, as a foreign program's, `changed` of them altered.
template <operation Op>
parity::report round_trip(const parity::trial& t, const std::string& changed = "") {
  gyre::reference left, right;
  const scratch_file written, foreign;
  parity::write_trial<Op, float>(left, right, t, written.path);
  const gyre::safetensors_reader file(written.path);
  CHECK(file.metadata().back() == std::pair<std::string, std::string>{"trial", t.text()});
  std::vector<std::vector<std::byte>> bytes;
  std::vector<gyre::tensor_source> outputs;
  for (const gyre::stored_tensor& x : file.tensors()) {
    if (!x.name.starts_with("left.")) continue;
    bytes.emplace_back(x.end - x.begin);
    file.read_bytes(x, bytes.back());
    const std::string name = "output." + x.name.substr(5);
    if (name == changed) {
      float first;
      std::memcpy(&first, bytes.back().data(), sizeof first);
      first *= 1.001F;
      std::memcpy(bytes.back().data(), &first, sizeof first);
    }
    outputs.emplace_back(name, x.type, x.shape, bytes.back().data());
  }
  gyre::write_file(foreign.path, gyre::safetensors_bytes(outputs));
  return parity::compare_file<Op, float>(t, foreign.path);
}

}  // namespace

TEST_CASE("results in a file are compared with what the trial should give", "[parity]") {
  for (index n = 0; n < 6; ++n) CHECK_THAT(round_trip<operation::rms_norm>(trial_of<operation::rms_norm>(n)), parity::agrees());
  for (index n = 0; n < 6; ++n)
    CHECK_THAT(round_trip<operation::cache_append>(trial_of<operation::cache_append>(n)), parity::agrees());
  for (index n = 0; n < 4; ++n) CHECK_THAT(round_trip<operation::route>(trial_of<operation::route>(n)), parity::agrees());
  parity::trial t = trial_of<operation::rms_norm>(0);
  t.set("rows", 3), t.set("cols", 5);
  const parity::report r = round_trip<operation::rms_norm>(t, "output.rstd");
  CHECK_THAT(r, parity::fails(parity::fault::tolerance));
  CHECK(r.worst.output == "rstd");
  CHECK(r.worst.col == 0);
}

TEST_CASE("a file without a result, or with one of another shape, is refused", "[parity]") {
  const scratch_file file;
  parity::trial t = trial_of<operation::rms_norm>(0);
  t.set("rows", 2), t.set("cols", 3);
  const std::vector<float> y(6);
  gyre::write_file(file.path, gyre::safetensors_bytes(std::vector{gyre::tensor_source("output.y", {3, 2}, y.data())}));
  CHECK_THROWS_WITH((parity::compare_file<operation::rms_norm, float>(t, file.path)),
                    Catch::Contains("output.y should be F32 [2, 3], not F32 [3, 2]"));
  gyre::write_file(file.path, gyre::safetensors_bytes(std::vector{gyre::tensor_source("output.y", {2, 3}, y.data())}));
  CHECK_THROWS_WITH((parity::compare_file<operation::rms_norm, float>(t, file.path)), Catch::Contains("output.rstd"));
}

TEST_CASE("a file says all of a call: operands, what only the host reads, and the other arguments", "[parity]") {
  gyre::reference left, right;
  const scratch_file file;
  parity::trial t = trial_of<operation::cached_attention>(0);
  for (const auto& [name, value] : {std::pair<const char*, index>{"sequences", 2},
                                    {"length", 3},
                                    {"past", 4},
                                    {"kv_heads", 1},
                                    {"sharing", 5},
                                    {"width", 8}})
    t.set(name, value);
  parity::write_trial<operation::cached_attention, float>(left, right, t, file.path);
  const gyre::safetensors_reader read(file.path);
  for (const char* name : {"input.q", "input.cache", "input.cache.1", "left.o", "right.o", "exact.o", "tolerance.o"}) {
    CAPTURE(name);
    CHECK(read.find(name) != nullptr);
  }
  CHECK(read.at("input.q").shape == std::vector<index>{4, 40});
  CHECK(read.at("tolerance.o").type == gyre::dtype::f64);
  std::string all;
  for (const auto& [key, value] : read.metadata()) all += key + ": " + value + "\n";
  CHECK_THAT(all, Catch::Contains("heads 5, kv_heads 1, width 8") && Catch::Contains("3 tokens after 4"));
}

TEST_CASE("a Python program's RMSNorm is compared", "[parity]") {
  const char* const chosen = std::getenv("GYRE_PYTHON");
  const std::string python = chosen != nullptr ? chosen : "python3";
  if (std::system((python + " -c 'import safetensors, numpy' > /dev/null 2>&1").c_str()) != 0)
    return gyre_test::skip("no " + python + " with safetensors and numpy (set GYRE_PYTHON to one)");
  parity::trial t = trial_of<operation::rms_norm>(0);
  t.set("rows", 33), t.set("cols", 129), t.set("gain", 1);
  gyre::reference left, right;
  const scratch_file written, answer;
  parity::write_trial<operation::rms_norm, float>(left, right, t, written.path);
  for (const bool right_formula : {true, false}) {
    const std::string program =
        "import sys, numpy as np\n"
        "from safetensors.numpy import load_file, save_file\n"
        "f = load_file(sys.argv[1])\n"
        "x, gain = f['input.x'], f['input.gain']\n"
        "rstd = (1 / np.sqrt((x * x)" +
        std::string(right_formula ? "" : "[:, :-1]") +
        ".mean(axis=1, dtype=np.float32) + np.float32(1e-6))).astype(np.float32)\n"
        "save_file({'output.y': x * rstd[:, None] * gain, 'output.rstd': rstd[None, :]}, sys.argv[2])\n";
    const std::string command = python + " -c \"" + program + "\" " + written.path.string() + " " + answer.path.string();
    REQUIRE(std::system(command.c_str()) == 0);
    const parity::report r = parity::compare_file<operation::rms_norm, float>(t, answer.path);
    if (right_formula)
      CHECK_THAT(r, parity::agrees());
    else
      CHECK_THAT(r, parity::fails(parity::fault::tolerance));
  }
}

}  // namespace gyre_test
