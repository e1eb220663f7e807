// Mixtures: the branches of one layer of a depth-recurrent model, one after the other or beside each other.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <gyre/compose/chain.hpp>
#include <gyre/compose/normed_state.hpp>
#include <gyre/compose/residual.hpp>

GYRE_BEGIN

// Forms of a mixture (attention_mixtures, section 1). The order and that there are parallel variants is the paper's; the equations
// are ours, with branch_sandwich norms unless with_norms says otherwise.
struct sequential {  // every branch reads what the one before it left
  using placement = branch_sandwich;
  static constexpr bool norm_of_state = false;
};
struct parallel_3 {  // all branches read one normed input
  using placement = branch_sandwich;
  static constexpr bool norm_of_state = false;
};
struct parallel_2 {  // all but the last read one normed input; the last reads what they left
  using placement = branch_sandwich;
  static constexpr bool norm_of_state = false;
};

enum class state_norm : bool { no, yes };

/// Another placement of the norms: branch_sandwich, or pre_norm (no norm of what a branch gives; then initialise output projections
/// by mixture_initialisation<branches>). state_norm::yes norms the new state as well.
template <class Form, norm_placement Placement, state_norm State = state_norm::no>
struct with_norms : Form {
  static_assert(std::is_same_v<Placement, branch_sandwich> || std::is_same_v<Placement, pre_norm>,
                "with_norms: a mixture takes branch_sandwich or pre_norm");
  using placement = Placement;
  static constexpr bool norm_of_state = State == state_norm::yes;
};

namespace detail {

/// Parts of a mixture, which all stand at the mixture's own place in the tree of names.
template <layer... Parts>
struct mixture_parts : chain<Parts...> {
  static constexpr bool is_sequence = false;
  template <class V>
  static constexpr void visit(V& v, const path& at) {
    (Parts::visit(v, at), ...);
  }
};

/// What branches add to the stream from one normed input: y += N_o(branch(x)). Their norms are numbered from FirstNorm.
template <bool NormsBranch, int FirstNorm, class... Branches>
struct branches {  // the end of a list
  static constexpr index parameter_count = 0, cache_width = 0;
  template <class P>
  struct tape {};
  template <class P>
  struct carry {};
  template <class... Arguments>
  static constexpr void visit(Arguments&&...) {}
  template <class... Arguments>
  static void open_carry(Arguments&&...) {}
  template <class... Arguments>
  static void forward(Arguments&&...) {}
  template <class... Arguments>
  static void backward(Arguments&&...) {}
};
template <bool NormsBranch, int FirstNorm, class First, class... Rest>
struct branches<NormsBranch, FirstNorm, First, Rest...> {
  static constexpr int width = First::inputs, inputs = width, outputs = width;
  static_assert(First::inputs == First::outputs, "mixture: a branch must keep the width of the residual stream");
  using norm = gyre::rms_norm<First::shape, gain::learned, width>;
  using rest = branches<NormsBranch, FirstNorm + NormsBranch, Rest...>;
  static constexpr index branch_at = NormsBranch ? norm::parameter_count : 0, rest_at = branch_at + First::parameter_count,
                         parameter_count = rest_at + rest::parameter_count;
  static constexpr index cache_width = gyre::cache_width<First> + rest::cache_width;

  template <class P>
  struct tape {
    tape_t<norm, P> after;
    tape_t<First, P> branch;
    typename rest::template tape<P> others;
  };
  template <class P>
  struct carry {
    carry_t<First, P> branch;
    typename rest::template carry<P> others;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    if constexpr (NormsBranch) norm::visit(v, path{&at, norm_name(FirstNorm)});
    First::visit(v, path{&at, First::name});
    rest::visit(v, at);
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    gyre::open_carry<First>(c, memory, tokens, steps, k.branch);
    rest::open_carry(c, memory, tokens, steps, k.others);
  }

  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    {
      const passing_frame f(c);
      auto out = c.tape.template take_rows<T, width>(x.count);
      forward_through<First>(c, w + branch_at, x, out, t.branch, k.branch);
      rows<const T, width> added = out;
      if constexpr (NormsBranch) {
        auto normed = c.tape.template take_rows<T, width>(x.count);
        norm::forward(c, w, rows<const T, width>(out), normed, t.after);
        added = normed;
      }
      c.device.add(added.view(), y.view());
    }
    rest::forward(c, w + rest_at, x, y, t.others, k.others);
  }
  /// dx, the gradient of the normed input, accumulates.
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k,
                       carry<P>& dk) {
    using T = activation_t<P>;
    rest::backward(c, w + rest_at, dw + rest_at, t.others, dy, dx, k.others, dk.others);
    frame f(c.scratch);
    rows<const T, width> d_out = dy;
    if constexpr (NormsBranch) {
      auto d = c.scratch.template take_rows<T, width>(dy.count);
      c.device.fill(d.view(), T(0));
      norm::backward(c, w, dw, t.after, dy, d);
      d_out = d;
    }
    backward_through<First>(c, w + branch_at, dw + branch_at, t.branch, d_out, dx, k.branch, dk.branch);
  }
};
/// x = N_i(h), read by all branches; y = h + sum of what they give.
template <norm_placement Placement, layer... Branches>
struct beside {
  using first = std::tuple_element_t<0, std::tuple<Branches...>>;
  static constexpr int width = first::inputs, inputs = width, outputs = width;
  using norm = gyre::rms_norm<first::shape, gain::learned, width>;
  using list = branches<std::is_same_v<Placement, branch_sandwich>, 2, Branches...>;
  static constexpr index list_at = norm::parameter_count, parameter_count = list_at + list::parameter_count;
  static constexpr index cache_width = list::cache_width;
  static constexpr int norms = 1 + (std::is_same_v<Placement, branch_sandwich> ? static_cast<int>(sizeof...(Branches)) : 0);

