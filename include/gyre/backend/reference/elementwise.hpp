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

/// y += x, rounded once.
template <class T>
void add_rounded(T& y, const compute_t<T>& x) {
  y = T(compute_t<T>(y) + x);
}

struct reference_elementwise {
  template <class T>
  void fill(matrix_view<T> y, std::type_identity_t<T> value) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = value;
  }
  template <class X, class T>
  void copy(matrix_view<const X> x, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = T(x[i][j]);
  }
  template <class T>
  void add(matrix_view<const T> x, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) add_rounded(y[i][j], compute_t<T>(x[i][j]));
  }
  template <class T>
  void add_scaled(matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) add_rounded(y[i][j], compute_t<T>(factor[0]) * compute_t<T>(x[i][j]));
  }
  static constexpr index add_scaled_backward_workspace(index) { return 0; }
  template <class T, class G>
  void add_scaled_backward(matrix_view<const T> x, const T* factor, matrix_view<const T> dy, matrix_view<T> dx, G* dfactor,
                           G*) {
    using C = compute_t<T>;
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) {
        add_rounded(dx[i][j], C(factor[0]) * C(dy[i][j]));
        dfactor[0] += G(C(x[i][j]) * C(dy[i][j]));
      }
  }
  template <class T>
  void gather(matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = x[from[static_cast<std::size_t>(i)]][j];
  }

  template <class T>
  void embed(matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
    using C = compute_t<T>;
    for (index i = 0; i < y.rows; ++i)
      for (index j = 0; j < y.cols; ++j) y[i][j] = T(real_t<C>(scale) * C(table[ids[static_cast<std::size_t>(i)]][j]));
  }
  template <class T, class G>
  void embed_backward(matrix_view<const T> dy, std::span<const token> ids, double scale, matrix_view<G> dtable) {
    using C = compute_t<T>;
    for (index i = 0; i < dy.rows; ++i)
      for (index j = 0; j < dy.cols; ++j) dtable[ids[static_cast<std::size_t>(i)]][j] += G(real_t<C>(scale) * C(dy[i][j]));
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
        y[i][j] = gain != nullptr ? T(compute_t<T>(unit) * compute_t<T>(gain[j])) : unit;
      }
    }
  }
  template <class T, class S>
  void add_rms_norm(matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps, matrix_view<T> sum,
                    matrix_view<T> y, S* rstd) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) sum[i][j] = T(compute_t<T>(x[i][j]) + compute_t<T>(f[i][j]));
    rms_norm<T, S>(sum, gain, eps, y, rstd);
  }
  static constexpr index rms_norm_backward_workspace(index, index) { return 0; }
  template <class T, class S, class G>
  void rms_norm_backward(matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                         G* dgain, G*) {
    for (index i = 0; i < x.rows; ++i) {
      S dot(0);  // of the gradient with the normalised row
      for (index j = 0; j < x.cols; ++j) {
        const S unit = S(x[i][j]) * rstd[i];
        if (dgain != nullptr) dgain[j] += G(S(dy[i][j]) * unit);
        dot += S(dy[i][j]) * (gain != nullptr ? S(gain[j]) : S(1)) * unit;
      }
      dot /= S(real_t<S>(x.cols));
      for (index j = 0; j < x.cols; ++j)
        add_rounded(dx[i][j],
                    compute_t<T>(rstd[i] * (S(dy[i][j]) * (gain != nullptr ? S(gain[j]) : S(1)) - dot * S(x[i][j]) * rstd[i])));
    }
  }

  template <class T>
  void gated_silu(matrix_view<const T> h, matrix_view<T> a) {
    using std::exp;
    using C = compute_t<T>;
    for (index i = 0; i < a.rows; ++i)
      for (index j = 0; j < a.cols; ++j) {
        const C gate(h[i][j]);
        a[i][j] = T(gate / (C(1) + exp(-gate)) * C(h[i][a.cols + j]));
      }
  }
  template <class T>
  void gated_silu_backward(matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
    using std::exp;
    using C = compute_t<T>;
    for (index i = 0; i < da.rows; ++i)
      for (index j = 0; j < da.cols; ++j) {
        const C gate(h[i][j]), up(h[i][da.cols + j]), d(da[i][j]), sigma = C(1) / (C(1) + exp(-gate));
        dh[i][j] = T(d * up * sigma * (C(1) + gate * (C(1) - sigma)));
        dh[i][da.cols + j] = T(d * gate * sigma);
      }
  }

  template <class T, class S>
  void rotary(matrix_view<T> x, const std::type_identity_t<T>* bias, std::span<const std::int32_t> positions, const S* table,
              rotary_shape shape) {
    turn(x, bias, positions, table, shape, real_t<S>(1));
  }
  template <class T, class S>
  void rotary_backward(matrix_view<T> dx, std::span<const std::int32_t> positions, const S* table, rotary_shape shape) {
    turn<T>(dx, nullptr, positions, table, shape, real_t<S>(-1));
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
  template <class T, class G>
  void column_sum(matrix_view<const T> x, G* sum, G*) {
    for (index i = 0; i < x.rows; ++i)
      for (index j = 0; j < x.cols; ++j) sum[j] += G(x[i][j]);
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
          y[s.begin + i][j] = T(static_cast<real_t<compute_t<T>>>(value));
        }
  }
  template <class T>
  void standardise(matrix_view<T> y) {
    using std::sqrt;
    using C = compute_t<T>;
    for (index i = 0; i < y.rows; ++i) {
      const real_t<C> n(static_cast<real_t<C>>(y.cols));
      C mean(0), variance(0);
      for (index j = 0; j < y.cols; ++j) mean += C(y[i][j]);
      mean /= n;
      for (index j = 0; j < y.cols; ++j) variance += (C(y[i][j]) - mean) * (C(y[i][j]) - mean);
      const C scale = C(1) / sqrt(variance / n);
      for (index j = 0; j < y.cols; ++j) y[i][j] = T((C(y[i][j]) - mean) * scale);
    }
  }

 private:
  template <class T, class S>
  static void turn(matrix_view<T> x, const T* bias, std::span<const std::int32_t> positions, const S* table, rotary_shape shape,
                   real_t<S> sign) {
    using C = compute_t<T>;
    const index half = shape.width / 2;
    for (index i = 0; i < x.rows; ++i)
      for (index h = 0; h < shape.heads; ++h)
        for (index j = 0; j < half; ++j) {
          const bool adjacent = shape.pairs == pairing::adjacent;
          const index first = h * shape.width + (adjacent ? 2 * j : j), second = first + (adjacent ? 1 : half);
          const S* entry = table + (positions[static_cast<std::size_t>(i)] * half + j) * 2;
          const C c(entry[0]), s(sign * entry[1]);
          C a(x[i][first]), b(x[i][second]);
          if (bias != nullptr) a += C(bias[first]), b += C(bias[second]);
          x[i][first] = T(a * c - b * s);
          x[i][second] = T(a * s + b * c);
        }
  }
};

}  // namespace detail

GYRE_END
