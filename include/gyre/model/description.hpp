// An architecture in words: what a reader of a checkpoint sees, and what its fingerprint is made of.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/compose/chain.hpp>
#include <gyre/compose/checkpoint.hpp>
#include <gyre/compose/mixture.hpp>
#include <gyre/compose/recurrent.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/compose/stack.hpp>
#include <gyre/layers/depth_attention.hpp>
#include <gyre/layers/expert_attention.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/linear.hpp>
#include <gyre/layers/sequence_attention.hpp>
#include <gyre/model/model.hpp>

GYRE_BEGIN

/// What a policy is called in descriptions. A policy of a user's own says so itself, by a member `name`.
template <class Policy>
inline constexpr std::string_view policy_name = [] {
  if constexpr (requires { std::string_view(Policy::name); })
    return std::string_view(Policy::name);
  else
    return std::string_view("custom");
}();
template <>
inline constexpr std::string_view policy_name<inject::concat> = "concat";
template <>
inline constexpr std::string_view policy_name<inject::add> = "add";
template <>
inline constexpr std::string_view policy_name<inject::none> = "none";
template <>
inline constexpr std::string_view policy_name<initial_state::like_init> = "like_init";
template <>
inline constexpr std::string_view policy_name<initial_state::like_init_unscaled> = "like_init_unscaled";
template <>
inline constexpr std::string_view policy_name<initial_state::normal> = "normal";
template <>
inline constexpr std::string_view policy_name<initial_state::zero> = "zero";
template <>
inline constexpr std::string_view policy_name<initial_state::embedding> = "embedding";
template <>
inline constexpr std::string_view policy_name<initial_state::unit> = "unit";
template <>
inline constexpr std::string_view policy_name<loop_norm::after> = "after the loop";
template <>
inline constexpr std::string_view policy_name<loop_norm::none> = "none";
template <>
inline constexpr std::string_view policy_name<pre_norm> = "pre_norm";
template <>
inline constexpr std::string_view policy_name<sandwich> = "sandwich";
template <>
inline constexpr std::string_view policy_name<branch_sandwich> = "branch_sandwich";
template <>
inline constexpr std::string_view policy_name<branch_post_norm> = "branch_post_norm";
template <>
inline constexpr std::string_view policy_name<post_norm> = "post_norm";

namespace detail {

inline std::string shortest_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
// A layer has dims of its own, which may differ from its neighbour's: what they change of its function is part of its text.
template <dims D>
std::string norm_text(gain g) {
  return std::string(g == gain::learned ? ", learned gains" : ", no gains") + " of eps " + shortest_text(D.norm_eps);
}

/// Layers in words. A pointer finds the description of the class that a named layer inherits from. A layer of a user's own may
/// have a static member description().
struct describer {
  template <class L>
  static std::string of() {
    if constexpr (requires { L::description(); })
      return L::description();
    else
      return text(static_cast<const L*>(nullptr));
  }

