// Tests that need a GPU.
#pragma once

#include <optional>

#include <gyre/core/error.hpp>

#include "support/skip.hpp"

namespace gyre_test {

/// Device B on the machine's first GPU. Without one the test case is skipped, and says why.
template <class B>
std::optional<B> on_gpu() {
  try {
    return B();
  } catch (const gyre::error& why) {
    skip(why.what());
    return std::nullopt;
  }
}

}  // namespace gyre_test
