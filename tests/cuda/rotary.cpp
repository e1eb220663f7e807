#include "trials.hpp"

#include <vector>

using gyre::operation;

TEMPLATE_TEST_CASE("rotations of cuda agree with the reference", "[cuda_kernels]", float, double, gyre::bfloat16) {
  gyre_test::check_operations<TestType, operation::rotary, operation::rotary_backward, operation::rotate>();
}

TEMPLATE_TEST_CASE("rotations of wide and of many heads agree with the reference", "[cuda_kernels]", float, double) {
  for (const gyre::index half_split : {0, 1})
    for (const gyre::index offset : {0, 1}) {
      // More pairs than a block has threads, with packs and without; then more heads than its threads take.
      gyre_test::check_trial<TestType, operation::rotary>(
          {{"rows", 3}, {"heads", 5}, {"pairs", 1028}, {"bias", 1}, {"half_split", half_split}, {"offset", offset}});
      gyre_test::check_trial<TestType, operation::rotary>(
          {{"rows", 3}, {"heads", 70}, {"pairs", 32}, {"half_split", half_split}, {"offset", offset}});
    }
}

TEMPLATE_TEST_CASE("the bias of a rotation may lie anywhere", "[cuda_kernels]", float, double) {
  using T = TestType;
  constexpr gyre::rotary_shape shape{2, 8, gyre::pairing::adjacent};
  constexpr gyre::index cols = shape.heads * shape.width;
  gyre_test::shuffled_cuda device;
  const auto take = [&](gyre::index count) {
    return reinterpret_cast<T*>(device.allocate(static_cast<std::size_t>(count) * sizeof(T)));
  };
  T *const x = take(2 * cols), *const bias = take(2 * cols), *const table = take(shape.width);
  for (gyre::index j = 0; j < shape.width; ++j) table[j] = T(1) / T(j + 2);
  for (gyre::index j = 0; j < 2 * cols; ++j) x[j] = T(j % cols);
  for (const gyre::index shift : {0, 1}) {
    for (gyre::index j = 0; j < cols; ++j) bias[shift + j] = T(j) - T(7.25);
    device.rotary(gyre::matrix_view<T>(x + shift * cols, 1, cols), static_cast<const T*>(bias + shift),
                  std::vector<std::int32_t>{0}, static_cast<const T*>(table), shape);
  }
  for (gyre::index j = 0; j < cols; ++j) CHECK(x[j] == x[cols + j]);
  for (T* const memory : {x, bias, table}) device.deallocate(reinterpret_cast<std::byte*>(memory), 0);
}

TEMPLATE_TEST_CASE("column sums of cuda agree with the reference", "[cuda_kernels]", float, double, gyre::bfloat16) {
  gyre_test::check_operations<TestType, operation::column_sum>();
  for (const gyre::index offset : {0, 1}) {  // several blocks of columns; partial sums of more than eight rows
    gyre_test::check_trial<TestType, operation::column_sum>({{"rows", 17}, {"cols", 300}, {"offset", offset}});
    gyre_test::check_trial<TestType, operation::column_sum>({{"rows", 4099}, {"cols", 4}, {"offset", offset}});
  }
}
