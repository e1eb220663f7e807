// Precision roles: which scalar type plays which part. A model is compiled for one set of roles.
#pragma once

#include <complex>
#include <concepts>

#include <gyre/core/bfloat16.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// One scalar in every role.
template <class Scalar>
struct uniform_precision {
  using parameter = Scalar;   // weights that products read
  using activation = Scalar;  // rows that layers exchange, caches
  using gradient = Scalar;    // parameter gradients
  using statistic = Scalar;   // norms, softmax, loss
};
struct fp32 : uniform_precision<float> {};
struct fp64 : uniform_precision<double> {};
/// For checking gradients: Im f(x + ih) / h has no cancellation, so h can be 1e-50.
struct complex_step : uniform_precision<std::complex<double>> {};

/// Parameters and activations in bf16; sums, statistics, routing, losses and gradients of parameters in fp32. A trainer keeps
/// parameters in fp32 besides, and rounds them after each update.
struct bf16_mixed {
  using parameter = bfloat16;
  using activation = bfloat16;
  using gradient = float;
  using statistic = float;
};

template <class P>
concept precision = requires {
  typename P::parameter;
  typename P::activation;
  typename P::gradient;
  typename P::statistic;
};

GYRE_END
