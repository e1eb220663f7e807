#include "calls.cuh"

namespace gyre_test {

extern const auto rows_in_float = calls_in<float, float>::rows();

}  // namespace gyre_test
