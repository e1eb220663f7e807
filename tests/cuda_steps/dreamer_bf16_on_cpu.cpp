#include "on_cpu.hpp"

template gyre_test::steps_of_backend gyre_test::steps_on_cpu<gyre_test::dreamer_like, gyre::bf16_mixed>(
    const input&, const gyre::parity::selections&);
