// Reference of what concerns the depths of a token: one rotation for all rows, and attention over earlier steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

struct reference_depth {
  template <class T, class S>
  void rotate(matrix_view<T> x, const S* angles, rotary_shape shape, bool back) {
    using C = compute_t<T>;
    const index half = shape.width / 2;
    for (index i = 0; i < x.rows; ++i)
      for (index h = 0; h < shape.heads; ++h)
        for (index j = 0; j < half; ++j) {
          const bool adjacent = shape.pairs == pairing::adjacent;
          T& a = x[i][h * shape.width + (adjacent ? 2 * j : j)];
          T& b = x[i][h * shape.width + (adjacent ? 2 * j + 1 : j + half)];
          const C c(angles[2 * j]), s(back ? -angles[2 * j + 1] : angles[2 * j + 1]), first(a), second(b);
          a = T(first * c - second * s);
          b = T(first * s + second * c);
        }
  }

  template <class T, class S>
  void depth_attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, attention_shape shape,
                       matrix_view<T> o, S* lse) {
    using std::exp, std::log;
    const index tokens = q.rows, slots = tokens > 0 ? k.rows / tokens : 0, d = shape.width;
    std::vector<S> scores(static_cast<std::size_t>(slots)), read(static_cast<std::size_t>(d));
    for (index i = 0; i < tokens; ++i)
      for (index h = 0; h < shape.heads; ++h) {
        const index g = h / (shape.heads / shape.kv_heads);
        T* to = o[i] + h * d;
        std::fill(read.begin(), read.end(), S(0));
        std::fill_n(to, d, T(0));
        lse[i * shape.heads + h] = S(0);
        if (slots == 0) continue;
        real_t<S> top = -std::numeric_limits<real_t<S>>::infinity();
        for (index j = 0; j < slots; ++j) {
          S& s = scores[static_cast<std::size_t>(j)] = S(0);
          for (index c = 0; c < d; ++c) s += S(q[i][h * d + c]) * S(k[j * tokens + i][g * d + c]);
          s *= S(static_cast<real_t<S>>(shape.scale));
          top = (std::max)(top, real_part(s));
        }
        S total(0);
        for (S& s : scores) total += s = exp(s - S(top));
        for (index j = 0; j < slots; ++j)
          for (index c = 0; c < d; ++c)
            read[static_cast<std::size_t>(c)] += scores[static_cast<std::size_t>(j)] / total * S(v[j * tokens + i][g * d + c]);
        for (index c = 0; c < d; ++c) to[c] = T(read[static_cast<std::size_t>(c)]);
        lse[i * shape.heads + h] = log(total) + S(top);
      }
  }
  template <class T, class S>
  void depth_attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                                const S* lse, matrix_view<const T> d_o, attention_shape shape, matrix_view<T> dq,
                                matrix_view<T> dk, matrix_view<T> dv) {
    using std::exp;
    const index tokens = q.rows, slots = tokens > 0 ? k.rows / tokens : 0, d = shape.width;
    const S scale(static_cast<real_t<S>>(shape.scale));
    const index sharing = shape.heads / shape.kv_heads;
    const auto n = [](index count) { return static_cast<std::size_t>(count); };
    std::vector<S> to_q(n(d)), to_k(n(slots * d)), to_v(n(slots * d));  // of one row, and one of its key heads
    for (index i = 0; i < tokens; ++i)
      for (index g = 0; g < shape.kv_heads; ++g) {
        for (index j = 0; j < slots; ++j)
          for (index c = 0; c < d; ++c) {
            to_k[n(j * d + c)] = S(dk[j * tokens + i][g * d + c]);
            to_v[n(j * d + c)] = S(dv[j * tokens + i][g * d + c]);
          }
        for (index h = g * sharing; h < (g + 1) * sharing; ++h) {
          std::fill(to_q.begin(), to_q.end(), S(0));
          S dot(0);  // sum of p * dp, the same for every slot
          for (index c = 0; c < d; ++c) dot += S(d_o[i][h * d + c]) * S(o[i][h * d + c]);
          for (index j = 0; j < slots; ++j) {
            const index at = j * tokens + i;
            S score(0), dp(0);
            for (index c = 0; c < d; ++c) {
              score += S(q[i][h * d + c]) * S(k[at][g * d + c]);
              dp += S(d_o[i][h * d + c]) * S(v[at][g * d + c]);
            }
            const S p = exp(score * scale - lse[i * shape.heads + h]), ds = p * (dp - dot) * scale;
            for (index c = 0; c < d; ++c) {
              to_q[n(c)] += ds * S(k[at][g * d + c]);
              to_k[n(j * d + c)] += ds * S(q[i][h * d + c]);
              to_v[n(j * d + c)] += p * S(d_o[i][h * d + c]);
            }
          }
          for (index c = 0; c < d; ++c) dq[i][h * d + c] = T(to_q[n(c)]);
        }
        for (index j = 0; j < slots; ++j)
          for (index c = 0; c < d; ++c) {
            dk[j * tokens + i][g * d + c] = T(to_k[n(j * d + c)]);
            dv[j * tokens + i][g * d + c] = T(to_v[n(j * d + c)]);
          }
      }
  }
};

}  // namespace detail

GYRE_END
