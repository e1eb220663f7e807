// Grouped products allocate nothing, however the groups change. [no_sanitizer]
#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

#include <gyre/backend/cpu.hpp>

#include "interpose.hpp"

TEST_CASE("grouped products allocate nothing after the first of their size, packing included") {
  constexpr gyre::index rows = 900, out = 48, in = 40, count = 6;
  gyre::cpu b(2);
  std::vector<float> flat(count * out * in, 0.5f), gradients(flat.size()), x(rows * in, 1.0f), y(rows * out);
  std::vector<gyre::tensor_entry> table;
  for (gyre::index g = 0; g < count; ++g) table.push_back({g * out * in, {out, in}, gyre::role::input_projection, {}});
  gyre::cpu::prepared<float> prepared(b, flat.data(), table, true);
  const gyre::weight_matrix<float, gyre::cpu::prepared<float>> w{{flat.data(), out, in}, &prepared};
  const gyre::matrix_view<float> xs(x.data(), rows, in), ys(y.data(), rows, out), dw(gradients.data(), out, in);
  const gyre::matrix_view<const float> x_read = xs, y_read = ys;
  const auto run = [&](std::vector<std::int32_t> offsets) {
    const gyre::row_groups groups{offsets.data(), count, out * in};
    const long before = gyre_test::allocations();
    prepared.refresh(b);
    b.grouped_product(x_read, w, groups, ys, false);
    b.grouped_product_input_gradient(y_read, w, groups, xs, false);
    b.grouped_product_weight_gradient(y_read, x_read, groups, dw);
    return gyre_test::allocations() - before;
  };
  run({0, 0, 450, 450, 450, 450, rows});  // few groups, none of which fills the kernels' memory
  CHECK(run({0, 0, 0, 0, 0, 0, rows}) == 0);
  CHECK(run({0, 150, 300, 450, 600, 750, rows}) == 0);
  CHECK(run({0, 0, 384, 384, 770, 771, rows}) == 0);
}
