// Matched families: they cost the same, their table and configurations say what was found, and the program refuses nonsense.
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../../examples/support/mixture_text.hpp"
#include "../support/skip.hpp"
#include "process.hpp"

using namespace examples;
using namespace gyre_test;

namespace {

/// Width 64 and short sequences, for trainings of minutes.
mixture_family small_family() {
  mixture_family f = mixture_family::of(8);
  f.layered.vocab = 72, f.layered.width = 64, f.layered.context = 48;
  f.layered.head_width = 16, f.layered.heads = 4, f.layered.kv_heads = 1, f.layered.router_width = 16;
  f.layered.experts = 8, f.layered.active = 2, f.layered.expert_width = f.layered.shared_width = 128;
  f.depth_kv_heads = 1;
  return f;
}
family_member found(const mixture_family& family, bool depth_attention, int starts) {
  return member_of(family, depth_attention ? "DR+DA" : "DR", match_member(family, depth_attention, {.starts = starts}).sizes);
}

#ifdef GYRE_PROGRAMS
const std::string program = std::string(GYRE_PROGRAMS) + "/match";
#else
const std::string program;
#endif
bool built() {
  if (!program.empty()) return true;
  skip("the programs of examples/ are not part of this build");
  return false;
}

}  // namespace

TEST_CASE("DR and DR+DA of 1 B and 2 B parameters are matched to the layered model within 0.3%", "[examples]") {
  for (const gyre::index depth : {16, 32})
    for (const bool depth_attention : {false, true}) {
      const mixture_family family = mixture_family::of(depth);
      const family_member m = found(family, depth_attention, 2);
      INFO("depth " << depth << ", " << m.name);
      CHECK(std::abs(m.off.parameters) < 0.003);
      CHECK(std::abs(m.off.flops) < 0.003);
      CHECK(std::abs(m.off.memory) < 0.003);
      CHECK(m.sizes.layers == 1);
      CHECK(m.sizes.depth == depth);
      CHECK(m.sizes.depth_heads == (depth_attention ? 4 : 0));
      CHECK(m.sizes.active_projections == 2);
      CHECK(m.sizes.active_projections < m.sizes.projection_experts);
      CHECK(m.sizes.expert_width % 32 == 0);
      CHECK(m.sizes.shared_width % 32 == 0);
      CHECK(gyre::problem(m.sizes) == nullptr);
    }
}

TEST_CASE("a family to train in minutes is matched within 2% in parameters and FLOPs", "[examples]") {
  for (const bool depth_attention : {false, true}) {
    const family_member m = found(small_family(), depth_attention, 4);
    INFO(m.name);
    CHECK(std::abs(m.off.parameters) < 0.02);
    CHECK(std::abs(m.off.flops) < 0.02);
    // The depth cache has as many keys and values a depth as one token of the sequence cache.
    CHECK(m.off.memory == Approx(depth_attention ? 1.0 / 48 : 0));
  }
}

TEST_CASE("families of other sizes are matched too", "[examples]") {
  mixture_family no_shared = mixture_family::of(16), shallow = mixture_family::of(1), one_active = mixture_family::of(4);
  no_shared.layered.shared_width = 0;
  one_active.layered.active = 1, one_active.active_projections = 1;
  for (const mixture_family& family : {no_shared, shallow, one_active}) {
    const family_member m = found(family, false, 4);
    INFO("depth " << family.layered.depth);
    CHECK(m.worst() < 0.01);
    CHECK(m.sizes.shared_width == (family.layered.shared_width == 0 ? 0 : m.sizes.shared_width));
  }
}

