// Everything that any C++20 compiler can use. gyre.cuh is the umbrella for nvcc.
#pragma once

#include <gyre/config.hpp>
#include <gyre/core/arena.hpp>
#include <gyre/core/concepts.hpp>
#include <gyre/core/context.hpp>
#include <gyre/core/dims.hpp>
#include <gyre/core/error.hpp>
#include <gyre/core/layout.hpp>
#include <gyre/core/normal_quantile.hpp>
#include <gyre/core/parameters.hpp>
#include <gyre/core/precision.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/types.hpp>
#include <gyre/ops/contract.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/version.hpp>
