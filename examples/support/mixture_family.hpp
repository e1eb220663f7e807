// A family of attention mixtures that cost the same: a layered mixture of experts, and one recurrent layer (DR), without and
// with depth attention (DR+DA), matched to it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gyre/model/cost.hpp>
#include <gyre/model/matching.hpp>

namespace examples {

/// The layered model, and what its matched ones have besides.
struct mixture_family {
  gyre::model_sizes layered;
  gyre::index depth_heads = 4, depth_kv_heads = 2;
  gyre::index active_projections = 2;
  gyre::index width_step = 0;  // inner widths are multiples of it; 0: at most 32, and a sixteenth of the layered experts' width

  /// The reference of 1 B (depth 16) or 2 B (depth 32) parameters (attention_mixtures, section 6).
  static mixture_family of(gyre::index depth) {
    mixture_family f;
    f.layered = {.vocab = 50304,
                 .width = 1024,
                 .context = 2048,
                 .depth = depth,
                 .layers = depth,
                 .head_width = 64,
                 .heads = 16,
                 .kv_heads = 4,
                 .experts = 36,
                 .active = 4,
                 .expert_width = 512,
                 .shared_width = 1024,
                 .router_width = 64};
    return f;
  }

  /// Throws gyre::error unless the numbers describe a family.
  void validate() const {
    if (const char* wrong = gyre::problem(layered)) gyre::fail("match: the layered model: ", wrong);
    gyre::require(layered.layers == layered.depth && layered.experts > 0 && layered.projection_experts == 1,
                  "match: the layered model has a layer with experts and plain projections for each depth");
    gyre::require(width_step >= 0, "match: width step ", width_step, " must not be negative");
    gyre::require(active_projections >= 1 && active_projections < most_projection_experts, "match: active projections ",
                  active_projections, " must be from 1 to ", most_projection_experts - 1);
    if (const char* wrong = gyre::problem(start(true))) gyre::fail("match: DR+DA: ", wrong);
  }

  /// Where the search for DR or DR+DA begins: the experts of all layers in one.
  gyre::model_sizes start(bool depth_attention) const {
    gyre::model_sizes s = layered;
    s.layers = 1, s.experts = layered.experts * layered.depth;
    s.projection_experts = active_projections + 2, s.active_projections = active_projections;
    if (depth_attention) s.depth_heads = depth_heads, s.depth_kv_heads = depth_kv_heads;
    return s;
  }

  /// What may change (ours): the number of experts up to twice that of all layers, inner widths and active experts around the
  /// layered ones, and how many matrices a projection mixes. Heads, caches and routers stay.
  std::vector<gyre::hyper_parameter<gyre::model_sizes>> parameters() const {
    using sizes = gyre::model_sizes;
    const gyre::index all = layered.experts * layered.depth, least_active = (std::min)(gyre::index{2}, layered.active);
    const gyre::index step = inner_step();
    const auto multiples = [&](gyre::index low, gyre::index high) {
      const gyre::index first = (std::max)(step, low / step * step);
      return gyre::integer_range(first, (std::max)(first, high), step);
    };
    std::vector<gyre::hyper_parameter<sizes>> list{
        {"experts", &sizes::experts, gyre::integer_range(least_active, 2 * all, 1 + 2 * all / most_values)},
        {"active", &sizes::active, gyre::integer_range(least_active, (std::min)(2 * layered.active, least_active + 64))},
        {"expert_width", &sizes::expert_width, multiples(layered.expert_width / 4, 3 * layered.expert_width)},
        {"projection_experts", &sizes::projection_experts,
         gyre::integer_range(active_projections + 1, most_projection_experts)}};
    if (layered.shared_width > 0)
      list.emplace_back("shared_width", &sizes::shared_width, multiples(layered.shared_width / 4, 2 * layered.shared_width));
    return list;
  }

  gyre::index inner_step() const {
    if (width_step > 0) return width_step;
    const auto fine = std::bit_floor(static_cast<std::size_t>((std::max)(gyre::index{1}, layered.expert_width / 16)));
    const gyre::index coarse = (3 * layered.expert_width + 2 * layered.shared_width) / most_values;  // for widths of no machine
    return (std::max)((std::min)(gyre::index{32}, static_cast<gyre::index>(fine)), coarse);
  }

  static constexpr gyre::index most_projection_experts = 64;
  static constexpr gyre::index most_values = 4096;  // of one hyper-parameter: bounds the time of a search
};

/// A model of the family, and what it costs.
struct family_member {
  std::string name;
  gyre::model_sizes sizes;
  gyre::model_cost cost;
  gyre::matched_quantities quantities, off;  // off: relative to the layered model, 0.001 for 0.1% more
  double worst() const { return (std::max)({std::abs(off.parameters), std::abs(off.flops), std::abs(off.memory)}); }
};
inline family_member member_of(const mixture_family& family, std::string name, const gyre::model_sizes& sizes) {
  const gyre::inference_quantities measure;
  const gyre::matched_quantities has = measure(sizes), target = measure(family.layered);
  return {std::move(name),
          sizes,
          gyre::cost_of(sizes),
          has,
          {has.parameters / target.parameters - 1, has.flops / target.flops - 1, has.memory / target.memory - 1}};
}

/// DR, or DR+DA, matched to the layered model in parameters, forward FLOPs and cache of inference.
inline gyre::matching<gyre::model_sizes> match_member(const mixture_family& family, bool depth_attention,
                                                      const gyre::matching_options& options) {
  const gyre::distance_to<> objective(gyre::inference_quantities{}(family.layered));
  return gyre::match_sizes(family.start(depth_attention), family.parameters(), objective, gyre::makes_a_model{}, options);
}

}  // namespace examples
