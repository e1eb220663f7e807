// Runs a kernel: gyre::simt::launch(kernel, grid, block, bytes of dynamic shared memory, stream, arguments...).
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/simt/machine.hpp>
#include <gyre/simt/position.hpp>

namespace gyre_simt {

namespace detail {

template <class... P>
struct kernel_call {
  void (*kernel)(P...);
  std::tuple<std::remove_const_t<P>...> parameters;

  GYRE_SIMT_ENGINE static void run(const void* self) {
    static_cast<const kernel_call*>(self)->run(std::index_sequence_for<P...>());
  }
  template <std::size_t... I>
  GYRE_SIMT_ENGINE void run(std::index_sequence<I...>) const {
    kernel(std::get<I>(parameters)...);
  }
};

}  // namespace detail
}  // namespace gyre_simt

GYRE_BEGIN

/// The interpreter's names.
namespace simt {

using namespace ::gyre_simt;

/// Thrown by a launch that found faults; what() is the text of all of them, one a line.
class fault_error : public error {
 public:
  explicit fault_error(std::vector<fault> found) : error(joined(found)), faults_(std::move(found)) {}
  const std::vector<fault>& faults() const { return faults_; }

 private:
  static std::string joined(const std::vector<fault>& found) {
    std::string text;
    for (const fault& f : found) text += (text.empty() ? "" : "\n") + f.text;
    return text;
  }
  std::vector<fault> faults_;
};

/// The machine that runs a launch; null for one with default options that lives as long as the launch.
using stream = machine*;

/// Runs `kernel` over `grid` blocks of `block` threads and returns when it is done. A grid of size 0 runs nothing. Throws
/// fault_error if anything is wrong with the kernel or the launch, unless options::throws is off.
template <class... P, class... Arguments>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared_bytes, stream s, Arguments&&... arguments) {
  static_assert(sizeof...(P) == sizeof...(Arguments), "simt: the kernel takes another number of arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "simt: parameters of kernels are copied as bytes");
  using call = ::gyre_simt::detail::kernel_call<P...>;
  const call c{kernel, {static_cast<P>(std::forward<Arguments>(arguments))...}};
  const auto run = [&](machine& m) {
    std::vector<fault> found =
        m.run(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, sizeof(c), &call::run, &c);
    if (!found.empty() && m.settings.throws) throw fault_error(std::move(found));
  };
  if (s != nullptr) {
    run(*s);
  } else {
    machine alone;
    run(alone);
  }
}

}  // namespace simt
GYRE_END
