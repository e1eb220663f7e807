// Counts only, which touches no memory of a model. [no_sanitizer]
#include "model/drawn_mixtures.hpp"

TEST_CASE("the closed form of the cost equals the dry run for random mixtures, 20 to 29") {
  gyre_test::check_drawn<20>(std::make_integer_sequence<int, 10>{});
}
