// The closed form of a mixture's cost: against the dry backend's count where the layers exist, against counting one by one for
// everything else.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gyre/core/random_sequence.hpp>
#include <gyre/gyre.hpp>
#include <gyre/model/cost.hpp>

using size = gyre::index;
using gyre::branch_norms;
using gyre::mixture_form;
using gyre::model_cost;
using gyre::model_sizes;

namespace {

// One layer twice over 5 tokens: width 4, 2 heads of 2 on 1 key/value head, 3 experts of width 2 of which 2, a shared one of 1.
constexpr model_sizes small{.vocab = 7,
                            .width = 4,
                            .context = 5,
                            .depth = 2,
                            .head_width = 2,
                            .heads = 2,
                            .kv_heads = 1,
                            .experts = 3,
                            .active = 2,
                            .expert_width = 2,
                            .shared_width = 1,
                            .router_width = 4};
constexpr model_cost small_cost = gyre::cost_of(small);
static_assert(small_cost.embedding == gyre::cost_share{28, 0, 0});
static_assert(small_cost.sequence_projections == gyre::cost_share{48, 2 * 2 * 48, 2 * 2 * 2 * 48});
static_assert(small_cost.sequence_scores ==
              gyre::cost_share{0, 2 * 2 * 2 * (2 * 2) * 3, 2 * 2 * 5 * (2 * 2) * 3});  // context 3
static_assert(small_cost.expert_router == gyre::cost_share{16 + 12, 2 * 2 * 28, 2 * 2 * 2 * 28});
static_assert(small_cost.experts == gyre::cost_share{3 * 24, 2 * 2 * 2 * 24, 2 * 2 * 2 * 2 * 24});
static_assert(small_cost.shared_expert == gyre::cost_share{12 + 1, 2 * 2 * 12, 2 * 2 * 2 * 12});
static_assert(small_cost.norms == gyre::cost_share{4 * 4 + 2 * 2 + 4, 0, 0});
static_assert(small_cost.head == gyre::cost_share{0, 2 * 28, 2 * 2 * 28});
static_assert(small_cost.depth_projections == gyre::cost_share{} && small_cost.projection_routers == gyre::cost_share{});
static_assert(small_cost.parameters() == 28 + 48 + 28 + 72 + 13 + 24);
static_assert(small_cost.sequence_cache == 5 * 2 * 2 * 2 && small_cost.inference_cache() == 40);

constexpr model_sizes with_depth_attention(model_sizes s) {
  s.depth_heads = 3, s.depth_kv_heads = 1;
  return s;
}
constexpr model_cost depth_cost = gyre::cost_of(with_depth_attention(small));
static_assert(depth_cost.depth_projections.parameters == 4 * 2 * (6 + 2));
static_assert(depth_cost.depth_scores == gyre::cost_share{0, 2 * 2 * (3 * 2) * (1 + 2), 2 * 5 * (3 * 2) * (1 + 2)});
static_assert(depth_cost.depth_cache == 2 * 2 * 2 && depth_cost.inference_cache() == 48);
static_assert(depth_cost.norms.parameters == small_cost.norms.parameters + 2 * 4 + 2 * 2);

/// Gains of width 4 in one layer, without those of queries and keys and the final norm.
constexpr size wide_gains(mixture_form form, branch_norms norms, bool state_norm, bool depth_attention) {
  model_sizes s = depth_attention ? with_depth_attention(small) : small;
  s.form = form, s.norms = norms, s.state_norm = state_norm, s.query_key_norm = false;
  return gyre::cost_of(s).norms.parameters / 4 - 1;
}
static_assert(wide_gains(mixture_form::sequential, branch_norms::branch_sandwich, false, true) == 6);
static_assert(wide_gains(mixture_form::sequential, branch_norms::pre_norm, false, true) == 3);
static_assert(wide_gains(mixture_form::sequential, branch_norms::pre_norm, true, true) == 4);
static_assert(wide_gains(mixture_form::parallel_3, branch_norms::branch_sandwich, false, true) == 4);
static_assert(wide_gains(mixture_form::parallel_3, branch_norms::pre_norm, true, true) == 2);
static_assert(wide_gains(mixture_form::parallel_2, branch_norms::branch_sandwich, false, true) == 5);
static_assert(wide_gains(mixture_form::parallel_2, branch_norms::pre_norm, false, true) == 2);
static_assert(wide_gains(mixture_form::sequential, branch_norms::branch_sandwich, true, false) == 5);
static_assert(wide_gains(mixture_form::parallel_2, branch_norms::branch_sandwich, false, false) == 4);

// Types that exist already: the experts are one gated MLP.
constexpr gyre::dims D{.vocab = 11, .width = 12, .heads = 4, .kv_heads = 2, .head_width = 4, .mlp = 10, .context = 7};
constexpr gyre::dims depth_dims{.vocab = 11, .width = 12, .heads = 3, .kv_heads = 1, .head_width = 4, .mlp = 10, .context = 7};
using Attention = gyre::sequence_attention<D, gyre::attention_options{.query_key_bias = false, .query_key_norm = true}>;
using Mlp = gyre::gated_mlp<D>;
template <class Placement, class... Branches>
struct layer_of : gyre::chain<gyre::residual<Placement, Branches>...> {
  static constexpr int layers = 1;
};
template <class Body>
using recurrence = gyre::recurrent<Body, gyre::inject::none, gyre::initial_state::embedding, gyre::loop_norm::none>;

struct Recurrent : gyre::model<D, recurrence<layer_of<gyre::branch_sandwich, Attention, Mlp>>> {};
struct Deep : gyre::model<D, gyre::options<gyre::model_options{.tied_head = false}>,
                          recurrence<layer_of<gyre::pre_norm, gyre::depth_attention<depth_dims>, Attention, Mlp>>> {};
using Exclusive = gyre::depth_attention<depth_dims, gyre::depth_attention_options{.exclusive = true, .query_key_norm = false}>;
using Biasless = gyre::sequence_attention<D, gyre::attention_options{.query_key_bias = false}>;
struct Earlier : gyre::model<D, recurrence<layer_of<gyre::branch_sandwich, Exclusive, Biasless, Mlp>>> {};
struct Layered : gyre::model<D, recurrence<gyre::stack<6, layer_of<gyre::branch_sandwich, Attention, Mlp>>>> {};

constexpr model_sizes dense{
    .vocab = 11, .width = 12, .context = 7, .layers = 1, .head_width = 4, .heads = 4, .kv_heads = 2, .shared_width = 10};
constexpr model_sizes dense_deep{.vocab = 11,
                                 .width = 12,
                                 .context = 7,
                                 .layers = 1,
                                 .head_width = 4,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .depth_heads = 3,
                                 .depth_kv_heads = 1,
                                 .shared_width = 10};

template <class A>
void check_against_dry(model_sizes s, int steps) {
  INFO("depth " << s.depth << ", " << steps << " steps");
  const model_cost cost = gyre::cost_of(s);
  CHECK(A::parameter_count == cost.parameters());
  CHECK(A::step_cache_width * steps * s.context == cost.sequence_cache);
  const auto layout = gyre::batch_layout::uniform(3, s.context);
  const auto flops = [&](bool gradients) {
    return gyre::plan_pass<A, gyre::reference, gyre::fp64>(layout, {0, steps}, gradients).total().product_flops;
  };
  const size tokens = 3 * s.context;
  CHECK(flops(false) == static_cast<double>(tokens * cost.forward()));
  CHECK(flops(true) == static_cast<double>(tokens * (cost.forward() + cost.backward())));
}

/// The same by adding up one matrix, one norm and one depth after the other.
struct counted {
  size parameters = 0, forward = 0, backward = 0, cache = 0;
};
counted count_one_by_one(const model_sizes& s) {
  counted c;
  size pairs = 0;  // query, key of a sequence; then of a token's depths
  for (size t = 0; t < s.context; ++t) pairs += t + 1;
  const auto matrix = [](size out, size in) { return out * in; };
  const auto router = [&](size entries) { return matrix(s.router_width, s.width) + matrix(entries, s.router_width); };
  const auto mlp = [&](size inner) { return matrix(2 * inner, s.width) + matrix(s.width, inner); };
  size products = matrix(s.vocab, s.width) * s.context, scores = 0;  // multiply-adds of one full sequence
  c.parameters = (s.tied_head ? 1 : 2) * matrix(s.vocab, s.width) + s.width;
  for (size l = 0; l < s.depth; ++l) {
    size weights = 0, used = 0;
    const auto attention = [&](size heads, size kv_heads) {
      const size all = matrix(heads * s.head_width, s.width) + 2 * matrix(kv_heads * s.head_width, s.width) +
                       matrix(s.width, heads * s.head_width);
      weights += s.projection_experts * all, used += s.active_projections * all;
      if (s.projection_experts > 1) weights += router(s.projection_experts), used += router(s.projection_experts);
      if (s.query_key_norm) weights += 2 * s.head_width;
    };
    if (s.heads > 0) attention(s.heads, s.kv_heads), scores += pairs * s.heads * s.head_width;
    if (s.depth_heads > 0) {
      attention(s.depth_heads, s.depth_kv_heads);
      scores += s.context * (l / s.layers + (s.exclusive_depth ? 0 : 1)) * s.depth_heads * s.head_width;  // a slot a step
    }
    if (s.experts > 0) {
      weights += router(s.experts) + s.experts * mlp(s.expert_width) + (s.shared_width > 0 ? 1 : 0);
      used += router(s.experts) + s.active * mlp(s.expert_width);
    }
    weights += mlp(s.shared_width), used += mlp(s.shared_width);
    size before = 1, after = 1;  // norms; the experts' first
    const bool sequence = s.heads > 0, depth = s.depth_heads > 0;
    if (s.form == mixture_form::sequential) before += sequence + depth;
    if (s.form == mixture_form::parallel_2) before += sequence || depth;
    after += sequence + depth;
    weights += s.width * (before + (s.norms == branch_norms::branch_sandwich ? after : 0) + (s.state_norm ? 1 : 0));
    if (l < s.layers) c.parameters += weights;
    products += used * s.context;
    c.cache += s.context * 2 * s.kv_heads * s.head_width * (sequence ? 1 : 0);
    c.cache += 2 * s.depth_kv_heads * s.head_width * (depth ? 1 : 0);
  }
  c.forward = 2 * (products + 2 * scores), c.backward = 2 * (2 * products + 5 * scores);
  return c;
}

/// Some sizes that make a model.
model_sizes draw(gyre::random_sequence& numbers) {
  const auto from = [&](size low, size high) {
    return low + static_cast<size>(numbers.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  model_sizes s{.vocab = from(1, 300), .width = from(1, 64), .context = from(1, 40), .depth = from(1, 9)};
  do s.layers = from(1, s.depth);
  while (s.depth % s.layers != 0);
  s.head_width = from(1, 16);
  s.kv_heads = from(1, 4), s.heads = s.kv_heads * from(0, 4);
  s.depth_kv_heads = from(1, 3), s.depth_heads = s.depth_kv_heads * from(0, 3);
  s.experts = from(0, 40), s.expert_width = from(1, 50), s.router_width = 4 * from(1, 8);
  s.active = s.experts == 0 ? 0 : from(1, s.experts);
  s.shared_width = from(s.experts == 0 ? 1 : 0, 50);
  s.projection_experts = from(1, 8);
  s.active_projections = s.projection_experts == 1 ? 1 : from(1, s.projection_experts - 1);
  s.form = static_cast<mixture_form>(from(0, 2)), s.norms = static_cast<branch_norms>(from(0, 1));
  s.state_norm = from(0, 1) == 1, s.query_key_norm = from(0, 1) == 1, s.tied_head = from(0, 1) == 1;
  s.exclusive_depth = from(0, 1) == 1;
  return s;
}

}  // namespace

TEST_CASE("the closed form of a mixture's cost equals the dry run's count") {
  for (const int steps : {1, 2, 6}) {
    model_sizes s = dense;
    s.depth = steps;
    check_against_dry<Recurrent>(s, steps);
    s = dense_deep, s.depth = steps, s.norms = branch_norms::pre_norm, s.tied_head = false;
    check_against_dry<Deep>(s, steps);
    s = dense_deep, s.depth = steps, s.query_key_norm = false, s.exclusive_depth = true;
    check_against_dry<Earlier>(s, steps);
  }
  model_sizes s = dense;
  s.depth = s.layers = 6;  // separate layers: a recurrence of six that runs once
  check_against_dry<Layered>(s, 1);
}

TEST_CASE("the closed form of a mixture's cost equals counting one by one") {
  gyre::random_sequence numbers(gyre::random_stream(gyre::seed{3}, gyre::purpose::task), 0);
  for (int i = 0; i < 500; ++i) {
    const model_sizes s = draw(numbers);
    REQUIRE(gyre::problem(s) == nullptr);
    const model_cost cost = gyre::cost_of(s);
    const counted expected = count_one_by_one(s);
    INFO("draw " << i);
    REQUIRE(cost.parameters() == expected.parameters);
    REQUIRE(cost.forward() * s.context == expected.forward);
    REQUIRE(cost.backward() * s.context == expected.backward);
    REQUIRE(cost.inference_cache() == expected.cache);
  }
}

TEST_CASE("a layered mixture of experts of 1 B and 2 B parameters costs what the specification's table says") {
  model_sizes s{.vocab = 50304,
                .width = 1024,
                .context = 2048,
                .depth = 16,
                .layers = 16,
                .head_width = 64,
                .heads = 16,
                .kv_heads = 4,
                .experts = 36,
                .active = 4,
                .expert_width = 512,
                .shared_width = 1024,
                .router_width = 64};
  const auto rounded = [&](double unit, size n) { return std::lround(static_cast<double>(n) / unit); };
  CHECK(rounded(1e5, gyre::cost_of(s).parameters()) == 10509);  // 1050.9 M
  CHECK(rounded(1e6, gyre::cost_of(s).forward()) == 558);       // 0.558 G
  s.depth = s.layers = 32;
  CHECK(rounded(1e5, gyre::cost_of(s).parameters()) == 20503);
  CHECK(rounded(1e6, gyre::cost_of(s).forward()) == 1013);
}

TEST_CASE("sizes that make no model are refused in a sentence") {
  const auto changed = [](auto change) {
    model_sizes s = small;
    change(s);
    return gyre::cost_of(s);
  };
  using S = model_sizes;
  CHECK_THROWS_WITH(changed([](S& s) { s.width = 0; }), "cost_of: vocab, width and context must be at least 1");
  CHECK_THROWS_WITH(changed([](S& s) { s.depth = -1; }), "cost_of: depth must be at least 1");
  CHECK_THROWS_WITH(changed([](S& s) { s.depth = 5, s.layers = 2; }), Catch::Contains("layers must divide depth"));
  CHECK_THROWS_WITH(changed([](S& s) { s.heads = -2; }), Catch::Contains("must not be negative"));
  CHECK_THROWS_WITH(changed([](S& s) { s.head_width = 0; }), Catch::Contains("head_width must be at least 1"));
  CHECK_THROWS_WITH(changed([](S& s) { s.heads = 3, s.kv_heads = 2; }),
                    Catch::Contains("heads must be a multiple of kv_heads"));
  CHECK_THROWS_WITH(changed([](S& s) { s.depth_heads = 3; }), Catch::Contains("multiple of depth_kv_heads"));
  CHECK_THROWS_WITH(changed([](S& s) { s.active = 4; }), "cost_of: active must be from 1 to experts");
  CHECK_THROWS_WITH(changed([](S& s) { s.active = 0; }), "cost_of: active must be from 1 to experts");
  CHECK_THROWS_WITH(changed([](S& s) { s.expert_width = 0; }), Catch::Contains("expert_width must be at least 1"));
  CHECK_THROWS_WITH(changed([](S& s) { s.experts = 0, s.shared_width = 0; }), Catch::Contains("the plain MLP"));
  CHECK_THROWS_WITH(changed([](S& s) { s.shared_width = -1; }), Catch::Contains("must not be negative"));
  CHECK_THROWS_WITH(changed([](S& s) { s.projection_experts = 0; }), Catch::Contains("projection_experts must be at least 1"));
  CHECK_THROWS_WITH(changed([](S& s) { s.projection_experts = s.active_projections = 2; }),
                    "cost_of: active_projections must be from 1 to projection_experts - 1");
  CHECK_THROWS_WITH(changed([](S& s) { s.active_projections = 2; }),
                    Catch::Contains("must be 1 where projection_experts is 1"));
  CHECK_THROWS_WITH(changed([](S& s) { s.router_width = 0; }), Catch::Contains("router_width must be at least 1"));
  CHECK_THROWS_WITH(changed([](S& s) { s.width = s.vocab = size{1} << 40; }), Catch::Contains("do not fit 64 bits"));
  CHECK_THROWS_WITH(changed([](S& s) { s.experts = s.expert_width = (std::numeric_limits<std::int32_t>::max)(); }),
                    Catch::Contains("do not fit 64 bits"));
}
