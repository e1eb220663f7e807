// The gradient of sequence attention against the reference's in long double.
#include "attention_checks.hpp"

namespace gyre_test {

TEMPLATE_TEST_CASE("the gradient of attention", "", float, double) {
  // The reference of long sequences takes minutes under a sanitizer.
  const batch_layout layout = sanitized ? ragged({7, 0, 1, 129, 1}) : ragged({7, 0, 1, 129, 96, 1, 300, 0});
  for (const heads_case h : {heads_case{1, 1, 2}, {4, 4, 64}, {5, 1, 40}, {6, 2, 16}, {2, 1, 256}, {3, 3, 33}})
    check_attention_gradient<TestType>(h, layout);
}

}  // namespace gyre_test