 private:
  static std::string text(const void*) { return "custom layer"; }
  template <int N, class L>
  static std::string text(const stack<N, L>*) {
    return sequence(std::vector<std::string>(static_cast<std::size_t>(N), of<L>()));
  }
  template <class First, class... Rest>
  static std::string text(const chain<First, Rest...>*) {
    return sequence({of<First>(), of<Rest>()...});
  }
  /// "2 x a, b" for a, a, b: a stack reads like the chain of its members.
  static std::string sequence(const std::vector<std::string>& layers) {
    std::string out;
    for (std::size_t i = 0, run = 0; i < layers.size(); i += run) {
      for (run = 1; i + run < layers.size() && layers[i + run] == layers[i];) ++run;
      out += (i > 0 ? ", " : "") + std::to_string(run) + " x " + layers[i];
    }
    return out;
  }
  template <class L>
  static std::string text(const checkpoint<L>*) {
    return of<L>();  // how memory is spent is no part of the architecture
  }
  template <class Placement, class Branch, gain Gain, int FirstNorm>
  static std::string text(const residual<Placement, Branch, Gain, FirstNorm>*) {
    return std::string(policy_name<Placement>) + "(" + of<Branch>() + norm_text<Branch::shape>(Gain) + ")";
  }
  template <class Placement, class Attention, class Mlp, gain Gain>
  static std::string text(const block<Placement, Attention, Mlp, Gain>*) {
    return std::string(policy_name<Placement>) + "(" + of<Attention>() + norm_text<Attention::shape>(Gain) + ", " + of<Mlp>() +
           norm_text<Mlp::shape>(Gain) + ")";
  }
  static std::string routing_text(const routing& r) {
    constexpr const char* encodings[] = {"no", "forward", "split"};
    return std::to_string(r.active) + " of " + std::to_string(r.count) + ", router of width " + std::to_string(r.router_width) +
           ", " + encodings[static_cast<int>(r.encoding)] + " encoding of base " + shortest_text(r.base);
  }
  static std::string projections_text(const routing& r) {
    return r.count > 1 ? ", projections " + routing_text(r) : std::string();
  }
  template <dims D, experts O, class Expert, class Shared>
  static std::string text(const expert_attention<D, O, Expert, Shared>*) {
    std::string out =
        "expert_attention(" + (O.count > 1 ? routing_text(O.routing()) + ", each " : std::string("one ")) + of<Expert>();
    if constexpr (expert_attention<D, O, Expert, Shared>::shares) out += ", shared " + of<Shared>();
    return out + ")";
  }
  template <class Form, class... Branches>
  static std::string text(const mixture<Form, Branches...>*) {
    constexpr const char* form = std::is_base_of_v<sequential, Form>   ? "sequential"
                                 : std::is_base_of_v<parallel_3, Form> ? "parallel_3"
                                                                       : "parallel_2";
    std::string out = std::string(form) + " mixture(" + std::string(policy_name<typename Form::placement>);
    if (Form::norm_of_state) out += ", normed state";
    ((out += ", " + of<Branches>() + norm_text<Branches::shape>(gain::learned)), ...);
    return out + ")";
  }
  template <dims D, attention_options O>
  static std::string text(const sequence_attention<D, O>*) {
    std::string out = "sequence_attention(" + std::to_string(D.heads) + " heads, " + std::to_string(D.key_value_heads()) +
                      " of keys and values, width " + std::to_string(D.width_per_head()) + ", rope base " +
                      shortest_text(D.rope_base) + (O.pairs == pairing::adjacent ? ", adjacent pairs" : ", half-split pairs") +
                      (O.query_key_bias ? ", q/k bias" : "");
    if (O.query_key_norm) out += ", q/k norm with" + norm_text<D>(O.norm_gain).substr(1);
    return out + projections_text(O.projections) + ")";
  }
  template <dims D, depth_attention_options O>
  static std::string text(const gyre::depth_attention<D, O>*) {
    constexpr const char* encodings[] = {"no", "forward", "split"};
    std::string out = "depth_attention(" + std::to_string(D.heads) + " heads, " + std::to_string(D.key_value_heads()) +
                      " of keys and values, width " + std::to_string(D.width_per_head()) + ", " +
                      encodings[static_cast<int>(O.encoding)] + " encoding of base " + shortest_text(O.base);
    if (O.query_key_norm) out += ", q/k norm with" + norm_text<D>(O.norm_gain).substr(1);
    return out + projections_text(O.projections) + (O.exclusive ? ", exclusive)" : ")");
  }
  template <dims D>
  static std::string text(const gated_mlp<D>*) {
    return "gated_mlp";
  }
  template <int In, int Out, linear_options O>
  static std::string text(const linear<In, Out, O>*) {
    return "linear";
  }
  template <dims D, gain Gain, int Width>
  static std::string text(const gyre::rms_norm<D, Gain, Width>*) {
    return "rms_norm(" + norm_text<D>(Gain).substr(2) + ")";
  }
};

template <class Layers, class Injection, class State, class Norm>
std::string loop_text(const recurrent<Layers, Injection, State, Norm>*) {
  return std::string("injection ") + std::string(policy_name<Injection>) + ", initial state " +
         std::string(policy_name<State>) + ", loop norm " + std::string(policy_name<Norm>) + ", body " +
         describer::of<typename recurrent<Layers, Injection, State, Norm>::body>();
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): finds differences, does not withstand attacks.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = 0xCBF29CE484222325u) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace detail

/// The architecture line by line: sizes, rules, then every tensor with its shape. Two models with the same lines compute the
/// same function of the same weights, so far as layers of a user's own describe themselves. What only concerns initialisation
/// or memory is left out.
template <architecture A>
std::string describe() {
  constexpr dims d = A::shape;
  std::string out;
  const auto line = [&](std::string_view name, const std::string& value) {
    out.append(name).append(": ").append(value).push_back('\n');
  };
  line("vocab", std::to_string(d.vocab));
  line("width", std::to_string(d.width));
  line("heads", std::to_string(d.heads) + " of width " + std::to_string(d.width_per_head()) + ", keys and values " +
                    std::to_string(d.key_value_heads()));
  line("mlp", std::to_string(d.mlp));
  line("context", std::to_string(d.context));
  line("rope_base", detail::shortest_text(d.rope_base));
  line("norm_eps", detail::shortest_text(d.norm_eps));
  line("embedding",
       "scale " + detail::shortest_text(A::embedding_scale()) + (A::rules.tied_head ? ", tied head" : ", own head"));
  line("last norm", detail::norm_text<d>(A::rules.final_gain).substr(2));
  if constexpr (A::has_prelude) line("prelude", detail::describer::of<typename A::prelude_layers>());
  line("loop", detail::loop_text(static_cast<const typename A::loop*>(nullptr)));
  if constexpr (A::has_coda) line("coda", detail::describer::of<typename A::coda_layers>());
  using table = parameter_table<A>;
  const auto names = table::names();
  for (std::size_t n = 0; n < names.size(); ++n) {
    std::string shape;
    for (int i = 0; i < table::entries[n].shape.rank; ++i)
      shape += (i > 0 ? " x " : "") + std::to_string(table::entries[n].shape.extent[static_cast<std::size_t>(i)]);
    line(names[n], shape);
  }
  return out;
}

/// 16 hexadecimal digits that differ for different descriptions.
template <architecture A>
std::string fingerprint() {
  const std::uint64_t hash = detail::fnv1a(describe<A>());
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15];
  return text;
}

GYRE_END
