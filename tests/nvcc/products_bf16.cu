#include "calls.cuh"

namespace gyre_test {

extern const auto products_in_bf16 = calls_in<gyre::bfloat16, float>::products();
extern const auto pairs_in_bf16 = calls_in<gyre::bfloat16, float>::pairs();

}  // namespace gyre_test
