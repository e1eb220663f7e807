// Sorting and moving of pairs: sizes at which units, tiles and shares of columns end, pairs that name no expert, rows of bf16.
#include "trials.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace gyre_test {

using gyre::index, gyre::operation;

namespace {

/// An array in a device's memory, which the host reads and writes.
template <class X>
X* on(shuffled_cuda& device, const std::vector<X>& values) {
  X* const to = reinterpret_cast<X*>(device.allocate(values.size() * sizeof(X)));
  std::memcpy(to, values.data(), values.size() * sizeof(X));
  return to;
}

}  // namespace

TEST_CASE("cuda sorts pairs whose counts fill one tile, several tiles of one block, and several blocks", "[cuda_kernels]") {
  check_trial<float, operation::group_pairs>({{"rows", 700}, {"experts", 7}, {"active", 2}});      // 6 units, 42 counts
  check_trial<float, operation::group_pairs>({{"rows", 4500}, {"experts", 129}, {"active", 1}});   // 18 units, 2322 counts
  check_trial<float, operation::group_pairs>({{"rows", 4300}, {"experts", 241}, {"active", 1}});   // 17 units, 4097 counts
  check_trial<float, operation::group_pairs>({{"rows", 4600}, {"experts", 257}, {"active", 1}});   // 18 units, 4626 counts
  check_trial<float, operation::group_pairs>({{"rows", 1000}, {"experts", 4096}, {"active", 1}});  // all that one block takes
  check_trial<float, operation::group_pairs>({{"rows", 3000}, {"experts", 4096}, {"active", 1}});  // 3 units, 12288 counts
}

TEST_CASE("rows travel to experts and back on cuda where warps share columns and take several", "[cuda_kernels]") {
  for (const index gap : {0, 3}) {
    check_trial<float, operation::spread>({{"rows", 1025}, {"experts", 3}, {"active", 1}, {"cols", 257}, {"gap", gap}});
    check_trial<float, operation::collect>(
        {{"rows", 1025}, {"experts", 3}, {"active", 1}, {"cols", 257}, {"gates", 1}, {"gap", gap}});
    check_trial<float, operation::collect_backward>({{"rows", 3}, {"experts", 3}, {"active", 2}, {"cols", 257}, {"gap", gap}});
  }
}

TEST_CASE("a pair that names no expert goes to the nearest on cuda", "[cuda_kernels]") {
  shuffled_cuda device;
  const std::vector<std::int32_t> chosen{1, -1, 3, 2, 1 << 30, 0}, nothing(6);
  std::int32_t *const offsets = on(device, nothing), *const place = on(device, nothing), *const source = on(device, nothing);
  device.group_pairs(on(device, chosen), 6, 3, offsets, place, source);
  device.finish();
  CHECK(std::vector(offsets, offsets + 4) == std::vector{0, 2, 3, 6});
  CHECK(std::vector(source, source + 6) == std::vector{1, 5, 0, 2, 3, 4});
  CHECK(std::vector(place, place + 6) == std::vector{2, 0, 3, 4, 5, 1});
}

TEST_CASE("rows of bf16 travel to experts and back on cuda", "[cuda_kernels]") {
  using bf16 = gyre::bfloat16;
  constexpr index rows = 3, active = 2, cols = 21, stride = 24;  // two packs of eight and a rest
  shuffled_cuda device;
  const auto matrix = [&](index count) {
    std::vector<bf16> x;
    for (index i = 0; i < count * stride; ++i) x.push_back(gyre::bfloat16(static_cast<float>(i % 97 - 48)));
    return gyre::matrix_view<bf16>(on(device, x), count, cols, stride);
  };
  const std::vector<std::int32_t> place{4, 0, 1, 5, 3, 2}, source{1, 2, 5, 4, 0, 3};
  const std::vector<float> gates{0.5f, 2, 1, -1, 0.25f, 0}, zeros(6);
  const gyre::matrix_view<bf16> x = matrix(rows), y = matrix(rows * active), sum = matrix(rows), dy = matrix(rows * active);
  const std::int32_t* const places = on(device, place);
  const float* const weights = on(device, gates);
  float* const d_gates = on(device, zeros);
  device.spread(gyre::matrix_view<const bf16>(x), static_cast<const std::int32_t*>(on(device, source)), active, y);
  device.collect(gyre::matrix_view<const bf16>(y), places, weights, active, sum);
  device.collect_backward(gyre::matrix_view<const bf16>(sum), gyre::matrix_view<const bf16>(y), places, weights, active, dy,
                          d_gates);
  device.finish();
  const auto value = [](gyre::matrix_view<bf16> m, index i, index j) { return static_cast<float>(m[i][j]); };
  const auto rounded = [](float number) { return static_cast<float>(gyre::bfloat16(number)); };
  for (index i = 0; i < rows; ++i)
    for (index slot = 0; slot < active; ++slot) {
      const auto p = static_cast<std::size_t>(i * active + slot);
      const float both = gates[p - p % 2] + gates[p - p % 2 + 1];
      float dot = 0;  // of whole numbers and quarters: exact
      for (index j = 0; j < cols; ++j) {
        CAPTURE(i, slot, j);
        const float of_row = value(x, i, j);
        REQUIRE(value(y, place[p], j) == of_row);
        REQUIRE(value(sum, i, j) == rounded(of_row + both * of_row));
        REQUIRE(value(dy, place[p], j) == rounded(gates[p] * value(sum, i, j)));
        dot += value(sum, i, j) * of_row;
      }
      CHECK(d_gates[p] == dot);
    }
}

}  // namespace gyre_test
