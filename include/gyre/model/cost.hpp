// What a model costs: parameters, FLOPs and caches as one closed form over numbers that are known at run time.
#pragma once

#include <limits>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// How the branches of one layer follow each other (attention_mixtures, section 1).
enum class mixture_form {
  sequential,  // depth, sequence and expert attention one after the other
  parallel_3,  // all three read the same input
  parallel_2   // depth and sequence attention read the same input, the experts follow
};
/// Norms of a layer's branches: the placements of compose/residual.hpp.
enum class branch_norms {
  branch_sandwich,   // before each branch and on what it gives
  pre_norm,          // before each branch
  sandwich,          // before each branch and on the sum
  branch_post_norm,  // on what each branch gives
  post_norm          // on the sum
};
/// How the embedded input enters the recurrence's steps.
enum class input_injection { none, add, concat };

/// The sizes of a model as numbers, for a search over candidates that are not compiled (attention_mixtures, section 6). All layers
/// are of one kind: attention over depth and over the sequence, and experts or one gated MLP. `layers` of them, applied
/// depth / layers times, are the recurrence; `prelude` ones stand before it and `coda` ones behind.
struct model_sizes {
  index vocab = 0;               // V
  index width = 0;               // d, the hidden size
  index context = 0;             // T, tokens of a sequence
  index depth = 1;               // D, layers that a token passes in the recurrence
  index layers = 1;              // n, those with weights of their own: 1 (one recurrent layer), D (layered), or a divisor of D
  index gradient_steps = 0;      // k, steps of the recurrence with backpropagation; 0: all
  index prelude = 0, coda = 0;   // layers before and behind the recurrence
  index head_width = 0;          // d_h, in both attentions
  index heads = 0;               // query heads of sequence attention; 0: there is none
  index kv_heads = 0;            // its key/value heads
  index depth_heads = 0;         // query heads of depth attention; 0: there is none
  index depth_kv_heads = 0;      // its key/value heads
  index experts = 0;             // E of a layer, with a router from 1 on; 0: the shared expert is a plain gated MLP, unscaled
  index active = 0;              // k, experts of a token
  index expert_width = 0;        // m, inner width of an expert
  index shared_width = 0;        // m_s, inner width of the expert that always runs; 0: there is none
  index router_width = 0;        // d_r, of all routers
  index projection_experts = 1;  // E_p, matrices behind each projection of the attentions; 1: plain, no router
  index active_projections = 1;  // k_p
  mixture_form form = mixture_form::sequential;
  branch_norms norms = branch_norms::branch_sandwich;
  input_injection injection = input_injection::none;
  bool state_norm = false;       // the state is normalised after each layer as well
  bool norm_gains = true;        // branch norms have weights
  bool query_key_norm = true;    // in both attentions, one weight for the queries and one for the keys of all heads
  bool query_key_bias = false;   // in sequence attention
  bool loop_norm = false;        // the final norm also follows the recurrence, with the same weight
  bool final_gain = true;        // the final norm has a weight
  bool tied_head = true;         // the head is the embedding
  bool exclusive_depth = false;  // depth attention reads earlier depths only

  constexpr index steps() const { return depth / layers; }
  constexpr index steps_with_gradient() const { return gradient_steps == 0 ? steps() : gradient_steps; }
  constexpr bool operator==(const model_sizes&) const = default;
};

/// What is wrong with sizes, as the end of a sentence; nullptr for sizes of a model.
constexpr const char* problem(const model_sizes& s) {
  const bool shares = s.projection_experts > 1;
  if (s.vocab < 1 || s.width < 1 || s.context < 1) return "vocab, width and context must be at least 1";
  if (s.depth < 1) return "depth must be at least 1";
  if (s.layers < 1 || s.depth % s.layers != 0)
    return "layers must divide depth: 1 (one layer for all depths), depth (one for each), or the layers of a step";
  if (s.gradient_steps < 0 || s.gradient_steps > s.steps()) return "gradient_steps must be from 0 (all) to depth / layers";
  if (s.prelude < 0 || s.coda < 0) return "prelude and coda must not be negative";
  if (s.form != mixture_form::sequential && s.norms != branch_norms::branch_sandwich && s.norms != branch_norms::pre_norm)
    return "branches beside each other have norms of branch_sandwich or pre_norm";
  if (s.heads < 0 || s.depth_heads < 0) return "heads and depth_heads must not be negative";
  if ((s.heads > 0 || s.depth_heads > 0) && s.head_width < 1) return "head_width must be at least 1";
  if (s.heads > 0 && (s.kv_heads < 1 || s.heads % s.kv_heads != 0)) return "heads must be a multiple of kv_heads";
  if (s.depth_heads > 0 && (s.depth_kv_heads < 1 || s.depth_heads % s.depth_kv_heads != 0))
    return "depth_heads must be a multiple of depth_kv_heads";
  if (s.experts < 0 || s.shared_width < 0) return "experts and shared_width must not be negative";
  if (s.experts == 0 && s.shared_width == 0) return "without experts shared_width, the plain MLP, must be at least 1";
  if (s.experts > 0 && s.expert_width < 1) return "expert_width must be at least 1";
  if (s.experts > 0 && (s.active < 1 || s.active > s.experts)) return "active must be from 1 to experts";
  if (s.projection_experts < 1) return "projection_experts must be at least 1";
  if (shares && (s.active_projections < 1 || s.active_projections >= s.projection_experts))
    return "active_projections must be from 1 to projection_experts - 1";
  if (!shares && s.active_projections != 1) return "active_projections must be 1 where projection_experts is 1";
  if ((s.experts > 0 || shares) && s.router_width < 1) return "router_width must be at least 1";
  return nullptr;
}

