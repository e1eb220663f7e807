// Cross-entropy and sums of the `cuda` backend.
#pragma once

#include <span>
#include <type_traits>

#include <gyre/backend/cuda/kernels/cross_entropy.cuh>
#include <gyre/backend/cuda/kernels/sums.cuh>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_loss {
  template <class T, class S>
  void cross_entropy(matrix_view<T> logits, std::span<const token> targets, std::type_identity_t<S> scale, S* losses,
                     bool gradient) {
    const bool is_long = logits.cols >= cross_entropy_long_row;
    constexpr unsigned threads = cross_entropy_threads, more = cross_entropy_threads_of_long_rows;
    simt::launch(is_long ? cross_entropy_rows<more, T, S> : cross_entropy_rows<threads, T, S>, blocks_for(logits.rows, 1),
                 is_long ? more : threads, 0, device().stream(), logits, device().stage(targets), scale, losses, gradient);
  }
  template <class S>
  void sum(const S* x, index count, S* total) {
    double* const sums = device().template workspace<double>(sum_chunks<S>(count));
    sum_up<S>(device(), sums, at_pack(x), count, number_term<S, false>{x}, whole_sum{}, total);
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
};

}  // namespace detail

GYRE_END
