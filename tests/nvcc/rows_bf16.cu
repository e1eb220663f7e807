#include "calls.cuh"

namespace gyre_test {

extern const auto rows_in_bf16 = calls_in<gyre::bfloat16, float>::rows();

}  // namespace gyre_test
