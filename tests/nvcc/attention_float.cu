#include "calls.cuh"

namespace gyre_test {

extern const auto attention_in_float = calls_in<float, float>::attention();

}  // namespace gyre_test
