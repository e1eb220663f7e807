// The kernels for compilers without vector extensions, beside the others in one program. [own_unit]
#define GYRE_SCALAR_KERNELS
#define gyre_test gyre_test_scalar  // types of the tests hold types of the library, which differ from those of other units

#include "attention_checks.hpp"

namespace gyre_test {

static_assert(gyre::detail::simd_bytes == 16);

TEST_CASE("scalar kernels: attention and its gradient agree with the reference") {
  for (const heads_case h : {heads_case{2, 2, 16}, {5, 1, 7}}) {
    check_attention<float>(h, ragged({7, 1, 129}), 1);
    check_attention_gradient<float>(h, ragged({7, 1, 129}));
  }
}

// Whole numbers, so small that every sum is exact.
TEST_CASE("scalar kernels: products and their gradients are exact for whole numbers") {
  cpu b(2);
  for (const index rows : {1, 2, 5, 40})
    for (const index width : {1, 9, 70}) {
      CAPTURE(rows, width);
      const auto whole = [](index n, index m, std::uint64_t number) {
        auto g = random_grid<float>(n, m, number, 3);
        for (index i = 0; i < n; ++i)
          for (index j = 0; j < m; ++j) g[i][j] = std::round(g[i][j]);
        return g;
      };
      const auto x = whole(rows, width, 1), w = whole(33, width, 2), dy = whole(rows, 33, 3);
      const auto run = [&](auto&& device) {
        using prepared = typename std::remove_reference_t<decltype(device)>::template prepared<float>;
        const gyre::weight_matrix<float, prepared> weight{w.read(), nullptr};
        std::vector<grid<float>> out{dy, x, w, dy, x, w};
        device.product(x.read(), weight, out[0].view(), true);
        device.product_input_gradient(dy.read(), weight, out[1].view(), true);
        device.product_weight_gradient(dy.read(), x.read(), out[2].view());
        // Two groups, whose matrices are the first 13 rows of w and the last 13.
        const std::int32_t offsets[] = {0, static_cast<std::int32_t>(rows / 3), static_cast<std::int32_t>(rows)};
        const auto dy_13 = dy.read().columns(0, 13);
        const gyre::row_groups groups{offsets, 2, 20 * w.view().stride};
        const gyre::weight_matrix<float, prepared> group_0{w.read().slice(0, 13), nullptr};
        device.grouped_product(x.read(), group_0, groups, out[3].view().columns(0, 13), true);
        device.grouped_product_input_gradient(dy_13, group_0, groups, out[4].view(), true);
        device.grouped_product_weight_gradient(dy_13, x.read(), groups, out[5].view().slice(0, 13));
        return out;
      };
      const auto got = run(b), want = run(reference());
      for (std::size_t n = 0; n < got.size(); ++n) CHECK(differences(got[n].read(), want[n].read(), 0) == "");
    }
}

TEST_CASE("scalar kernels: norms, gates and rotary encoding agree with the reference") {
  cpu b(2);
  for (const index width : {2, 40, 66}) {
    CAPTURE(width);
    const index rows = 9;
    const auto x = random_grid<float>(rows, width, 1), gain = random_grid<float>(1, width, 2),
               h = random_grid<float>(rows, 2 * width, 3), table = random_grid<float>(16, width, 4, 1, 0);
    batch_layout layout = ragged({rows});
    const auto run = [&]<class T>(auto&& device, T) {
      const auto gains = gain.as<T>(), angles = table.as<T>();
      grid<T> y(rows, width), rstd(rows, 1, 0), gated(rows, width), turned = x.as<T>();
      device.rms_norm(x.as<T>().read(), gains.data(), 1e-6, y.view(), rstd.data());
      device.gated_silu(h.as<T>().read(), gated.view());
      device.rotary(turned.view(), gains.data(), layout.positions(), angles.data(), {1, width, gyre::pairing::adjacent});
      return std::vector<grid<T>>{y, rstd, gated, turned};
    };
    const auto got = run(b, 0.0f);
    const auto want = run(reference(), exact(0));
    // The sum of squares: one rounding for each product and each sum; then root, quotient, products. Gates: the logistic's
    // exponential, sum, quotient and products. Rotations: (x + bias) twice times a normal number, all of them below 4.5, with
    // three roundings of half a unit.
    const exact limits[] = {2 * static_cast<exact>(width) + 8, 2 * static_cast<exact>(width) + 8, 6};
    for (std::size_t n = 0; n < 3; ++n)
      CHECK(differences(got[n].read(), want[n].read(),
                        [&](index i, index j) { return limits[n] * epsilon<float> * std::fabs(want[n][i][j]); }) == "");
    CHECK(differences(got[3].read(), want[3].read(), 1.5 * 2 * 9 * 4.5 * epsilon<float>) == "");
  }
}

}  // namespace gyre_test
