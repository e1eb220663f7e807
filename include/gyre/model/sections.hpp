// The sections that a model is written with: prelude, recurrent, coda, and the rules of embedding, head and last norm.
#pragma once

#include <gyre/compose/recurrent.hpp>
#include <gyre/layers/rms_norm.hpp>
#include <gyre/policy/initialisation.hpp>

GYRE_BEGIN

/// Layers before the loop: e = prelude(embedded tokens).
template <layer Layers>
struct prelude {
  using layers = typename detail::as_sequence<Layers>::type;
};
/// Layers after the loop.
template <layer Layers>
struct coda {
  using layers = typename detail::as_sequence<Layers>::type;
};

/// Rules of embedding, head and n_c, the norm after the loop and before the head.
struct model_options {
  bool tied_head = true;            // the head is the embedding
  double embedding_scale = 0;       // gamma; 0: sqrt(width)
  gain final_gain = gain::learned;  // n_c's
  constexpr bool operator==(const model_options&) const = default;
};
template <model_options O>
struct options {
  static constexpr model_options value = O;
};

/// Chooses the initialisation of parameters.
template <initialisation_scheme Scheme>
struct initialised {
  using scheme = Scheme;
};

namespace detail {

/// Stands for an absent section; the model skips it.
struct absent {
  struct layers {
    static constexpr index parameter_count = 0, cache_width = 0;
    template <class P>
    struct tape {};
  };
};

template <class T>
inline constexpr bool is_prelude = false;
template <class L>
inline constexpr bool is_prelude<prelude<L>> = true;
template <class T>
inline constexpr bool is_coda = false;
template <class L>
inline constexpr bool is_coda<coda<L>> = true;
template <class T>
inline constexpr bool is_recurrent = requires {
  typename T::state_policy;
};
template <class T>
inline constexpr bool is_options = false;
template <model_options O>
inline constexpr bool is_options<options<O>> = true;
template <class T>
inline constexpr bool is_scheme = requires {
  typename T::scheme;
};

/// The first of Parts for which Wanted holds, else Default.
template <template <class> class Wanted, class Default, class... Parts>
struct pick {
  using type = Default;
};
template <template <class> class Wanted, class Default, class First, class... Rest>
struct pick<Wanted, Default, First, Rest...> {
  using type =
      typename std::conditional_t<Wanted<First>::value, std::type_identity<First>, pick<Wanted, Default, Rest...>>::type;
};
template <class T>
struct wants_prelude : std::bool_constant<is_prelude<T>> {};
template <class T>
struct wants_coda : std::bool_constant<is_coda<T>> {};
template <class T>
struct wants_recurrent : std::bool_constant<is_recurrent<T>> {};
template <class T>
struct wants_options : std::bool_constant<is_options<T>> {};
template <class T>
struct wants_scheme : std::bool_constant<is_scheme<T>> {};

}  // namespace detail

GYRE_END
