// Every operation of a backend once, for tests that compare the bits of all results.
#pragma once

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include <gyre/backend/cpu.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {

using gyre::attention_shape;
using gyre::batch_layout;
using gyre::cache_lane;
using gyre::cpu;
using gyre::pairing;
using gyre::token;

template <class T>
using results = std::map<std::string, grid<T>>;

/// Every operation once on `layout`'s rows, with inputs that are the same at each call; rows of the first sequence come first.
template <class T>
results<T> run_everything(cpu b, const batch_layout& layout, index width, index heads, index kv_heads) {
  const index rows = layout.rows(), q_width = heads * width, kv_width = kv_heads * width, vocabulary = 259;
  results<T> out;
  const auto result = [&](const std::string& name, const grid<T>& x) -> grid<T>& { return out.emplace(name, x).first->second; };
  const auto x = random_grid<T>(rows, q_width, 1), f = random_grid<T>(rows, q_width, 2), gain = random_grid<T>(1, q_width, 3);
  std::vector<token> ids;
  for (index i = 0; i < rows; ++i) ids.push_back(static_cast<token>(i * 7 % 31));

  auto& filled = result("fill", grid<T>(rows, q_width));
  b.fill(filled.view(), T(3));
  b.add(x.read(), result("add", f).view());
  b.copy(x.read(), result("copy", f).view());
  auto& embedded = result("embed", grid<T>(rows, q_width));
  const auto table = random_grid<T>(31, q_width, 4);
  b.embed(table.read(), ids, 1.3, embedded.view());
  b.embed_backward(x.read(), ids, 1.3, result("embed_backward, sum", table).view());

  auto& normed = result("rms_norm", grid<T>(rows, q_width));
  auto& rstd = result("rms_norm rstd", grid<T>(rows, 1, 0));
  b.rms_norm(x.read(), gain.data(), 1e-6, normed.view(), rstd.data());
  auto& sum = result("add_rms_norm sum", f);
  auto& rstd_of_sum = result("add_rms_norm rstd", grid<T>(rows, 1, 0));
  b.add_rms_norm(x.read(), f.read(), gain.data(), 1e-6, sum.view(), result("add_rms_norm", f).view(), rstd_of_sum.data());
  grid<T> workspace(1, std::max(cpu::rms_norm_backward_workspace(rows, q_width), cpu::column_sum_workspace(rows, q_width)));
  b.rms_norm_backward(x.read(), gain.data(), static_cast<const T*>(rstd.data()), f.read(),
                      result("rms_norm_backward", x).view(), result("rms_norm_backward gain, sum", gain).data(),
                      workspace.data());
  b.column_sum(x.read(), result("column_sum, sum", gain).data(), workspace.data());
  b.row_change(x.read(), f.read(), result("row_change", grid<T>(rows, 2, 0)).data());
  b.standardise(result("standardise", x).view());

  const auto w = random_grid<T>(kv_width, q_width, 5);
  const gyre::weight_matrix<T, cpu::prepared<T>> weight{w.read(), nullptr};
  const auto dy = random_grid<T>(rows, kv_width, 6);
  b.product(x.read(), weight, result("product", dy).view(), true);
  b.product_input_gradient(dy.read(), weight, result("product_input_gradient", x).view(), false);
  b.product_weight_gradient(dy.read(), x.read(), result("product_weight_gradient, sum", w).view());
  // Rows from the eighth on belong to the last of three groups, however many they are.
  const auto w_grouped = random_grid<T>(3 * kv_width, q_width, 12);
  const std::int32_t few = static_cast<std::int32_t>((std::min)(rows, index{7}));
  const std::array<std::int32_t, 4> group_offsets{0, few, few, static_cast<std::int32_t>(rows)};
  const gyre::row_groups groups{group_offsets.data(), 3, kv_width * w_grouped.view().stride};
  const gyre::weight_matrix<T, cpu::prepared<T>> group_0{w_grouped.read().slice(0, kv_width), nullptr};
  b.grouped_product(x.read(), group_0, groups, result("grouped_product", dy).view(), true);
  b.grouped_product_input_gradient(dy.read(), group_0, groups, result("grouped_product_input_gradient", x).view(), false);
  b.grouped_product_weight_gradient(dy.read(), x.read(), groups,
                                    result("grouped_product_weight_gradient, sum", w_grouped).view().slice(0, kv_width));

  const auto h = random_grid<T>(rows, 2 * q_width, 7);
  auto& gated = result("gated_silu", grid<T>(rows, q_width));
  b.gated_silu(h.read(), gated.view());
  b.gated_silu_backward(h.read(), x.read(), result("gated_silu_backward", h).view());

  const auto angles = random_grid<T>(1024, width, 8, 1, 0);
  for (const pairing pairs : {pairing::adjacent, pairing::half_split}) {
    const std::string name = pairs == pairing::adjacent ? "rotary adjacent" : "rotary half_split";
    auto& turned = result(name, x);
    b.rotary(turned.view(), gain.data(), layout.positions(), angles.data(), {heads, width, pairs});
    b.rotary_backward(result(name + " backward", x).view(), layout.positions(), angles.data(), {heads, width, pairs});
  }

  const attention_shape shape{heads, kv_heads, width, 0.125};
  const auto k = random_grid<T>(rows, kv_width, 9), v = random_grid<T>(rows, kv_width, 10);
  auto& o = result("attention", grid<T>(rows, q_width));
  auto& lse = result("attention lse", grid<T>(rows, heads, 0));
  b.attention(x.read(), k.read(), v.read(), layout, shape, o.view(), lse.data());
  auto& dq = result("attention_backward dq", grid<T>(rows, q_width));
  auto& dk = result("attention_backward dk", grid<T>(rows, kv_width));
  auto& dv = result("attention_backward dv", grid<T>(rows, kv_width));
  b.attention_backward(x.read(), k.read(), v.read(), o.read(), static_cast<const T*>(lse.data()), f.read(), layout, shape,
                       dq.view(), dk.view(), dv.view(), static_cast<T*>(nullptr));
  // Every row reads as many slots: its own k and v among other values.
  const index slots = 3;
  grid<T> slot_k(slots * rows, kv_width), slot_v(slots * rows, kv_width);
  for (index j = 0; j < slots; ++j)
    for (index i = 0; i < rows; ++i)
      for (index c = 0; c < kv_width; ++c) {
        slot_k[j * rows + i][c] = k[i][c] + static_cast<T>(j);
        slot_v[j * rows + i][c] = v[i][c] - static_cast<T>(j);
      }
  auto& depth_o = result("depth_attention", grid<T>(rows, q_width));
  auto& depth_lse = result("depth_attention lse", grid<T>(rows, heads, 0));
  b.depth_attention(x.read(), slot_k.read(), slot_v.read(), shape, depth_o.view(), depth_lse.data());
  auto& depth_dq = result("depth_attention_backward dq", grid<T>(rows, q_width));
  grid<T> depth_dk(slots * rows, kv_width), depth_dv(slots * rows, kv_width);
  b.fill(depth_dk.view(), T(0)), b.fill(depth_dv.view(), T(0));
  b.depth_attention_backward(x.read(), slot_k.read(), slot_v.read(), depth_o.read(), static_cast<const T*>(depth_lse.data()),
                             f.read(), shape, depth_dq.view(), depth_dk.view(), depth_dv.view());
  auto& last_dk = result("depth_attention_backward dk, last slot", grid<T>(rows, kv_width));
  auto& last_dv = result("depth_attention_backward dv, last slot", grid<T>(rows, kv_width));
  b.copy(depth_dk.read().slice((slots - 1) * rows, rows), last_dk.view());
  b.copy(depth_dv.read().slice((slots - 1) * rows, rows), last_dv.view());

  // Rows of the pairs of one row lie where their experts have them: moved back, they are rows of their row again.
  const index active = 3, pairs = rows * active;
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(pairs)), place(chosen), source(chosen),
      offsets(static_cast<std::size_t>(q_width + 1));
  auto& kept = result("route logits", grid<T>(rows, active, 0));
  auto& gates = result("route gates", grid<T>(rows, active, 0));
  b.route(x.read(), gain.data(), 0.3, active, chosen.data(), kept.data(), gates.data());
  std::copy(chosen.begin(), chosen.end(), result("route chosen", grid<T>(rows, active, 0)).data());
  b.route_backward(static_cast<const T*>(kept.data()), static_cast<const T*>(gates.data()), chosen.data(),
                   static_cast<const T*>(kept.data()), 0.3, active, result("route_backward", grid<T>(rows, q_width)).view());
  b.group_pairs(chosen.data(), pairs, q_width, offsets.data(), place.data(), source.data());
  grid<T> of_pairs(pairs, q_width), d_of_pairs(pairs, q_width);
  b.spread(x.read(), source.data(), active, of_pairs.view());
  b.collect(of_pairs.read(), place.data(), gates.data(), active, result("spread, collect", f).view());
  b.collect_backward(f.read(), of_pairs.read(), place.data(), static_cast<const T*>(gates.data()), active, d_of_pairs.view(),
                     result("collect_backward gates", kept).data());
  b.collect(d_of_pairs.read(), place.data(), nullptr, active, result("collect_backward, collect", f).view());
  grid<T> router_losses(1, static_cast<index>(layout.sequences().size()), 0);
  b.router_loss(x.read(), 0.3, chosen.data(), active, layout, {0.1, 0.2}, router_losses.data());
  b.sum(static_cast<const T*>(router_losses.data()), router_losses.read().cols,
        result("router_loss, sum", grid<T>(1, 1)).data());
  b.router_loss_backward(x.read(), 0.3, chosen.data(), active, layout, {0.1, 0.2}, T(2),
                         result("router_loss_backward", f).view());

  std::vector<std::vector<T>> memory;
  std::vector<cache_lane<T>> lanes;
  for (const gyre::sequence_span& s : layout.sequences()) memory.emplace_back(static_cast<std::size_t>(2 * kv_width * s.count));
  for (std::size_t n = 0; n < memory.size(); ++n) lanes.push_back({memory[n].data(), layout.sequences()[n].count});
  auto& cached = result("cached_attention", grid<T>(rows, q_width));
  b.cache_append(k.read(), v.read(), layout, std::span<const cache_lane<T>>(lanes), 0);
  b.cached_attention(x.read(), layout, std::span<const cache_lane<T>>(lanes), 0, shape, 0, cached.view());

  auto& logits = result("cross_entropy", random_grid<T>(rows, vocabulary, 11));
  auto& losses = result("cross_entropy losses", grid<T>(rows, 1, 0));
  b.cross_entropy(logits.view(), ids, T(0.3), losses.data(), true);
  b.sum(static_cast<const T*>(losses.data()), rows, result("sum, sum", grid<T>(1, 1)).data());
  b.random_normal(result("random_normal", x).view(), layout, {gyre::seed{3}, 1}, 1.0, true);
  return out;
}

