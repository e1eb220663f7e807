#include <catch2/catch.hpp>

#include <gyre/core/dims.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/sequence_attention.hpp>

namespace {
constexpr gyre::dims sizes{
    .vocab = 1, .width = 2, .heads = 3, .context = 4, .mean_steps = 5, .rope_base = 6.5, .norm_eps = 7.5};
// Read at run time, through the template argument itself.
template <gyre::dims D>
struct reader {
  static const gyre::dims& all() { return D; }
};
template <auto Rules>
struct rules {
  static const decltype(Rules)& all() { return Rules; }
};
}  // namespace

TEST_CASE("the rules of layers reach run time through a template argument unchanged") {
  constexpr gyre::routing maps{
      .count = 2, .router_width = 3, .bias_rows = 4, .base = 5.5, .balance_weight = 6.5, .z_weight = 7.5};
  const gyre::routing& r = rules<maps>::all();
  CHECK((r.count == 2 && r.active == 1 && r.router_width == 3 && r.bias_rows == 4));
  CHECK((r.encoding == gyre::depth_encoding::split && r.base == 5.5 && r.balance_weight == 6.5 && r.z_weight == 7.5));
  const gyre::experts& e = rules<gyre::experts{.count = 2, .shared_width = 3, .base = 5.5, .z_weight = 7.5}>::all();
  CHECK((e.count == 2 && e.active == 1 && e.width == 0 && e.shared_width == 3 && e.base == 5.5 && e.z_weight == 7.5));
  const gyre::attention_options& a = rules<gyre::attention_options{.projections = maps, .query_key_norm = true}>::all();
  CHECK((a.projections == maps && a.query_key_bias && a.query_key_norm && a.norm_gain == gyre::gain::learned));
  const gyre::depth_attention_options& d =
      rules<gyre::depth_attention_options{.projections = maps, .base = 8.5, .exclusive = true}>::all();
  CHECK(
      (d.projections == maps && d.encoding == gyre::depth_encoding::split && d.base == 8.5 && d.exclusive && d.query_key_norm));
}

TEST_CASE("numbers reach run time through a template argument unchanged") {
  const gyre::dims& read = reader<sizes>::all();
  CHECK(read.vocab == 1);
  CHECK(read.context == 4);
  CHECK(read.mean_steps == 5);
  CHECK(read.rope_base == 6.5);
  CHECK(read.norm_eps == 7.5);
}
