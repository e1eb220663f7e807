#include "calls.cuh"

namespace gyre_test {

extern const auto attention_in_bf16 = calls_in<gyre::bfloat16, float>::attention();

}  // namespace gyre_test
