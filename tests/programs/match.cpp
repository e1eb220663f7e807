// The program match: what it prints compiles, and it refuses nonsense.
#include <chrono>
#include <fstream>
#include <thread>

#include "../examples/small_family.hpp"
#include "process.hpp"

using namespace examples;
using namespace gyre_test;

namespace {

const std::string program = std::string(GYRE_PROGRAMS) + "/match";

}  // namespace

TEST_CASE("configurations compile, and their types cost what the table says", "[programs]") {
  const mixture_family family = small_family();
  std::string text = "#include <gyre/gyre.hpp>\n" + configuration(family.layered, "layered");
  gyre::model_sizes s = family.start(true);
  text += configuration(s, "recurrent");
  s.form = gyre::mixture_form::parallel_2, s.norms = gyre::branch_norms::pre_norm, s.state_norm = true;
  s.exclusive_depth = true, s.shared_width = 0;
  text += configuration(s, "others");
  s.experts = 0, s.shared_width = 96, s.query_key_norm = false, s.form = gyre::mixture_form::parallel_3;
  text += configuration(s, "dense");
  const scratch_folder folder;
  std::ofstream(folder / "models.cpp") << text;
  const outcome done =
      run(GYRE_COMPILER, {"-std=c++20", "-fsyntax-only", "-I" GYRE_INCLUDES, (folder / "models.cpp").string()});
  INFO(text << done.err);
  CHECK(done.status == 0);
}

TEST_CASE("match prints a family as C++ whose table is a comment", "[programs]") {
  const outcome done = run(program, {"--starts", "2"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Catch::StartsWith("// model") && Catch::Contains("struct layered_16 :") &&
                           Catch::Contains("struct dr_16 :") && Catch::Contains("struct dr_da_16 :"));
  CHECK_THAT(done.err, Catch::Contains("DR: start 1/2") && Catch::Contains("left 0:0"));
  CHECK(run(program, {"--starts", "2"}).out == done.out);
  CHECK(run(program, {"--starts", "2", "--target", "2b"}).out.find("dr_da_32") != std::string::npos);
}

TEST_CASE("match refuses in one sentence what makes no family", "[programs]") {
  const auto refused = [](std::vector<std::string> words) {
    const outcome done = run(program, std::move(words));
    CHECK(done.status == 1);
    CHECK(done.out.empty());
    return done.err;
  };
  CHECK(refused({"--depth", "0"}) == "error: match: --depth is 0; it lies in [1, 1000000]\n");
  CHECK(refused({"--depth", "99999999999999999999"}) == "error: match: --depth wants a number, not '99999999999999999999'\n");
  CHECK(refused({"--target", "3b"}) == "error: match: --target is one of 1b, 2b, not '3b'\n");
  CHECK(refused({"--heads", "6"}) == "error: match: the layered model: heads must be a multiple of kv_heads\n");
  CHECK(refused({"--depth-heads", "5"}) == "error: match: DR+DA: depth_heads must be a multiple of depth_kv_heads\n");
  CHECK(refused({"--active", "37"}) == "error: match: the layered model: active must be from 1 to experts\n");
  CHECK(refused({"--router-width", "66"}) ==
        "error: match: --router-width is 66; depth encodings turn two halves of pairs, so it is a multiple of 4\n");
  CHECK(refused({"--active-projections", "64"}) == "error: match: active projections 64 must be from 1 to 63\n");
  CHECK(refused({"--starts", "0"}) == "error: match: --starts is 0; it lies in [1, 10000]\n");
  CHECK(refused({"--tolerance", "nan"}) == "error: match: --tolerance is nan; it must not be negative\n");
  CHECK_THAT(refused({"--depth", "1000000", "--experts", "1000000"}), Catch::Contains("do not fit 64 bits"));
  CHECK_THAT(refused({"match"}), Catch::Contains("unknown option or value 'match'"));

  const outcome coarse = run(program, {"--width-step", "100000", "--starts", "1"});
  CHECK(coarse.status == 1);
  CHECK_THAT(coarse.out, Catch::StartsWith("// model"));
  CHECK_THAT(coarse.err, Catch::Contains("error: match: DR is off by") && Catch::Contains("a smaller --width-step"));

  const outcome help = run(program, {"--help"});
  CHECK(help.status == 0);
  CHECK_THAT(help.out, Catch::Contains("--shared-width N"));
}

TEST_CASE("match, interrupted, prints the best found so far", "[programs]") {
  process searching(program, {"--starts", "10000", "--target", "2b"});
  while (searching.running() && searching.err().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  searching.send(SIGINT);
  const outcome stopped = searching.wait();
  CHECK(stopped.status == 0);
  CHECK_THAT(stopped.out, Catch::StartsWith("// model") && Catch::Contains("struct dr_32 :"));
  CHECK_THAT(stopped.err, Catch::Contains("stopped: there may be better ones"));
}
