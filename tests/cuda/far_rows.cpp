// Offsets beyond 2^31 elements: rows that lie 2^28 elements apart, in memory of which only what is touched exists.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/backend/reference.hpp>

namespace {

using gyre::matrix_view;

constexpr gyre::index row_count = 10, distance = gyre::index{1} << 28;

/// A matrix whose last rows begin beyond 2^31 elements, and the same on the host.
struct spread_matrix {
  matrix_view<float> on_device;
  std::vector<float> values;

  spread_matrix(gyre::simulated_cuda& device, gyre::index cols, float first, bool packed)
      : on_device(reinterpret_cast<float*>(device.allocate(4 * static_cast<std::size_t>(row_count * (distance + 1)))),
                  row_count, cols, packed ? distance : distance + 1) {
    for (gyre::index n = 0; n < row_count * cols; ++n)
      values.push_back(on_device[n / cols][n % cols] = std::sin(first + 0.37f * static_cast<float>(n)));
  }
  matrix_view<float> on_host() { return {values.data(), row_count, on_device.cols}; }

  void check_equal() const {
    float furthest = 0;
    for (gyre::index n = 0; n < static_cast<gyre::index>(values.size()); ++n) {
      const float here = values[static_cast<std::size_t>(n)], there = on_device[n / on_device.cols][n % on_device.cols];
      furthest = (std::max)(furthest, std::isnan(there) ? 1.0f : std::fabs(here - there));
    }
    CHECK(furthest < 1e-5f);
  }
};

/// The same call with matrices x (m columns), y and z, and vectors, on both backends.
template <class Call>
void check_call(const char* name, gyre::index x_cols, gyre::index cols, Call call) {
  for (const bool packed : {true, false}) {
    INFO(name << (packed ? " in packs" : ""));
    gyre::simulated_cuda device;
    gyre::reference reference;
    spread_matrix x(device, x_cols, 0, packed), y(device, cols, 1, packed), z(device, x_cols, 2, packed);
    float* const vectors = reinterpret_cast<float*>(device.allocate(4 * 1024));
    std::vector<float> own(1024);
    for (std::size_t n = 0; n < own.size(); ++n) vectors[n] = own[n] = 0.5f + 0.001f * static_cast<float>(n);
    call(device, x.on_device, y.on_device, z.on_device, vectors);
    call(reference, x.on_host(), y.on_host(), z.on_host(), own.data());
    for (const spread_matrix* m : {&x, &y, &z}) m->check_equal();
    for (const spread_matrix* m : {&x, &y, &z}) device.deallocate(reinterpret_cast<std::byte*>(m->on_device.data), 0);
    device.deallocate(reinterpret_cast<std::byte*>(vectors), 0);
  }
}

}  // namespace

TEST_CASE("operations on rows reach beyond 2^31 elements", "[cuda_kernels]") {
  using view = matrix_view<const float>;
  constexpr gyre::index cols = 40;
  check_call("copy", cols, cols, [](auto& b, auto x, auto y, auto, float*) { b.copy(view(x), y); });
  check_call("add", cols, cols, [](auto& b, auto x, auto y, auto, float*) { b.add(view(x), y); });
  check_call("gather", cols, cols, [](auto& b, auto x, auto y, auto, float*) {
    b.gather(view(x), std::vector<gyre::index>{9, 0, 8, 1, 7, 2, 6, 3, 5, 4}, y);
  });
  check_call("add_scaled_backward", cols, cols, [](auto& b, auto x, auto y, auto z, float* v) {
    b.add_scaled_backward(view(x), static_cast<const float*>(v), view(y), z, v + 1, v + 8);
    z[0][0] = v[1];
  });
  check_call("rms_norm", cols, cols, [](auto& b, auto x, auto y, auto, float* v) {
    b.rms_norm(view(x), static_cast<const float*>(v), 1e-6, y, v + 64);
  });
  check_call("add_rms_norm", cols, cols, [](auto& b, auto x, auto y, auto z, float* v) {
    b.add_rms_norm(view(x), view(z), static_cast<const float*>(v), 1e-6, z, y, v + 64);
  });
  for (const bool sum : {true, false})
    check_call("rms_norm_backward", cols, cols, [sum](auto& b, auto x, auto y, auto z, float* v) {
      b.rms_norm_backward(view(x), static_cast<const float*>(v), static_cast<const float*>(v + 64), view(y), z,
                          sum ? v + 128 : nullptr, v + 256);
      z[0][0] = v[128 + cols - 1];
    });
  check_call("standardise", cols, cols, [](auto& b, auto, auto y, auto, float*) { b.standardise(y); });
  check_call("row_change", cols, cols, [](auto& b, auto x, auto y, auto z, float* v) {
    b.row_change(view(x), view(y), v);
    z[0][0] = v[19];
  });
  check_call("gated_silu", 2 * cols, cols, [](auto& b, auto x, auto y, auto, float*) { b.gated_silu(view(x), y); });
  check_call("gated_silu_backward", 2 * cols, cols,
             [](auto& b, auto x, auto y, auto z, float*) { b.gated_silu_backward(view(x), view(y), z); });
  for (const auto pairs : {gyre::pairing::adjacent, gyre::pairing::half_split})
    check_call("rotary", cols, cols, [pairs](auto& b, auto, auto y, auto, float* v) {
      b.rotary(y, static_cast<const float*>(nullptr), std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
               static_cast<const float*>(v), gyre::rotary_shape{5, 8, pairs});
    });
  check_call("column_sum", cols, cols, [](auto& b, auto x, auto, auto z, float* v) {
    b.column_sum(view(x), v, v + 128);
    z[0][0] = v[7];
  });
}

TEST_CASE("matrices without gaps may have more than 2^31 elements", "[cuda_kernels]") {
  constexpr gyre::index rows = (gyre::index{1} << 21) + 1, cols = 1027;  // the last pack is not whole
  gyre::simulated_cuda device;
  const auto take = [&] { return reinterpret_cast<float*>(device.allocate(4 * static_cast<std::size_t>(rows * cols))); };
  const matrix_view<float> x(take(), rows, cols), y(take(), rows, cols);
  constexpr std::uint64_t blocks = (rows * cols + 1023) / 1024;
  device.device().machine().settings.blocks = {blocks - 2, 2};
  device.fill(y, 2.0f);
  device.fill(x, 3.0f);
  device.add(matrix_view<const float>(x), y);
  CHECK(y[rows - 1][cols - 1] == 5);
  CHECK(y[rows - 1][0] == 5);
  CHECK(y[rows - 3][cols - 1] == 0);  // not in the last two blocks, which have at most 2048 elements
  for (const auto& m : {x, y}) device.deallocate(reinterpret_cast<std::byte*>(m.data), 0);
}
