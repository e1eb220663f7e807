// What the kernels of the `cuda` backend may cost in sectors of global memory and in passes over the banks of shared memory.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <gyre/parity/suite.hpp>
#include <gyre/simt/machine.hpp>

namespace gyre_test {

/// How many times the fewest transfers of the same bytes a kernel may take, at sizes as models have them.
struct transfer_budget {
  std::string_view kernel;
  double global = 1.02, shared = 1.02;
};
inline constexpr transfer_budget transfer_budgets[] = {
    {"add_sums"},
    {"append_to_cache"},
    {"attend"},
    {"attend_bf16", 1.22, 1.13},  // sums in registers lie as tensor cores leave them: 4 bytes of a row by a lane
    {"attend_depth"},
    {"change_of_rows"},
    {"choose_experts", 1.1},            // a lane for each of the few chosen
    {"choose_experts_backward", 1.18},  // likewise
    {"collect_rows"},
    {"collect_rows_backward"},
    {"count_chosen"},
    {"count_pairs"},
    {"count_up"},
    {"cross_entropy_rows"},
    {"differentiate_depth_queries"},
    {"dot_rows"},
    {"embed_backward_rows", 1.62},  // bf16 beside float: eight elements of a lane are two packs of the gradient
    {"embed_rows"},
    {"extend_cache", 1.26},      // of states an odd number of scalars apart
    {"for_each_element", 1.27},  // integers one at a time, where the first is not at a sector's begin
    {"for_each_pack"},
    {"join_parts", 1.12},     // two numbers beside the sums of each part
    {"key_gradients", 1.08},  // lse and dot: one of each for a row and head
    {"key_gradients_bf16", 1.22, 1.13},
    {"multiply_group_columns", 1.02, 1.75},  // zeros behind the end of a group are written one at a time
    {"multiply_groups", 1.12, 1.6},          // likewise
    {"normalise_rows"},
    {"normalise_rows_backward"},
    {"place_pairs", 2.6},  // scatters, which is its purpose
    {"query_gradients", 1.04},
    {"query_gradients_bf16", 1.22, 1.13},
    {"random_normal_pairs", 1.82},  // a lane writes two neighbours; its arithmetic takes longer
    {"router_row_losses", 1.08},
    {"router_row_losses_backward"},
    {"sample_rows"},
    {"scan_in_one_block"},
    {"scan_tiles_from"},
    {"spread_rows"},
    {"standardise_rows"},
    {"sum_columns"},
    {"sum_of_chunks"},
    {"sum_of_sequences"},
    {"sum_of_sums"},
    {"sum_products"},
    {"sum_tiles"},
    {"turn_pairs"},
};

/// Sizes as models have them: rows of whole sectors, heads of 64.
inline gyre::index usual_size(std::string_view name) {
  using size = std::pair<std::string_view, gyre::index>;
  constexpr size sizes[] = {
      {"sequences", 2}, {"length", 96},      {"kv_heads", 2}, {"sharing", 2},  {"width", 64}, {"past", 64},    {"pairs", 32},
      {"rows", 64},     {"heads", 4},        {"slots", 8},    {"experts", 64}, {"active", 4}, {"cols", 256},   {"gain", 1},
      {"bias", 1},      {"vocabulary", 512}, {"out", 128},    {"in", 128},     {"groups", 4}, {"count", 4096}, {"copies", 3}};
  const auto found = std::find_if(std::begin(sizes), std::end(sizes), [&](const size& s) { return s.first == name; });
  return found == std::end(sizes) ? 0 : found->second;
}

/// The name of a kernel without its namespaces and template arguments.
inline std::string plain_name(const std::string& kernel) {
  const std::string name = kernel.substr(0, kernel.find('<'));
  return name.substr(name.rfind(':') + 1);
}

#ifndef GYRE_COUNTS_TRANSFERS
#define GYRE_COUNTS_TRANSFERS 1  // 0: for programs without debug information, which has the kernels' names
#endif

/// Counts the transfers of one call, of usual sizes but for those given, whose results other trials judge.
template <class T, gyre::operation Op, class Right>
void check_transfers(Right& right, std::initializer_list<std::pair<std::string_view, gyre::index>> sizes = {}) {
  if (!GYRE_COUNTS_TRANSFERS) return;
  namespace parity = gyre::parity;
  gyre::reference left;
  gyre::simt::machine& machine = right.device().machine();
  const parity::check c = parity::check_of<Op, T>(left, right);
  parity::trial t{Op, c.type, 7, {}};
  for (const parity::dimension& d : c.dimensions) t.set(d.name, (std::max)(d.least(), usual_size(d.name)));
  for (const auto& [name, value] : sizes) t.set(name, value);
  machine.take_costs();
  machine.settings.count_accesses = true;
  c.run(t);
  machine.settings.count_accesses = false;

  struct transfers {
    std::uint64_t taken = 0, fewest = 0;
    std::string where;  // lines that take more than the fewest
    double ratio() const { return fewest == 0 ? 1 : static_cast<double>(taken) / static_cast<double>(fewest); }
  };
  std::map<std::string, std::pair<transfers, transfers>> kernels;  // of global and of shared memory
  for (const gyre::simt::access_cost& cost : machine.take_costs()) {
    auto& [global, shared] = kernels[plain_name(cost.kernel)];
    transfers& sum = cost.shared ? shared : global;
    sum.taken += cost.transfers, sum.fewest += cost.ideal;
    if (cost.transfers > cost.ideal)
      sum.where += " " + cost.file.substr(cost.file.rfind('/') + 1) + ":" + std::to_string(cost.line) + " " +
                   std::to_string(cost.transfers) + " instead of " + std::to_string(cost.ideal);
  }
  CHECK(!kernels.empty());
  for (const auto& [name, sums] : kernels) {
    const auto budget = std::find_if(std::begin(transfer_budgets), std::end(transfer_budgets),
                                     [&kernel = name](const transfer_budget& b) { return b.kernel == kernel; });
    INFO(t.text() << ": kernel " << name);
    REQUIRE(budget != std::end(transfer_budgets));
    INFO("global:" << sums.first.where << "; shared:" << sums.second.where);
    CHECK(sums.first.ratio() <= budget->global);
    CHECK(sums.second.ratio() <= budget->shared);
  }
}

}  // namespace gyre_test
