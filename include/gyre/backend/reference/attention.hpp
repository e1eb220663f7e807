// Reference sequence attention: scores, softmax and values written out, one query at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <vector>

#include <gyre/core/context.hpp>
#include <gyre/ops/shapes.hpp>

GYRE_BEGIN

namespace detail {

struct reference_attention {
  template <class T, class S>
  void attention(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                 attention_shape shape, matrix_view<T> o, S* lse) {
    std::vector<S> p;
    for (const sequence_span& s : layout.sequences())
      for (index i = 0; i < s.count; ++i)
        for (index h = 0; h < shape.heads; ++h) {
          const index g = h / (shape.heads / shape.kv_heads);
          p.assign(static_cast<std::size_t>(i + 1), S(0));
          const auto key = [&](index j) { return k[s.begin + j] + g * shape.width; };
          const auto value = [&](index j) { return v[s.begin + j] + g * shape.width; };
          const S total = read(q[s.begin + i] + h * shape.width, i + 1, key, value, shape, o[s.begin + i] + h * shape.width, p,
                               [](index) { return true; });
          if (lse != nullptr) lse[(s.begin + i) * shape.heads + h] = total;
        }
  }

  static constexpr index attention_backward_workspace(index, attention_shape) { return 0; }
  template <class T, class S>
  void attention_backward(matrix_view<const T> q, matrix_view<const T> k, matrix_view<const T> v, matrix_view<const T> o,
                          const S* lse, matrix_view<const T> d_o, const batch_layout& layout, attention_shape shape,
                          matrix_view<T> dq, matrix_view<T> dk, matrix_view<T> dv, S*) {
    using std::exp;
    sums<S> to_q(dq), to_k(dk), to_v(dv);
    const S scale(static_cast<real_t<S>>(shape.scale));
    const index d = shape.width;
    for (const sequence_span& s : layout.sequences())
      for (index h = 0; h < shape.heads; ++h) {
        const index g = h / (shape.heads / shape.kv_heads);
        for (index i = s.begin; i < s.begin + s.count; ++i) {
          S dot(0);  // sum of p * dp, the same for every key
          for (index c = 0; c < d; ++c) dot += S(d_o[i][h * d + c]) * S(o[i][h * d + c]);
          for (index j = s.begin; j <= i; ++j) {
            S score(0), dp(0);
            for (index c = 0; c < d; ++c) {
              score += S(q[i][h * d + c]) * S(k[j][g * d + c]);
              dp += S(d_o[i][h * d + c]) * S(v[j][g * d + c]);
            }
            const S exact = exp(score * scale - lse[i * shape.heads + h]);
            const S p = may_round<T>(exact), ds = may_round<T>(exact * (dp - dot) * scale);
            for (index c = 0; c < d; ++c) {
              to_q(i, h * d + c) += ds * S(k[j][g * d + c]);
              to_k(j, g * d + c) += ds * S(q[i][h * d + c]);
              to_v(j, g * d + c) += p * S(d_o[i][h * d + c]);
            }
          }
        }
      }
    to_q.round_to(dq), to_k.round_to(dk), to_v.round_to(dv);
  }

  template <class T>
  void cache_append(matrix_view<const T> k, matrix_view<const T> v, const batch_layout& layout,
                    std::span<const cache_lane<T>> lanes, index cursor) {
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const cache_lane<T>& lane = lanes[number++];
      T* keys = lane.base + cursor * lane.capacity;
      T* values = keys + k.cols * lane.capacity;
      for (index i = 0; i < s.count; ++i)
        for (index c = 0; c < k.cols; ++c) {
          keys[(s.past + i) * k.cols + c] = k[s.begin + i][c];
          values[(s.past + i) * k.cols + c] = v[s.begin + i][c];
        }
    }
  }
  template <class T>
  void cached_attention(matrix_view<const T> q, const batch_layout& layout, std::span<const cache_lane<T>> lanes, index cursor,
                        attention_shape shape, int step, matrix_view<T> o) {
    const index width = shape.kv_heads * shape.width;
    std::vector<compute_t<T>> p;
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const cache_lane<T>& lane = lanes[number++];
      const T* keys = lane.base + cursor * lane.capacity;
      const T* values = keys + width * lane.capacity;
      for (index i = 0; i < s.count; ++i)
        for (index h = 0; h < shape.heads; ++h) {
          const index g = h / (shape.heads / shape.kv_heads), length = s.past + i + 1;
          p.assign(static_cast<std::size_t>(length), compute_t<T>(0));
          const auto visible = [&](index j) { return j >= s.past || lane.steps_run == nullptr || lane.steps_run[j] > step; };
          read(
              q[s.begin + i] + h * shape.width, length, [&](index j) { return keys + j * width + g * shape.width; },
              [&](index j) { return values + j * width + g * shape.width; }, shape, o[s.begin + i] + h * shape.width, p,
              visible);
        }
    }
  }

  template <class T>
  void cache_extend(const batch_layout& layout, std::span<const cache_lane<T>> lanes, std::span<const std::int32_t> copies,
                    index cursor, std::span<const index> blocks, index stride) {
    std::size_t number = 0;
    for (const sequence_span& s : layout.sequences()) {
      const cache_lane<T>& lane = lanes[number];
      const int last = copies[number++];
      index block = cursor;
      for (const index width : blocks) {
        const T* from = lane.base + block * lane.capacity + s.past * width;
        for (int n = 1; n <= last; ++n)
          std::copy_n(from, s.count * width, lane.base + (block + n * stride) * lane.capacity + s.past * width);
        block += width;
      }
    }
  }

 private:
  /// Sums of the size of a matrix, which are rounded once they are complete.
  template <class S>
  class sums {
   public:
    template <class T>
    explicit sums(matrix_view<T> like) : all_(static_cast<std::size_t>(like.size()), S(0)), cols_(like.cols) {}
    S& operator()(index row, index col) { return all_[static_cast<std::size_t>(row * cols_ + col)]; }
    template <class T>
    void round_to(matrix_view<T> y) {
      for (index i = 0; i < y.rows; ++i)
        for (index j = 0; j < y.cols; ++j) y[i][j] = T((*this)(i, j));
    }

   private:
    std::vector<S> all_;
    index cols_;
  };

  /// One query over `length` keys; returns the log-sum-exp of its scores.
  template <class T, class S, class Key, class Value, class Visible>
  static S read(const T* q, index length, Key key, Value value, attention_shape shape, T* o, std::vector<S>& p,
                Visible visible) {
    using std::exp, std::log;
    real_t<S> top = -std::numeric_limits<real_t<S>>::infinity();
    const auto at = [](index j) { return static_cast<std::size_t>(j); };
    for (index j = 0; j < length; ++j) {
      if (!visible(j)) continue;
      S score(0);
      for (index c = 0; c < shape.width; ++c) score += S(q[c]) * S(key(j)[c]);
      p[at(j)] = score * S(static_cast<real_t<S>>(shape.scale));
      top = (std::max)(top, real_part(p[at(j)]));
    }
    S sum(0);
    for (index j = 0; j < length; ++j) {
      p[at(j)] = visible(j) ? exp(p[at(j)] - S(top)) : S(0);
      sum += p[at(j)];
    }
    for (S& weight : p) weight = may_round<T>(weight);  // their sum is of weights that are not rounded
    for (index c = 0; c < shape.width; ++c) {
      S total(0);
      for (index j = 0; j < length; ++j)
        if (visible(j)) total += p[at(j)] * S(value(j)[c]);
      o[c] = T(total / sum);
    }
    return log(sum) + S(top);
  }
};

}  // namespace detail

GYRE_END
