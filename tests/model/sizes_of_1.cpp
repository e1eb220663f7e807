// Counts only, which touches no memory of a model. [no_sanitizer]
#include "model/drawn_mixtures.hpp"

TEST_CASE("the closed form of the cost equals the dry run for random mixtures, 10 to 19") {
  gyre_test::check_drawn<10>(std::make_integer_sequence<int, 10>{});
}
