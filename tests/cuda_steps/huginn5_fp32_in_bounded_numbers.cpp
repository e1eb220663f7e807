#include "in_bounded_numbers.hpp"

template gyre_test::expected_steps gyre_test::steps_in_bounded_numbers<gyre_test::huginn_like<5>, gyre::fp32>(const input&);
