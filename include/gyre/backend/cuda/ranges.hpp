// Names for the timeline of a profiler.
#pragma once

#if defined(__CUDACC__)

#include <cstddef>
#include <nvtx3/nvToolsExt.h>
#include <utility>

#include <gyre/ops/operations.hpp>
#include <gyre/parity/wrapped.hpp>

GYRE_BEGIN

/// A backend like B whose operations are ranges of NVTX, with the contract's names: what Nsight Systems shows above the kernels.
///   gyre::network<Model, gyre::ranged<gyre::cuda>, gyre::fp32> net(gyre::ranged(gyre::cuda()), gyre::seed{1});
/// Without a profiler a range costs some nanoseconds.
template <class B>
class ranged : public parity::wrapped<ranged<B>, B> {
 public:
  explicit ranged(B device) : parity::wrapped<ranged, B>(std::move(device)) {}

  template <operation Op, class... A>
  void operate(const A&... a) {
    const range named(operation_names[static_cast<std::size_t>(Op)].data());
    parity::signature<Op>::call(this->inner(), a...);
  }

 private:
  struct range {
    explicit range(const char* name) { nvtxRangePushA(name); }
    ~range() { nvtxRangePop(); }
    range(const range&) = delete;
    range& operator=(const range&) = delete;
  };
};

GYRE_END

#endif
