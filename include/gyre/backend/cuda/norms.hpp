// Norms of the `cuda` backend.
#pragma once

#include <gyre/backend/cuda/kernels/column_sums.cuh>
#include <gyre/backend/cuda/kernels/norms.cuh>

GYRE_BEGIN

namespace detail {

/// Bytes that must move at least, of s a scalar: rms_norm, standardise and row_change 2 s an element, add_rms_norm 4 s,
/// rms_norm_backward 4 s (x, dy, dx, dx). They do where rows are packs and fit the registers of 512 threads (kept_packs): then
/// rows are read once, and dgain costs its partial sums besides. Otherwise rows are read twice, and dgain reads x and dy again.
template <class Backend>
struct cuda_norms {
  template <class T, class S>
  void rms_norm(matrix_view<const T> x, const T* gain, double eps, matrix_view<T> y, S* rstd) {
    by_length<T>(x.cols, whole_packs<T>(x.cols, x, y), [&]<unsigned Threads, int Width>() {
      rows<Threads>(x.rows, normalise_rows<Threads, Width, false, T, S>, x, matrix_view<const T>(), gain, static_cast<S>(eps),
                    matrix_view<T>(), y, rstd);
    });
  }
  template <class T, class S>
  void add_rms_norm(matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps, matrix_view<T> sum,
                    matrix_view<T> y, S* rstd) {
    by_length<T>(x.cols, whole_packs<T>(x.cols, x, f, sum, y), [&]<unsigned Threads, int Width>() {
      rows<Threads>(x.rows, normalise_rows<Threads, Width, true, T, S>, x, f, gain, static_cast<S>(eps), sum, y, rstd);
    });
  }

  static constexpr index rms_norm_backward_workspace(index rows, index cols) { return partials_of(rows) * cols; }
  template <class T, class S, class G>
  void rms_norm_backward(matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                         G* dgain, G* workspace) {
    const bool packed = whole_packs<T>(x.cols, x, dy, dx);
    const bool at_once =
        packed && at_pack(workspace) && x.cols <= index{long_row_threads} * kept_packs<pack_width<T>> * pack_width<T>;
    const index partials = partials_of(x.rows), rows_each = rows_of_partial(x.rows);
    if (dgain != nullptr && at_once) {
      by_length<T>(x.cols, true, [&]<unsigned Threads, int Width>() {
        if constexpr (Width > 1)
          simt::launch(normalise_rows_backward<Threads, Width, true, T, G, S>, static_cast<unsigned>(partials),
                       threads_of_rows<Threads>, 0, device().stream(), x, gain, rstd, dy, dx, rows_each, workspace);
      });
    } else {
      if (dgain != nullptr)
        launch_sum_columns<T>(device().stream(), x.rows, x.cols, rows_each, packed, gain_terms<T, G, S>{x, dy, rstd}, workspace,
                              false);
      by_length<T>(x.cols, packed, [&]<unsigned Threads, int Width>() {
        rows<Threads>(x.rows, normalise_rows_backward<Threads, Width, false, T, G, S>, x, gain, rstd, dy, dx,
                      index{threads_of_rows<Threads> / Threads}, static_cast<G*>(nullptr));
      });
    }
    if (dgain != nullptr) launch_add_partials<G>(device().stream(), workspace, partials, x.cols, dgain);
  }

  template <class T>
  void standardise(matrix_view<T> y) {
    by_length<T>(y.cols, whole_packs<T>(y.cols, y),
                 [&]<unsigned Threads, int Width>() { rows<Threads>(y.rows, standardise_rows<Threads, Width, T>, y); });
  }
  template <class T, class S>
  void row_change(matrix_view<const T> x, matrix_view<const T> before, S* change) {
    by_length<T>(x.cols, whole_packs<T>(x.cols, x, before), [&]<unsigned Threads, int Width>() {
      rows<Threads>(x.rows, change_of_rows<Threads, Width, T, S>, x, before, change);
    });
  }

 private:
  auto& device() { return static_cast<Backend&>(*this).device(); }
  /// f.operator()<threads of a row, elements of an access>().
  template <class T, class F>
  static void by_length(index cols, bool packed, F f) {
    const auto with = [&]<int Width>() {
      constexpr index kept_by_thread = index{kept_packs<Width>} * Width;
      if (cols <= short_row_threads * kept_by_thread)
        f.template operator()<short_row_threads, Width>();
      else if (cols <= row_threads * kept_by_thread)
        f.template operator()<row_threads, Width>();
      else
        f.template operator()<long_row_threads, Width>();
    };
    if (packed)
      with.template operator()<pack_width<T>>();
    else
      with.template operator()<1>();
  }
  template <unsigned Threads, class Kernel, class... Arguments>
  void rows(index count, Kernel kernel, const Arguments&... arguments) {
    simt::launch(kernel, blocks_for(count, threads_of_rows<Threads> / Threads), threads_of_rows<Threads>, 0, device().stream(),
                 arguments...);
  }
};

}  // namespace detail

GYRE_END
