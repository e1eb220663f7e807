// Sequence attention of the `cpu` backend against the reference in long double, with the errors that rounding may make.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"
#include "support/sanitized.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own

using gyre::attention_shape;
using gyre::batch_layout;
using gyre::cpu;
using gyre::reference;
using gyre::sequence_span;
using exact = long double;

struct heads_case {
  index heads, kv_heads, width;
};
inline attention_shape shape_of(heads_case h) {
  return {h.heads, h.kv_heads, h.width, 1 / std::sqrt(static_cast<double>(h.width))};
}

template <class T>
struct operands {
  grid<T> q, k, v;
  operands(index rows, heads_case h, std::uint64_t number, double spread = 1)
      : q(random_grid<T>(rows, h.heads * h.width, number, spread)),
        k(random_grid<T>(rows, h.kv_heads * h.width, number + 1, spread)),
        v(random_grid<T>(rows, h.kv_heads * h.width, number + 2)) {}
};

/// The error that an element of the output may have: a score of d products has 2 d eps sum |q k| scale, so a weight has that as
/// its relative error and twice it after the division by their sum; the sum over n values adds 2 n eps, the exponential and
/// the divisions a few eps more. All of it times sum p |v|, which `size` holds.
template <class T>
auto output_limit(const batch_layout& layout, heads_case h, const grid<exact>& q, const grid<exact>& k,
                  const grid<exact>& size) {
  auto factors = std::make_shared<grid<exact>>(layout.rows(), h.heads);
  for (const sequence_span& s : layout.sequences())
    for (index i = 0; i < s.count; ++i)
      for (index head = 0; head < h.heads; ++head) {
        const index g = head / (h.heads / h.kv_heads);
        exact most = 0;
        for (index j = 0; j <= i; ++j) {
          exact dot = 0;
          for (index c = 0; c < h.width; ++c)
            dot += std::fabs(q[s.begin + i][head * h.width + c] * k[s.begin + j][g * h.width + c]);
          most = std::max(most, dot / std::sqrt(static_cast<exact>(h.width)));
        }
        (*factors)[s.begin + i][head] =
            (4 * static_cast<exact>(h.width + 2) * most + 2 * static_cast<exact>(i + 1) + 24) * epsilon<T>;
      }
  return [=, &size](index i, index j) { return (*factors)[i][j / h.width] * size[i][j]; };
}

/// The forward pass of a batch against the reference.
template <class T>
void check_attention(heads_case h, const batch_layout& layout, double spread) {
  CAPTURE(h.heads, h.kv_heads, h.width, spread);
  cpu b(2);
  const operands<T> x(layout.rows(), h, 1, spread);
  const grid<exact> q = x.q.template as<exact>(), k = x.k.template as<exact>();
  grid<T> o(layout.rows(), h.heads * h.width), lse(layout.rows(), h.heads, 0);
  grid<exact> o_want(layout.rows(), h.heads * h.width), size(layout.rows(), h.heads * h.width),
      lse_want(layout.rows(), h.heads, 0), again(layout.rows(), h.heads, 0);
  b.attention(x.q.read(), x.k.read(), x.v.read(), layout, shape_of(h), o.view(), lse.data());
  reference().attention(q.read(), k.read(), x.v.template as<exact>().read(), layout, shape_of(h), o_want.view(),
                        lse_want.data());
  reference().attention(q.read(), k.read(), x.v.absolute().template as<exact>().read(), layout, shape_of(h), size.view(),
                        again.data());
  const auto limit = output_limit<T>(layout, h, q, k, size);
  CHECK(differences(o.read(), o_want.view(), limit) == "");
  CHECK(differences(lse.read(), lse_want.view(), [&](index i, index head) {
          // The relative error of the sum, and the rounding of the result and of the maximum.
          return limit(i, head * h.width) / size[i][head * h.width] +
                 8 * epsilon<T> * (std::fabs(lse_want[i][head]) + 8 * spread * spread);
        }) == "");
  CHECK(o.margins_intact());
  CHECK(lse.margins_intact());
}

