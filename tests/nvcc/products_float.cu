#include "calls.cuh"

namespace gyre_test {

extern const auto products_in_float = calls_in<float, float>::products();
extern const auto pairs_in_float = calls_in<float, float>::pairs();
extern const auto statistics_in_float = calls_in<float, float>::statistics();

}  // namespace gyre_test
