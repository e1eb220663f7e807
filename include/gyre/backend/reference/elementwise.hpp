// Reference operations on rows: copies, embedding, norms, gates, rotary encoding, initial states.
#pragma once

#include <cmath>
#include <complex>
#include <span>
#include <type_traits>

#include <gyre/core/context.hpp>
#include <gyre/core/random.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

struct reference_elementwise {
  template <class T>
  void fill(matrix_view<T> y, std::type_identity_t<T> value) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = value;
  }
  template <class T>
  void copy(matrix_view<const T> x, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = x[i][j];
  }
  template <class T>
  void add(matrix_view<const T> x, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] += x[i][j];
  }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] += factor[0] * x[i][j];
  }
  static constexpr index add_scaled_backward_workspace(index) { return 0; }
  template <class T>
  void add_scaled_backward(matrix_view<const T> x, const T* factor, matrix_view<const T> dy, matrix_view<T> dx, T* dfactor,
                           T*) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) {
        dx[i][j] += factor[0] * dy[i][j];
        dfactor[0] += x[i][j] * dy[i][j];
      }
  }
  template <class T>
  void gather(matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = x[from[static_cast<std::size_t>(i)]][j];
  }

  template <class T>
  void embed(matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = real_t<T>(scale) * table[ids[static_cast<std::size_t>(i)]][j];
  }
  template <class T>
  void embed_backward(matrix_view<const T> dy, std::span<const token> ids, double scale, matrix_view<T> dtable) {
    for (index i = 0; i < dy.rows; ++i)
      for (index j = 0; j < dy.cols; ++j) dtable[ids[static_cast<std::size_t>(i)]][j] += real_t<T>(scale) * dy[i][j];
  }

  template <class T, class S>
  void rms_norm(matrix_view<const T> x, const T* gain, double eps, matrix_view<T> y, S* rstd) {
    using std::sqrt;
    for (index i = 0; i < x.rows; ++i) {
      S squares(0);
      for (index j = 0; j < x.cols; ++j) squares += S(x[i][j]) * S(x[i][j]);
      rstd[i] = S(1) / sqrt(squares / S(real_t<S>(x.cols)) + S(real_t<S>(eps)));
      for (index j = 0; j < x.cols; ++j) {
        const T unit(S(x[i][j]) * rstd[i]);
        y[i][j] = gain != nullptr ? unit * gain[j] : unit;
      }
    }
  }
  template <class T, class S>
  void add_rms_norm(matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps, matrix_view<T> sum,
                    matrix_view<T> y, S* rstd) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) sum[i][j] = x[i][j] + f[i][j];
    rms_norm<T, S>(sum, gain, eps, y, rstd);
  }
  static constexpr index rms_norm_backward_workspace(index, index) { return 0; }
  template <class T, class S>
  void rms_norm_backward(matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                         T* dgain, T*) {
    for (index i = 0; i < x.rows; ++i) {
      S dot(0);  // of the gradient with the normalised row
      for (index j = 0; j < x.cols; ++j) {
        const S unit = S(x[i][j]) * rstd[i];
        if (dgain != nullptr) dgain[j] += T(S(dy[i][j]) * unit);
        dot += S(dy[i][j]) * (gain != nullptr ? S(gain[j]) : S(1)) * unit;
      }
      dot /= S(real_t<S>(x.cols));
      for (index j = 0; j < x.cols; ++j)
        dx[i][j] += T(rstd[i] * (S(dy[i][j]) * (gain != nullptr ? S(gain[j]) : S(1)) - dot * S(x[i][j]) * rstd[i]));
    }
  }

  template <class T>
  void gated_silu(matrix_view<const T> h, matrix_view<T> a) {
    using std::exp;
    for (index i = 0; i < a.rows; ++i)
      for (index j = 0; j < a.cols; ++j) a[i][j] = h[i][j] / (T(1) + exp(-h[i][j])) * h[i][a.cols + j];
  }
  template <class T>
  void gated_silu_backward(matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
    using std::exp;
    for (index i = 0; i < da.rows; ++i)
      for (index j = 0; j < da.cols; ++j) {
        const T gate = h[i][j], up = h[i][da.cols + j], sigma = T(1) / (T(1) + exp(-gate));
        dh[i][j] = da[i][j] * up * sigma * (T(1) + gate * (T(1) - sigma));
        dh[i][da.cols + j] = da[i][j] * gate * sigma;
      }
  }

  template <class T>
  void rotary(matrix_view<T> x, const T* bias, std::span<const std::int32_t> positions, const T* table, rotary_shape shape) {
    if (bias != nullptr)
      for (index i = 0; i < x.rows; ++i)
        for (index j = 0; j < x.cols; ++j) x[i][j] += bias[j];
    turn(x, positions, table, shape, real_t<T>(1));
  }
  template <class T>
  void rotary_backward(matrix_view<T> dx, std::span<const std::int32_t> positions, const T* table, rotary_shape shape) {
    turn(dx, positions, table, shape, real_t<T>(-1));
  }

  template <class T, class S>
  void row_change(matrix_view<const T> x, matrix_view<const T> before, S* change) {
    using std::sqrt;
    for (index i = 0; i < x.rows; ++i) {
      S moved(0), size(0);
      for (index j = 0; j < x.cols; ++j) {
        const S d = S(x[i][j]) - S(before[i][j]);
        moved += d * d;
        size += S(x[i][j]) * S(x[i][j]);
      }
      change[2 * i] = sqrt(moved);
      change[2 * i + 1] = sqrt(size);
    }
  }

  static constexpr index column_sum_workspace(index, index) { return 0; }
  template <class T>
  void column_sum(matrix_view<const T> x, T* sum, T*) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) sum[j] += x[i][j];
  }

  template <class T>
  void random_normal(matrix_view<T> y, const batch_layout& rows, state_key key, double sigma, bool truncated) {
    const random_stream stream(key.of, purpose::initial_state);
    for (const sequence_span& s : rows.sequences())
      for (index i = 0; i < s.count; ++i)
        for (index j = 0; j < y.cols; ++j) {
          const counter at{static_cast<std::uint32_t>(key.step), static_cast<std::uint32_t>(s.key),
                           static_cast<std::uint32_t>(s.past + i), static_cast<std::uint32_t>(j)};
          const double value = truncated ? stream.truncated_normal(at, sigma) : sigma * stream.normal(at);
          y[s.begin + i][j] = T(static_cast<real_t<T>>(value));
        }
  }
  template <class T>
  void standardise(matrix_view<T> y) {
    using std::sqrt;
    for (index i = 0; i < y.rows; ++i) {
      const real_t<T> n(static_cast<real_t<T>>(y.cols));
      T mean(0), variance(0);
      for (index j = 0; j < y.cols; ++j) mean += y[i][j];
      mean /= n;
      for (index j = 0; j < y.cols; ++j) variance += (y[i][j] - mean) * (y[i][j] - mean);
      const T scale = T(1) / sqrt(variance / n);
      for (index j = 0; j < y.cols; ++j) y[i][j] = (y[i][j] - mean) * scale;
    }
  }

 private:
  template <class T>
  static void turn(matrix_view<T> x, std::span<const std::int32_t> positions, const T* table, rotary_shape shape,
                   real_t<T> sign) {
    const index half = shape.width / 2;
    for (index i = 0; i < x.rows; ++i)
      for (index h = 0; h < shape.heads; ++h)
        for (index j = 0; j < half; ++j) {
          T* first = x[i] + h * shape.width + (shape.pairs == pairing::adjacent ? 2 * j : j);
          T* second = shape.pairs == pairing::adjacent ? first + 1 : first + half;
          const T* entry = table + (positions[static_cast<std::size_t>(i)] * half + j) * 2;
          const T c = entry[0], s = sign * entry[1], a = *first, b = *second;
          *first = a * c - b * s;
          *second = a * s + b * c;
        }
  }
};

}  // namespace detail

GYRE_END
