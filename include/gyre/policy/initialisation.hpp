// Initialisation schemes: how each role's tensors start.
#pragma once

#include <concepts>

#include <gyre/core/parameters.hpp>

GYRE_BEGIN

/// How one tensor starts: every scalar `constant`, or a truncated normal of variance `variance` (before the cut at 3 std).
struct initial_value {
  double constant = 0;
  double variance = 0;  // 0: the constant
};

/// What a scheme may know of the model.
struct model_facts {
  int width = 0;
  double effective_depth = 0;  // layers executed at the mean number of steps: lP + rbar lR + lC
};

namespace detail {
/// What starts alike in every scheme here: factors at 1, biases and routers' state at 0, keys of experts at variance 1.
constexpr bool starts_alike(role r) { return !is_matrix(r) && r != role::embedding && r != role::head; }
constexpr initial_value start_of(role r) {
  return r == role::gain         ? initial_value{.constant = 1}
         : r == role::expert_key ? initial_value{.variance = 1}
                                 : initial_value{};
}
}  // namespace detail

/// recurrent_depth, section 2: variance 2 / (5 h), for output projections 1 / (5 h L) with L the effective depth; gains 1,
/// biases 0.
struct huginn_initialisation {
  static constexpr initial_value of(role r, const tensor_shape&, model_facts facts) {
    if (detail::starts_alike(r)) return detail::start_of(r);
    if (r == role::output_projection) return {.variance = 1 / (5.0 * facts.width * facts.effective_depth)};
    return {.variance = 2 / (5.0 * facts.width)};
  }
};

/// attention_mixtures, section 1 (ours): embedding 0.02^2, expert keys 1, other matrices 1 / fan-in, of normal numbers that are
/// cut at 3 std as every scheme's are. Without norms of what branches give (pre_norm) the branches of all depths add up, so
/// output projections are divided by sqrt(BranchesPerLayer D).
template <int BranchesPerLayer = 0>
struct mixture_initialisation {
  static_assert(BranchesPerLayer >= 0, "mixture_initialisation: the number of branches is not negative");
  static constexpr initial_value of(role r, const tensor_shape& shape, model_facts facts) {
    if (detail::starts_alike(r)) return detail::start_of(r);
    if (!is_matrix(r)) return {.variance = 0.02 * 0.02};
    const double branches = r == role::output_projection && BranchesPerLayer > 0 ? BranchesPerLayer * facts.effective_depth : 1;
    return {.variance = 1 / (static_cast<double>(shape.cols()) * branches)};
  }
};

/// Another scheme with embeddings of variance 1 / h. Scaled by sqrt(h), as model_options{} asks for, they give a state of RMS 1;
/// a tied head gives logits of variance 1.
template <class Scheme>
struct unit_state {
  static constexpr initial_value of(role r, const tensor_shape& shape, model_facts facts) {
    if (r == role::embedding) return {.variance = 1 / static_cast<double>(facts.width)};
    return Scheme::of(r, shape, facts);
  }
};

template <class T>
concept initialisation_scheme = requires(tensor_shape shape, model_facts facts) {
  { T::of(role::gain, shape, facts) } -> std::same_as<initial_value>;
};

GYRE_END