  template <class P>
  struct tape {
    tape_t<norm, P> before;
    typename list::template tape<P> branches;
  };
  template <class P>
  struct carry {
    typename list::template carry<P> branches;
  };

  template <class V>
  static constexpr void visit(V& v, const path& at) {
    norm::visit(v, path{&at, norm_name(1)});
    list::visit(v, at);
  }
  template <class B, class P>
  static void open_carry(context<B, P>& c, arena& memory, index tokens, int steps, carry<P>& k) {
    list::open_carry(c, memory, tokens, steps, k.branches);
  }
  template <class B, class P>
  static void forward(context<B, P>& c, weights<B, P> w, rows<const activation_t<P>, width> x, rows<activation_t<P>, width> y,
                      tape<P>& t, carry<P>& k) {
    using T = activation_t<P>;
    auto normed = c.tape.template take_rows<T, width>(x.count);
    norm::forward(c, w, x, normed, t.before);
    c.device.copy(x.view(), y.view());
    list::forward(c, w + list_at, rows<const T, width>(normed), y, t.branches, k.branches);
  }
  template <class B, class P>
  static void backward(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, const tape<P>& t,
                       rows<const activation_t<P>, width> dy, rows<activation_t<P>, width> dx, const carry<P>& k,
                       carry<P>& dk) {
    using T = activation_t<P>;
    frame f(c.scratch);
    auto d_normed = c.scratch.template take_rows<T, width>(dy.count);
    c.device.fill(d_normed.view(), T(0));
    list::backward(c, w + list_at, dw + list_at, t.branches, dy, d_normed, k.branches, dk.branches);
    c.device.add(dy.view(), dx.view());
    norm::backward(c, w, dw, t.before, rows<const T, width>(d_normed), dx);
  }
};

/// Sequential: residual branches, their norms numbered through the mixture.
template <class Placement, class Numbers, layer... Branches>
struct in_order;
template <class Placement, int... I, layer... Branches>
struct in_order<Placement, std::integer_sequence<int, I...>, Branches...> {
  using type = mixture_parts<residual<Placement, Branches, gain::learned, 1 + I * Placement::norms>...>;
};

/// All but the last beside each other, then the last.
template <class Placement, class Before, layer... Branches>
struct last_apart;
template <class Placement, class... Before, layer Last>
struct last_apart<Placement, std::tuple<Before...>, Last> {
  using first = beside<Placement, Before...>;
  using type = mixture_parts<first, residual<Placement, Last, gain::learned, 1 + first::norms>>;
};
template <class Placement, class... Before, layer First, layer Second, layer... Rest>
struct last_apart<Placement, std::tuple<Before...>, First, Second, Rest...>
    : last_apart<Placement, std::tuple<Before..., First>, Second, Rest...> {};

template <class Form, layer... Branches>
struct mixture_body {
  using placement = typename Form::placement;
  static constexpr bool in_sequence = std::is_base_of_v<sequential, Form>, all_beside = std::is_base_of_v<parallel_3, Form>,
                        two_stages = std::is_base_of_v<parallel_2, Form>;
  static_assert(in_sequence || all_beside || two_stages, "mixture: the form must be sequential, parallel_3 or parallel_2");
  static_assert(!two_stages || sizeof...(Branches) >= 2, "mixture: parallel_2 needs at least two branches");
  static constexpr auto pick() {
    if constexpr (in_sequence)
      return typename in_order<placement, std::make_integer_sequence<int, static_cast<int>(sizeof...(Branches))>,
                               Branches...>::type{};
    else if constexpr (all_beside)
      return beside<placement, Branches...>{};
    else
      return typename last_apart<placement, std::tuple<>, Branches...>::type{};
  }
  using type = decltype(pick());
};

template <class Form, layer First, layer... Rest>
struct mixture_layer {
  static_assert(sizeof...(Rest) < 4, "mixture: one to four branches");
  static_assert(((First::inputs == Rest::inputs && First::outputs == Rest::outputs) && ... &&
                 (First::inputs == First::outputs)),
                "mixture: all branches must keep the width of the residual stream");
  using body = typename mixture_body<Form, First, Rest...>::type;
  using type = std::conditional_t<Form::norm_of_state, normed_state<body, First::shape>, body>;
};

/// Whether no two branches have the same name.
template <class... Branches>
consteval bool names_differ() {
  constexpr std::string_view names[] = {Branches::name...};
  for (std::size_t i = 0; i < sizeof...(Branches); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (names[i] == names[j]) return false;
  return true;
}

}  // namespace detail

/// One layer of a depth-recurrent attention mixture, for instance
///   mixture<sequential, depth_attention<D>, sequence_attention<D>, expert_attention<D, experts{.count = 64, .active = 4}>>
/// It owns its norms; nothing wraps it in another pair. With weights shared over depth it is the body of a recurrence; a stack of it
/// is the layered baseline.
template <class Form, layer... Branches>
struct mixture : detail::mixture_layer<Form, Branches...>::type {
  static_assert(detail::names_differ<Branches...>(), "mixture: two branches of one kind would share their tensors' names");
  static constexpr int layers = 1;
  /// Branches that add to the stream without a norm of what they give: what mixture_initialisation takes.
  static constexpr int unnormed_branches =
      std::is_same_v<typename Form::placement, pre_norm> ? static_cast<int>(sizeof...(Branches)) : 0;
};

GYRE_END
