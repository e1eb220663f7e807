// The protocol of layers: what a layer is, and how combinators call one.
//
// A layer is an EMPTY type that describes; it owns no data, so the same weights can run any number of times. It has
//   static constexpr int inputs, outputs;          widths
//   static constexpr index parameter_count;        scalars in the flat buffers
//   template <class V> static constexpr void visit(V&, const path&);          names its tensors, in the order of the buffer
//   template <class P> struct tape;                trivially copyable: what backward needs, views into the tape arena
//   forward(context&, weights, rows<const T, inputs> x, rows<T, outputs> y, tape&)              assigns y
//   backward(context&, weights, gradient* dw, const tape&, rows<const T, outputs> dy, rows<T, inputs> dx)
//                                                  dx and dw accumulate
// and, if it needs them,
//   template <class P> struct carry;               memory shared by the steps of a recurrence (depth attention: a slot a step)
//     open_carry(context&, arena&, index tokens, int steps, carry&)           takes it, zeroed; the gradient's carry likewise
//     forward and backward then take (…, carry&) and (…, const carry&, carry& gradient) as last arguments
//   static constexpr index cache_width;            scalars a token that it keeps in a generator's cache
//   static constexpr bool takes_groups = true;     forward and backward take group_weights too; then backward_assigns holds, and
//                                                  all parameters are matrices of layers that take groups
//   static constexpr bool backward_assigns = true; backward has a last argument `bool accumulate`; false: assigns dx
//   static constexpr int layers;                   of a combinator: the layers of the model that it consists of; 1 without it
#pragma once

#include <concepts>
#include <type_traits>

#include <gyre/core/context.hpp>

GYRE_BEGIN

template <class L>
concept layer = std::is_empty_v<L> && requires {
  { L::inputs } -> std::convertible_to<int>;
  { L::outputs } -> std::convertible_to<int>;
  { L::parameter_count } -> std::convertible_to<index>;
  typename L::template tape<fp64>;
};

/// The carry of layers that have none.
struct no_carry {};

namespace detail {

template <class L, class P>
concept carries = requires {
  typename L::template carry<P>;
};

template <class L, class P>
struct carry_of {
  using type = no_carry;
};
template <class L, class P>
requires carries<L, P>
struct carry_of<L, P> {
  using type = typename L::template carry<P>;
};

template <class L>
inline constexpr bool takes_groups = [] {
  if constexpr (requires { L::takes_groups; }) return bool{L::takes_groups};
  return false;
}();
template <class L>
inline constexpr bool backward_assigns = [] {
  if constexpr (requires { L::backward_assigns; }) return bool{L::backward_assigns};
  return false;
}();

/// Layers of the model that L consists of: what the initialisation counts.
template <class L>
consteval int layers_in() {
  if constexpr (requires { L::layers; })
    return L::layers;
  else
    return 1;
}

template <class L>
consteval index cache_width_of() {
  if constexpr (requires { L::cache_width; })
    return L::cache_width;
  else
    return 0;
}

}  // namespace detail

template <class L, class P>
using tape_t = typename L::template tape<P>;
template <class L, class P>
using carry_t = typename detail::carry_of<L, P>::type;
/// Scalars a token that one execution of the layer keeps in a cache.
template <class L>
inline constexpr index cache_width = detail::cache_width_of<L>();

template <layer L, class B, class P>
void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry_t<L, P>& carry) {
  if constexpr (detail::carries<L, P>)
    L::open_carry(c, memory, tokens, steps, carry);
  else
    (void)c, (void)memory, (void)tokens, (void)steps, (void)carry;
}

template <layer L, class B, class P, int In, int Out>
void forward_through(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, In> x, rows<activation_t<P>, Out> y,
                     tape_t<L, P>& tape, carry_t<L, P>& carry) {
  static_assert(In == L::inputs && Out == L::outputs, "forward_through: the rows do not have the widths of the layer");
  if constexpr (detail::carries<L, P>)
    L::forward(c, w, x, y, tape, carry);
  else
    (void)carry, L::forward(c, w, x, y, tape);
}

/// `accumulate` false: dx is assigned, its old content is not read.
template <layer L, class B, class P, int In, int Out>
void backward_through(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape_t<L, P>& tape,
                      rows<const activation_t<P>, Out> dy, rows<activation_t<P>, In> dx, const carry_t<L, P>& carry,
                      carry_t<L, P>& carry_gradient, bool accumulate = true) {
  static_assert(In == L::inputs && Out == L::outputs, "backward_through: the rows do not have the widths of the layer");
  const auto call = [&](auto... more) {
    if constexpr (detail::carries<L, P>)
      L::backward(c, w, dw, tape, dy, dx, carry, carry_gradient, more...);
    else
      (void)carry, (void)carry_gradient, L::backward(c, w, dw, tape, dy, dx, more...);
  };
  if constexpr (detail::backward_assigns<L>) {
    call(accumulate);
  } else {
    if (!accumulate) c.device.fill(dx.view(), activation_t<P>(0));
    call();
  }
}

GYRE_END