/// Every result has the same bits for 1, 2 and 3 threads.
template <class T>
void check_threads() {
  for (const auto& [width, heads, kv_heads] : {std::array<index, 3>{64, 4, 4}, {40, 5, 1}})
    for (const batch_layout& layout : {ragged({300, 1, 129, 7, 0, 200}), ragged({1}), ragged({0})}) {
      const results<T> one = run_everything<T>(cpu(1), layout, width, heads, kv_heads);
      for (const int threads : {2, 3}) {
        const results<T> more = run_everything<T>(cpu(threads), layout, width, heads, kv_heads);
        REQUIRE(more.size() == one.size());
        for (const auto& [name, got] : more) {
          CAPTURE(name, threads, layout.rows(), width);
          CHECK(bit_differences(got.view(), one.at(name).view()) == "");
        }
      }
    }
}

/// A row has the same bits alone and among others.
template <class T>
void check_rows() {
  const results<T> many = run_everything<T>(cpu(2), ragged({60, 1, 300, 129}), 40, 5, 1);
  for (const batch_layout& layout : {ragged({60}), ragged({60, 1})}) {
    const results<T> few = run_everything<T>(cpu(2), layout, 40, 5, 1);
    for (const auto& [name, got] : few) {
      if (name.ends_with(", sum")) continue;  // sums over rows depend on the number of rows
      CAPTURE(name, layout.rows());
      CHECK(bit_differences(got.view(), many.at(name).view().slice(0, layout.rows())) == "");
    }
  }
}

}  // namespace gyre_test
