// Gradients of every policy by complex step: norm placements, gains, pairings, injections, grouped queries, heads, states.
#include "support/gradients.hpp"
#include "support/variants.hpp"

using namespace gyre_test::variants;

TEMPLATE_TEST_CASE("gradients of every policy agree with the complex step", "", SandwichGrouped, SandwichBare, PreNorm,
                   BranchSandwich, BranchPost, Post) {
  gyre_test::gradient_check<TestType> check({3, 5});
  for (int r : {1, 2, 5}) check.check_directions(r, 3);
}
