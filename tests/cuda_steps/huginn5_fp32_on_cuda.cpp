#include "on_cuda.hpp"

template gyre_test::steps_of_backend gyre_test::steps_on_cuda<gyre_test::huginn_like<5>, gyre::fp32>(
    const input&, const gyre::parity::selections&, gyre::simt::thread_order);
