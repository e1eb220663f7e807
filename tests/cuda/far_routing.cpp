// Routing of rows of which the last lie beyond 2^32 elements.
#include "far_apart.hpp"

using gyre::operation;

TEST_CASE("routing reaches rows beyond 2^32 elements", "[cuda_kernels]") {
  using gyre_test::check_far_apart;
  check_far_apart<float, operation::route>({{"rows", 7}, {"experts", 40}, {"active", 3}, {"bias", 1}});
  check_far_apart<float, operation::route_backward>({{"rows", 7}, {"experts", 40}, {"active", 3}});
  check_far_apart<float, operation::router_loss>({{"sequences", 2}, {"length", 7}, {"experts", 5}, {"active", 2}});
  check_far_apart<float, operation::router_loss_backward>({{"sequences", 2}, {"length", 7}, {"experts", 5}, {"active", 2}});
  for (const gyre::index cols : {40, 41}) {  // in packs, and by scalars
    check_far_apart<float, operation::spread>({{"rows", 7}, {"experts", 5}, {"active", 2}, {"cols", cols}});
    check_far_apart<float, operation::collect>({{"rows", 7}, {"experts", 5}, {"active", 2}, {"cols", cols}, {"gates", 1}});
    check_far_apart<float, operation::collect_backward>({{"rows", 7}, {"experts", 5}, {"active", 2}, {"cols", cols}});
  }
}
