// Backend `reference`: the contract in plain loops, for any scalar, std::complex<double> included. Slow and obvious. It is what
// every other backend is compared with, and what carries the complex step that checks gradients.
#pragma once

#include <cstddef>
#include <new>

#include <gyre/backend/reference/attention.hpp>
#include <gyre/backend/reference/depth.hpp>
#include <gyre/backend/reference/elementwise.hpp>
#include <gyre/backend/reference/loss.hpp>
#include <gyre/backend/reference/products.hpp>
#include <gyre/backend/reference/routing.hpp>
#include <gyre/backend/reference/sampling.hpp>
#include <gyre/backend/reference/updates.hpp>
#include <gyre/ops/contract.hpp>

GYRE_BEGIN

/// Plain loops on the calling thread. Holds no state.
struct reference : detail::reference_elementwise,
                   detail::reference_products,
                   detail::reference_attention,
                   detail::reference_depth,
                   detail::reference_routing,
                   detail::reference_sampling,
                   detail::reference_loss,
                   detail::reference_updates {
  template <class T>
  using prepared = detail::nothing_prepared<T>;

  std::byte* allocate(std::size_t bytes) {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{arena::alignment}));
  }
  void deallocate(std::byte* memory, std::size_t) noexcept { ::operator delete (memory, std::align_val_t{arena::alignment}); }
  void finish() {}
};

static_assert(mixed_backend<reference>);

GYRE_END