/// A group of operations: its parameters, and its FLOPs a token (2 x multiply-adds of products, scores and values).
struct cost_share {
  index parameters = 0;
  index forward = 0, backward = 0;  // over all layers that a token passes; scores and values at the mean context
  constexpr bool operator==(const cost_share&) const = default;
};

/// The cost of a model by groups of operations. Elementwise work is not counted.
struct model_cost {
  cost_share embedding;             // of a tied head, the weights of both
  cost_share sequence_projections;  // queries, keys, values and output, all E_p of them
  cost_share sequence_scores;       // scores and values of sequence attention, at mean context (T + 1) / 2
  cost_share depth_projections;
  cost_share depth_scores;        // of r steps at mean context (r + 1) / 2; exclusive (r - 1) / 2
  cost_share projection_routers;  // one for each attention, where E_p > 1
  cost_share expert_router;
  cost_share experts;
  cost_share shared_expert;  // with its scale; the plain MLP where there are no experts
  cost_share injection;      // concat: the input's half once, the state's at every step
  cost_share norms;          // gains only
  cost_share head;
  index sequence_cache = 0;  // scalars for a full sequence: T (keys, values) of every layer passed
  index depth_cache = 0;     // scalars for a stream: D (keys, values), overwritten for each token

  constexpr cost_share total() const;
  constexpr index parameters() const { return total().parameters; }
  constexpr index forward() const { return total().forward; }    // FLOPs a token
  constexpr index backward() const { return total().backward; }  // FLOPs a token
  /// Scalars that one stream of inference keeps at the end of a full sequence.
  constexpr index inference_cache() const { return sequence_cache + depth_cache; }
};

namespace detail {

/// A number of things that refuses to wrap around.
struct exact_count {
  index value = 0;

  friend constexpr exact_count operator*(exact_count a, exact_count b) {
    constexpr index small = index{1} << 31;
    if ((a.value >= small || b.value >= small) && b.value != 0 && a.value > (std::numeric_limits<index>::max)() / b.value)
      overflow();
    return {a.value * b.value};
  }
  friend constexpr exact_count operator+(exact_count a, exact_count b) {
    if (a.value > (std::numeric_limits<index>::max)() - b.value) overflow();
    return {a.value + b.value};
  }
  [[noreturn]] static void overflow() {
    fail("model_cost: counts of these sizes do not fit 64 bits; the sizes are no model's");
  }
};

/// How often layers are passed, and how many have weights of their own.
struct layer_counts {
  exact_count own, forward, backward;
};
constexpr layer_counts counts_of(const model_sizes& s) {
  const index around = s.prelude + s.coda;
  return {{s.layers + around}, {s.depth + around}, {s.steps_with_gradient() * s.layers + around}};
}

/// Products: `parameters` in each layer, `used` multiply-adds a token in each that is passed. Backward takes the gradient of
/// input and weights, so two products where forward has one.
constexpr cost_share product_cost(layer_counts n, exact_count parameters, exact_count used) {
  return {(n.own * parameters).value, (exact_count{2} * n.forward * used).value, (exact_count{4} * n.backward * used).value};
}
/// Scores and values of `features` = heads x head width query features over `twice_context` / 2 keys in all layers passed: two
/// products. Backward has five: scores again, then the gradients of values, probabilities, queries and keys.
constexpr cost_share score_cost(exact_count features, exact_count twice_context, exact_count twice_context_backward) {
  return {0, (exact_count{2} * features * twice_context).value, (exact_count{5} * features * twice_context_backward).value};
}
/// Twice the slots that depth attention reads in the last `counted` of all steps, and in prelude and coda, where there is one step.
constexpr exact_count twice_depths_read(const model_sizes& s, index counted) {
  const exact_count most{2 * s.steps() - counted + (s.exclusive_depth ? -1 : 1)};  // first and last of them together
  return exact_count{s.layers} * exact_count{counted} * most +
         exact_count{s.exclusive_depth ? 0 : 2} * exact_count{s.prelude + s.coda};
}
/// Gains of all norms of one layer: each branch owns its own, except that branches with one input share the norm of it.
constexpr exact_count gain_count(const model_sizes& s) {
  const index attentions = index{s.depth_heads > 0} + index{s.heads > 0}, branches = attentions + 1;
  index wide = s.form == mixture_form::sequential   ? branches
               : s.form == mixture_form::parallel_3 ? 1
                                                    : index{attentions > 0} + 1;
  if (s.norms == branch_norms::branch_sandwich || s.norms == branch_norms::sandwich) wide += branches;
  if (s.state_norm) ++wide;
  return exact_count{s.norm_gains ? wide : 0} * exact_count{s.width} +
         exact_count{s.query_key_norm ? 2 * attentions : 0} * exact_count{s.head_width};
}

}  // namespace detail

