// Thrust's host systems count tokens as a GPU does.
// Thrust binds references to null pointers in its own reference type, which is undefined: [no_sanitizer].
#include <catch2/catch.hpp>

#include "support/skip.hpp"

#if !__has_include(<thrust/sort.h>)
TEST_CASE("tokens are counted by Thrust", "[analysis]") {
  gyre_test::skip("no Thrust: its headers come with CUDA's toolkit (./run cuda)");
}
#else

// Where device vectors lie, too, when there is no nvcc.
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <cmath>
#include <vector>

#include <gyre/analysis/token_counts.cuh>

TEMPLATE_TEST_CASE("tokens are counted by Thrust", "[analysis]", thrust::host_vector<gyre::token>,
                   thrust::device_vector<gyre::token>) {
  const std::vector<gyre::token> text{3, 0, 3, 1, 6, 3, 0, 3};
  TestType tokens(text.begin(), text.end());
  CHECK(gyre::count_tokens(tokens, 7) == std::vector<std::int64_t>{2, 1, 0, 4, 0, 0, 1});
  TestType none;
  CHECK(gyre::count_tokens(none, 2) == std::vector<std::int64_t>{0, 0});
  TestType outside(text.begin(), text.end());
  CHECK_THROWS_WITH(gyre::count_tokens(outside, 6), Catch::Contains("tokens from 0 to 6; the vocabulary has 6"));
  outside[0] = -1;
  CHECK_THROWS_WITH(gyre::count_tokens(outside, 7), Catch::Contains("tokens from -1 to 6"));
  CHECK_THROWS_WITH(gyre::count_tokens(none, 0), Catch::Contains("vocabulary of 0"));
}

TEST_CASE("the loss of who knows frequencies alone", "[analysis]") {
  CHECK(gyre::unigram_loss(std::vector<std::int64_t>{5, 5, 0, 5, 5}) == Approx(std::log(4.0)));
  CHECK(gyre::unigram_loss(std::vector<std::int64_t>{0, 9}) == 0);
  CHECK(gyre::unigram_loss({}) == 0);
}
#endif