TEST_CASE("the table of a family shows sizes and deviations", "[examples]") {
  const mixture_family family = mixture_family::of(16);
  gyre::model_sizes s = family.start(true);
  s.experts = 520, s.active = 2, s.expert_width = 608, s.shared_width = 448, s.projection_experts = 8;
  const std::vector<family_member> members{member_of(family, "layered", family.layered), member_of(family, "DR+DA", s)};
  CHECK(family_table(members, "// ") ==
        "// model    experts  active  width  shared  projections  parameters           FLOP/token           training    cache  "
        "         tape B/token\n"
        "// layered  36 x 16       4    512    1024            1     1.051 G              558.2 M            1.708 G  16.78 M  "
        "              1.839 M\n"
        "// DR+DA        520       2    608     448       2 of 8     1.052 G  +0.069%     559.4 M  +0.208%   1.712 G  16.78 M  "
        "+0.024%       2.545 M\n");
  CHECK(with_unit(0) == "0");
  CHECK(with_unit(999) == "999");
  CHECK(with_unit(1000) == "1.000 k");
  CHECK(with_unit(999960) == "1000 k");
  CHECK(with_unit(2.05e12) == "2.050 T");
}

TEST_CASE("a configuration names all sizes", "[examples]") {
  mixture_family family = mixture_family::of(16);
  gyre::model_sizes s = family.start(true);
  s.experts = 520, s.active = 3, s.expert_width = 608, s.shared_width = 448, s.projection_experts = 8;
  const std::string text = configuration(s, "deep");
  for (const char* part :
       {"deep_experts{.count = 520, .active = 3, .width = 608,\n    .shared_width = 448, .router_width = 64}",
        "deep_depth{.projections = {.count = 8, .active = 2, .router_width = 64},",
        "deep_sequence{.projections = {.count = 8, .active = 2, .router_width = 64},",
        ".heads = 16, .kv_heads = 4, .head_width = 64", ".heads = 4, .kv_heads = 2, .head_width = 64",
        ".vocab = 50304, .width = 1024", ".context = 2048, .mean_steps = 16", "gyre::mixture<gyre::sequential,",
        "gyre::depth_attention<deep_depth_sizes, deep_depth>", "// 16 steps"})
    CHECK_THAT(text, Catch::Contains(part));
  CHECK(text.find("pre_norm") == std::string::npos);
  CHECK(text.find("state_norm") == std::string::npos);

  s.form = gyre::mixture_form::parallel_2, s.norms = gyre::branch_norms::pre_norm, s.state_norm = true;
  const std::string other = configuration(s, "deep");
  for (const char* part : {"gyre::mixture<gyre::with_norms<gyre::parallel_2, gyre::pre_norm, gyre::state_norm::yes>,"})
    CHECK_THAT(other, Catch::Contains(part));

  const std::string layered = configuration(family.layered, "flat");
  CHECK_THAT(layered, Catch::Contains("gyre::stack<16, flat_layer>") && Catch::Contains("// 1 step\n"));
  CHECK(layered.find("depth_attention") == std::string::npos);
  CHECK(layered.find("projections") == std::string::npos);
}

#ifdef GYRE_COMPILER
TEST_CASE("configurations compile, and their types cost what the table says", "[examples]") {
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
#endif

TEST_CASE("match prints a family as C++ whose table is a comment", "[examples]") {
  if (!built()) return;
  const outcome done = run(program, {"--starts", "2"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Catch::StartsWith("// model") && Catch::Contains("struct layered_16 :") &&
                           Catch::Contains("struct dr_16 :") && Catch::Contains("struct dr_da_16 :"));
  CHECK_THAT(done.err, Catch::Contains("DR: start 1/2") && Catch::Contains("left 0:0"));
  CHECK(run(program, {"--starts", "2"}).out == done.out);
  CHECK(run(program, {"--starts", "2", "--target", "2b"}).out.find("dr_da_32") != std::string::npos);
}

TEST_CASE("match refuses in one sentence what makes no family", "[examples]") {
  if (!built()) return;
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

TEST_CASE("match, interrupted, prints the best found so far", "[examples]") {
  if (!built()) return;
  process searching(program, {"--starts", "10000", "--target", "2b"});
  while (searching.running() && searching.err().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  searching.send(SIGINT);
  const outcome stopped = searching.wait();
  CHECK(stopped.status == 0);
  CHECK_THAT(stopped.out, Catch::StartsWith("// model") && Catch::Contains("struct dr_32 :"));
  CHECK_THAT(stopped.err, Catch::Contains("stopped: there may be better ones"));
}
