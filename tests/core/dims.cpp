#include <catch2/catch.hpp>

#include <gyre/core/dims.hpp>

namespace {
constexpr gyre::dims sizes{
    .vocab = 1, .width = 2, .heads = 3, .context = 4, .mean_steps = 5, .rope_base = 6.5, .norm_eps = 7.5};
// Read at run time, through the template argument itself.
template <gyre::dims D>
struct reader {
  static const gyre::dims& all() { return D; }
};
}  // namespace

TEST_CASE("numbers reach run time through a template argument unchanged") {
  const gyre::dims& read = reader<sizes>::all();
  CHECK(read.vocab == 1);
  CHECK(read.context == 4);
  CHECK(read.mean_steps == 5);
  CHECK(read.rope_base == 6.5);
  CHECK(read.norm_eps == 7.5);
}
