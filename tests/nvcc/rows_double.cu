#include "calls.cuh"

namespace gyre_test {

extern const auto rows_in_double = calls_in<double, double>::rows();

}  // namespace gyre_test
