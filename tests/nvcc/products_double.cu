#include "calls.cuh"

namespace gyre_test {

extern const auto products_in_double = calls_in<double, double>::products();
extern const auto pairs_in_double = calls_in<double, double>::pairs();
extern const auto statistics_in_double = calls_in<double, double>::statistics();

}  // namespace gyre_test