/// The gradient of a batch against the reference's, and against each sequence alone.
template <class T>
void check_attention_gradient(heads_case h, const batch_layout& layout) {
  CAPTURE(h.heads, h.kv_heads, h.width);
  cpu b(2);
  const attention_shape shape = shape_of(h);
  const index rows = layout.rows(), wide = h.heads * h.width, narrow = h.kv_heads * h.width, sharing = h.heads / h.kv_heads;
  const auto q = random_grid<T>(rows, wide, 1, 2), k = random_grid<T>(rows, narrow, 2), v = random_grid<T>(rows, narrow, 3),
             d_o = random_grid<T>(rows, wide, 4);
  grid<T> o(rows, wide), lse(rows, h.heads, 0), dq(rows, wide), dk(rows, narrow), dv(rows, narrow);
  b.attention(q.read(), k.read(), v.read(), layout, shape, o.view(), lse.data());
  grid<T> workspace(1, cpu::attention_backward_workspace(rows, shape));
  b.attention_backward(q.read(), k.read(), v.read(), o.read(), static_cast<const T*>(lse.data()), d_o.read(), layout, shape,
                       dq.view(), dk.view(), dv.view(), workspace.data());

  // The reference from the same rounded o and log-sum-exp.
  const auto qe = q.template as<exact>(), ke = k.template as<exact>(), ve = v.template as<exact>(), oe = o.template as<exact>(),
             lse_e = lse.template as<exact>(), de = d_o.template as<exact>();
  grid<exact> dq_want(rows, wide), dk_want(rows, narrow), dv_want(rows, narrow);
  reference().attention_backward(qe.read(), ke.read(), ve.read(), oe.read(), static_cast<const exact*>(lse_e.data()), de.read(),
                                 layout, shape, dq_want.view(), dk_want.view(), dv_want.view(), static_cast<exact*>(nullptr));

  // A weight p = exp(s - lse) is off by the errors of its argument, a score gradient p (dp - dot) scale also by those of its
  // two sums of d products; then the results are sums over queries or keys.
  grid<exact> dq_limit(rows, wide), dk_limit(rows, narrow), dv_limit(rows, narrow);
  for (grid<exact>* g : {&dq_limit, &dk_limit, &dv_limit}) reference().fill(g->view(), exact(0));
  const exact d = static_cast<exact>(h.width), scale = static_cast<exact>(shape.scale);
  for (const sequence_span& s : layout.sequences())
    for (index head = 0; head < h.heads; ++head)
      for (index i = s.begin; i < s.begin + s.count; ++i)
        for (index j = s.begin; j <= i; ++j) {
          const index at = head * h.width, kv = head / sharing * h.width;
          exact score = 0, score_size = 0, dp = 0, dot = 0;
          for (index c = 0; c < h.width; ++c) {
            score += qe[i][at + c] * ke[j][kv + c], score_size += std::fabs(qe[i][at + c] * ke[j][kv + c]);
            dp += std::fabs(de[i][at + c] * ve[j][kv + c]), dot += std::fabs(de[i][at + c] * oe[i][at + c]);
          }
          const exact p = std::exp(score * scale - lse_e[i][head]), terms = 2 * static_cast<exact>(s.count * sharing);
          const exact p_error = (2 * d * score_size * scale + std::fabs(lse_e[i][head]) + 8 + terms) * epsilon<T> * p;
          const exact ds_error = (p_error + (2 * d + 8 + terms) * epsilon<T> * p) * (dp + dot) * scale;
          for (index c = 0; c < h.width; ++c) {
            dq_limit[i][at + c] += ds_error * std::fabs(ke[j][kv + c]);
            dk_limit[j][kv + c] += ds_error * std::fabs(qe[i][at + c]);
            dv_limit[j][kv + c] += p_error * std::fabs(de[i][at + c]);
          }
        }
  const auto within = [](const grid<exact>& limit) {
    return [&limit](index i, index j) { return limit[i][j] + std::numeric_limits<T>::min(); };
  };
  CHECK(differences(dq.read(), dq_want.view(), within(dq_limit)) == "");
  CHECK(differences(dk.read(), dk_want.view(), within(dk_limit)) == "");
  CHECK(differences(dv.read(), dv_want.view(), within(dv_limit)) == "");
  CHECK(dq.margins_intact());
  CHECK(dk.margins_intact());
  CHECK(dv.margins_intact());

  // Each sequence alone: the same bits.
  for (const sequence_span& s : layout.sequences()) {
    const auto part = [&](const auto& x) { return x.read().slice(s.begin, s.count); };
    grid<T> dq_alone(s.count, wide), dk_alone(s.count, narrow), dv_alone(s.count, narrow);
    const T* lse_part = lse.data() + s.begin * h.heads;
    b.attention_backward(part(q), part(k), part(v), part(o), lse_part, part(d_o), ragged({s.count}), shape, dq_alone.view(),
                         dk_alone.view(), dv_alone.view(), workspace.data());
    CHECK(bit_differences(dq_alone.read(), part(dq)) == "");
    CHECK(bit_differences(dk_alone.read(), part(dk)) == "");
    CHECK(bit_differences(dv_alone.read(), part(dv)) == "");
  }
}

}  // namespace gyre_test