constexpr cost_share model_cost::total() const {
  detail::exact_count parameters, forward, backward;
  for (const cost_share* part : {&embedding, &sequence_projections, &sequence_scores, &depth_projections, &depth_scores,
                                 &projection_routers, &expert_router, &experts, &shared_expert, &injection, &norms, &head}) {
    parameters = parameters + detail::exact_count{part->parameters};
    forward = forward + detail::exact_count{part->forward};
    backward = backward + detail::exact_count{part->backward};
  }
  return {parameters.value, forward.value, backward.value};
}

/// attention_mixtures, section 6, exactly, in integers, and the same of prelude, coda and injection (recurrent_depth, section 1).
/// FLOPs a token are the mean over a full sequence of T tokens that attends to itself alone. The final norm counts; routing
/// biases, being state, do not. Throws gyre::error for sizes of no model (see problem()) and for counts beyond 2^63 - 1.
constexpr model_cost cost_of(const model_sizes& s) {
  using count = detail::exact_count;
  if (const char* wrong = problem(s)) fail("cost_of: ", wrong);
  const detail::layer_counts n = detail::counts_of(s), once{{s.tied_head ? 0 : 1}, {1}, {1}};
  const count context{s.context}, d{s.width}, head_width{s.head_width}, d_r{s.router_width};
  const count projections{s.projection_experts}, used_projections{s.active_projections}, experts{s.experts}, active{s.active};
  const count vocab_matrix = count{s.vocab} * d;
  const auto attention_matrices = [&](index heads, index kv_heads) {  // S, A: queries and output, keys and values
    return d * head_width * (count{2} * count{heads} + count{2} * count{kv_heads});
  };
  const auto router = [&](count entries) { return d * d_r + entries * d_r; };  // query projection, scores against the keys
  const auto gated_mlp = [&](index inner) { return count{3} * d * count{inner}; };
  const bool has_sequence = s.heads > 0, has_depth = s.depth_heads > 0;

  model_cost cost;
  cost.embedding.parameters = vocab_matrix.value;
  cost.head = detail::product_cost(once, vocab_matrix, vocab_matrix);
  if (has_sequence) {
    const count matrices = attention_matrices(s.heads, s.kv_heads);
    const count bias = count{s.query_key_bias ? s.heads + s.kv_heads : 0} * head_width;
    cost.sequence_projections = detail::product_cost(n, projections * matrices + bias, used_projections * matrices);
    cost.sequence_scores =
        detail::score_cost(count{s.heads} * head_width, n.forward * (context + count{1}), n.backward * (context + count{1}));
    cost.sequence_cache = (context * n.forward * count{2} * count{s.kv_heads} * head_width).value;
  }
  if (has_depth) {
    const count matrices = attention_matrices(s.depth_heads, s.depth_kv_heads);
    cost.depth_projections = detail::product_cost(n, projections * matrices, used_projections * matrices);
    cost.depth_scores = detail::score_cost(count{s.depth_heads} * head_width, detail::twice_depths_read(s, s.steps()),
                                           detail::twice_depths_read(s, s.steps_with_gradient()));
    cost.depth_cache = (n.forward * count{2} * count{s.depth_kv_heads} * head_width).value;
  }
  if (s.projection_experts > 1) {
    const count all = count{index{has_sequence} + index{has_depth}} * router(projections);
    cost.projection_routers = detail::product_cost(n, all, all);
  }
  if (s.experts > 0) {
    const count expert = gated_mlp(s.expert_width);
    cost.expert_router = detail::product_cost(n, router(experts), router(experts));
    cost.experts = detail::product_cost(n, experts * expert, active * expert);
  }
  if (s.shared_width > 0) {
    const count shared = gated_mlp(s.shared_width), scale{s.experts > 0 ? 1 : 0};
    cost.shared_expert = detail::product_cost(n, shared + scale, shared);
  }
  if (s.injection == input_injection::concat) {
    const detail::layer_counts passes{{2}, {1 + s.steps()}, {1 + s.steps_with_gradient()}};
    cost.injection = detail::product_cost(passes, d * d, d * d);
  }
  cost.norms.parameters = (n.own * detail::gain_count(s) + count{s.final_gain ? s.width : 0}).value;
  return cost;
}

GYRE_END
