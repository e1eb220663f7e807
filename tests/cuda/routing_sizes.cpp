// Choices among many experts, losses of long sequences, and calls that are refused.
#include "trials.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace gyre_test {

using gyre::index, gyre::operation;

TEST_CASE("cuda chooses as the reference among many experts, any number of them", "[cuda_kernels]") {
  for (const index experts : {32, 33, 128, 129, 512, 513})
    for (const index active : {index{1}, index{33}, experts})
      check_trial<float, operation::route>({{"rows", 5}, {"experts", experts}, {"active", active}, {"bias", 1}, {"gap", 3}});
  check_trial<float, operation::route>({{"rows", 2}, {"experts", 4097}, {"active", 100}, {"negative", 1}});
  check_trial<double, operation::route>({{"rows", 2}, {"experts", 600}, {"active", 65}, {"bias", 1}});
  check_trial<float, operation::route_backward>({{"rows", 5}, {"experts", 600}, {"active", 65}, {"gap", 3}});
}

TEST_CASE("cuda takes -0 for 0, NaN for -infinity and the lower of equal experts", "[cuda_kernels]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> scores{-0.0f, 0,         -0.0f,     0,         0,         // ties of both zeros
                                  nan,   -infinity, nan,       -infinity, nan,       // and of these
                                  nan,   1,         infinity,  -1,        infinity,  // in order
                                  nan,   -1,        -infinity, nan,       -2};
  for (index active = 1; active <= 5; ++active) {
    std::vector<std::int32_t> chosen(20);
    std::vector<float> logits(20), gates(20);
    gyre::reference left;
    shuffled_cuda right;
    CAPTURE(active);
    CHECK_THAT(gyre::parity::compare_call<operation::route>(
                   left, right, {}, gyre::matrix_view<const float>(scores.data(), 4, 5), static_cast<const float*>(nullptr),
                   1.0, active, chosen.data(), logits.data(), gates.data()),
               gyre::parity::agrees());
  }
}

TEST_CASE("a router's losses on cuda agree with the reference for many and long sequences", "[cuda_kernels]") {
  check_trial<float, operation::router_loss>({{"sequences", 3}, {"length", 600}, {"experts", 5}, {"active", 2}});
  check_trial<float, operation::router_loss>({{"sequences", 11}, {"length", 9}, {"experts", 40}, {"active", 3}, {"gap", 3}});
  check_trial<double, operation::router_loss_backward>({{"sequences", 11}, {"length", 9}, {"experts", 40}, {"active", 3}});
}

TEST_CASE("cuda refuses impossible routings", "[cuda_kernels]") {
  shuffled_cuda device;
  const gyre::matrix_view<float> none(nullptr, 0, 4);
  const float* const numbers = nullptr;
  const std::int32_t* const places = nullptr;
  float* const results = nullptr;
  std::int32_t* const written = nullptr;
  gyre::batch_layout rows;
  rows.add(1, 0, 0);
  CHECK_THROWS_WITH(device.route(gyre::matrix_view<const float>(none), nullptr, 1.0, 5, written, results, results),
                    Catch::Contains("route: 5 active of 4 experts"));
  CHECK_THROWS_WITH(device.route_backward(numbers, numbers, places, numbers, 1.0, 0, none),
                    Catch::Contains("route_backward: 0 active"));
  CHECK_THROWS_WITH(device.group_pairs(places, 3, 0, written, written, written), Catch::Contains("3 pairs for no expert"));
  CHECK_THROWS_WITH(device.group_pairs(places, index{1} << 31, 4, written, written, written),
                    Catch::Contains("at most 2147483647"));
  CHECK_THROWS_WITH(device.router_loss(gyre::matrix_view<const float>(none), 1.0, places, 1, rows, {}, results),
                    Catch::Contains("router_loss: 0 rows of scores for a layout of 1"));
  CHECK_THROWS_WITH(device.router_loss_backward(gyre::matrix_view<const float>(none), 1.0, places, 5, rows, {}, 1.0f, none),
                    Catch::Contains("router_loss_backward: 5 active"));
}

}  // namespace gyre_test
