#include "in_bounded_numbers.hpp"

template gyre_test::expected_steps gyre_test::steps_in_bounded_numbers<gyre_test::dreamer_like, gyre::fp32>(const input&);
