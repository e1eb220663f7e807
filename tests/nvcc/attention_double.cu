#include "calls.cuh"

namespace gyre_test {

extern const auto attention_in_double = calls_in<double, double>::attention();

}  // namespace gyre_test
