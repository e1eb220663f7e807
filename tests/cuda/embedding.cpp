#include "trials.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("embedding on cuda agrees with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::embed, operation::embed_backward>();
}

TEMPLATE_TEST_CASE("rows of an embedding wider than a block of cuda", "[cuda_kernels]", float, double) {
  constexpr gyre::index tile = gyre::detail::embedding_threads * gyre::detail::pack_width<TestType>;
  for (const gyre::index cols : {tile, 2 * tile + 5}) {
    gyre_test::check_trial<TestType, operation::embed>({{"rows", 7}, {"vocabulary", 7}, {"cols", cols}});
    gyre_test::check_trial<TestType, operation::embed_backward>({{"rows", 11}, {"vocabulary", 3}, {"cols", cols}});
  }
}
