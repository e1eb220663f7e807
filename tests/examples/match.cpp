// Matched families: they cost the same, and their table and configurations say what was found. [no_sanitizer]
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "../../examples/support/mixture_text.hpp"
#include "small_family.hpp"

using namespace examples;
using gyre_test::small_family;

namespace {

family_member found(const mixture_family& family, bool depth_attention, int starts) {
  return member_of(family, depth_attention ? "DR+DA" : "DR", match_member(family, depth_attention, {.starts = starts}).sizes);
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
