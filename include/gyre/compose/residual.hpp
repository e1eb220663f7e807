// Residual branches and blocks: the five places where published models put their norms.
#pragma once

#include <string_view>

#include <gyre/compose/chain.hpp>
#include <gyre/core/concepts.hpp>
#include <gyre/layers/rms_norm.hpp>

GYRE_BEGIN

// Norm placements, by the names of recurrent_depth, section 1. Each branch has `norms` norms.
struct pre_norm {  // x + f(n x)
  static constexpr int norms = 1;
};
struct sandwich {  // n'(x + f(n x)): the second norm is on the sum
  static constexpr int norms = 2;
};
struct branch_sandwich {  // x + n'(f(n x))
  static constexpr int norms = 2;
};
struct branch_post_norm {  // x + n(f x)
  static constexpr int norms = 1;
};
struct post_norm {  // n(x + f x)
  static constexpr int norms = 1;
};

template <class T>
concept norm_placement = std::is_empty_v<T> && requires {
  { T::norms } -> std::convertible_to<int>;
};

namespace detail {
/// What the norms of a layer are called, from 1.
constexpr std::string_view norm_name(int number) {
  constexpr std::string_view names[] = {"norm_1", "norm_2", "norm_3", "norm_4", "norm_5",
                                        "norm_6", "norm_7", "norm_8", "norm_9"};
  return names[number - 1];
}
}  // namespace detail

/// One branch f around the residual stream. Its norms are named norm_<FirstNorm> and norm_<FirstNorm + 1>.
template <norm_placement Placement, layer Branch, gain Gain = gain::learned, int FirstNorm = 1>
struct residual {
  static_assert(Branch::inputs == Branch::outputs, "residual: a branch must keep the width of the residual stream");
  static constexpr int width = Branch::inputs, inputs = width, outputs = width;
  using norm = rms_norm<Branch::shape, Gain, width>;
  static constexpr bool norm_first = !std::is_same_v<Placement, branch_post_norm> && !std::is_same_v<Placement, post_norm>;
  static constexpr bool norm_of_sum = std::is_same_v<Placement, sandwich> || std::is_same_v<Placement, post_norm>;
  static constexpr bool norm_of_branch =
      std::is_same_v<Placement, branch_sandwich> || std::is_same_v<Placement, branch_post_norm>;
  static_assert(norm_first + norm_of_sum + norm_of_branch == Placement::norms, "residual: unknown norm placement");
  static constexpr index before = 0, after = norm_first ? norm::parameter_count : 0;  // places of the norms
  static constexpr index branch = Placement::norms * norm::parameter_count;
  static constexpr index parameter_count = branch + Branch::parameter_count;
  static constexpr index cache_width = gyre::cache_width<Branch>;
  static constexpr bool backward_assigns = true;

  template <class P>
  struct tape {
    tape_t<norm, P> before, after;
    tape_t<Branch, P> branch;
  };
  template <class P>
  struct carry {
    carry_t<Branch, P> branch;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    for (int i = 0; i < Placement::norms; ++i) norm::visit(v, path{&at, detail::norm_name(FirstNorm + i)});
    Branch::visit(v, path{&at, Branch::name});
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    gyre::open_carry<Branch>(c, memory, tokens, steps, k.branch);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    rows<const T, width> into = x;
    if constexpr (norm_first) {
      auto normed = c.tape.template take_rows<T, width>(x.count);
      norm::forward(c, w + before, x, normed, t.before);
      into = normed;
    }
    if constexpr (Placement::norms == 1 && norm_first) {
      forward_through<Branch>(c, w + branch, into, y, t.branch, k.branch);
      c.device.add(x.view(), y.view());
    } else {
      auto out = c.tape.template take_rows<T, width>(x.count);
      forward_through<Branch>(c, w + branch, into, out, t.branch, k.branch);
      if constexpr (norm_of_sum) {
        norm::forward_of_sum(c, w + after, x, rows<const T, width>(out), out, y, t.after);
      } else {
        norm::forward(c, w + after, rows<const T, width>(out), y, t.after);
        c.device.add(x.view(), y.view());
      }
    }
  }

  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k, carry<P>& dk,
                       bool accumulate = true) {
    using T = activation_t<P>;
    frame f(c.scratch);
    const auto zeroed = [&] {
      auto r = c.scratch.template take_rows<T, width>(dy.count);
      c.device.fill(r.view(), T(0));
      return r;
    };
    rows<const T, width> d_out = dy;     // gradient of what the branch gives
    rows<const T, width> d_stream = dy;  // gradient that goes past the branch
    if constexpr (norm_of_sum || norm_of_branch) {
      auto d = zeroed();
      norm::backward(c, w + after, dw + after, t.after, dy, d);
      d_out = d;
      if constexpr (norm_of_sum) d_stream = d;
    }
    if (accumulate)
      c.device.add(d_stream.view(), dx.view());
    else
      c.device.copy(d_stream.view(), dx.view());
    if constexpr (norm_first) {
      auto d_normed = c.scratch.template take_rows<T, width>(dy.count);
      backward_through<Branch>(c, w + branch, dw + branch, t.branch, d_out, d_normed, k.branch, dk.branch, false);
      norm::backward(c, w + before, dw + before, t.before, rows<const T, width>(d_normed), dx);
    } else {
      backward_through<Branch>(c, w + branch, dw + branch, t.branch, d_out, dx, k.branch, dk.branch);
    }
  }
};

/// A transformer block: attention, then MLP, each in a residual branch. A chain whose norms are numbered through the block, as the
/// published checkpoints do.
template <norm_placement Placement, layer Attention, layer Mlp, gain Gain = gain::learned>
struct block : chain<residual<Placement, Attention, Gain, 1>, residual<Placement, Mlp, Gain, 1 + Placement::norms>> {
  static_assert(Attention::outputs == Mlp::inputs, "block: attention and MLP must have the same width");
  static constexpr bool is_sequence = false;
  static constexpr int layers = 1;

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    residual<Placement, Attention, Gain, 1>::visit(v, at);
    residual<Placement, Mlp, Gain, 1 + Placement::norms>::visit(v, at);
  }
};

template <layer Attention, layer Mlp, gain Gain = gain::learned>
struct sandwich_block : block<sandwich, Attention, Mlp, Gain> {};
template <layer Attention, layer Mlp, gain Gain = gain::learned>
struct pre_norm_block : block<pre_norm, Attention, Mlp, Gain> {};
template <layer Attention, layer Mlp, gain Gain = gain::learned>
struct branch_sandwich_block : block<branch_sandwich, Attention, Mlp, Gain> {};
template <layer Attention, layer Mlp, gain Gain = gain::learned>
struct branch_post_norm_block : block<branch_post_norm, Attention, Mlp, Gain> {};
template <layer Attention, layer Mlp, gain Gain = gain::learned>
struct post_norm_block : block<post_norm, Attention, Mlp, Gain> {};

GYRE_END
