// Pairs of rows and experts, and the losses of a router, against the reference in long double. [own_unit]
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "routing_checks.hpp"
#include "support/compare.hpp"

namespace gyre_test {

using gyre::cpu, gyre::reference, gyre::router_loss_weights;

TEMPLATE_TEST_CASE("pairs travel to their experts and back as the reference moves them", "[routing]", float, double) {
  using T = TestType;
  for (const sizes& s : routing_cases)
    for (const index width : {1, 20, 259}) {
      const index pairs = s.rows * s.active;
      CAPTURE(s.rows, s.experts, s.active, width);
      const auto scores = random_grid<T>(s.rows, s.experts, 1);
      const auto r = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), 1.0, s.active);
      integers offsets(static_cast<std::size_t>(s.experts + 1)), place(r.chosen.size()), source(r.chosen.size());
      auto offsets_want = offsets, place_want = place, source_want = source;
      cpu b(2);
      b.group_pairs(r.chosen.data(), pairs, s.experts, offsets.data(), place.data(), source.data());
      reference().group_pairs(r.chosen.data(), pairs, s.experts, offsets_want.data(), place_want.data(), source_want.data());
      CHECK((offsets == offsets_want && place == place_want && source == source_want));

      const auto x = random_grid<T>(s.rows, width, 2), y = random_grid<T>(pairs, width, 3);
      grid<T> spread(pairs, width), spread_want(pairs, width);
      b.spread(x.read(), source.data(), s.active, spread.view());
      reference().spread(x.read(), source.data(), s.active, spread_want.view());
      CHECK(bit_differences(spread.view(), spread_want.view()) == "");

      const auto terms = static_cast<exact>(s.active + 1);
      const auto wide_y = y.template as<exact>(), wide_x = x.template as<exact>();
      const auto gates = widened(r.gates), ones = std::vector<exact>(gates.size(), exact(1));
      for (const bool gated : {false, true}) {
        auto sum = x;
        auto sum_want = wide_x, magnitude = x.absolute().template as<exact>();
        const auto absolute = wide_y.absolute();
        b.collect(y.read(), place.data(), gated ? r.gates.data() : nullptr, s.active, sum.view());
        reference().collect(wide_y.read(), place.data(), static_cast<const exact*>(gated ? gates.data() : nullptr), s.active,
                            sum_want.view());
        reference().collect(absolute.read(), place.data(), (gated ? gates : ones).data(), s.active, magnitude.view());
        CHECK(differences(sum.read(), sum_want.view(),
                          [&](index i, index j) { return 2 * terms * epsilon<T> * magnitude[i][j]; }) == "");
        CHECK(sum.margins_intact());
      }

      const auto d_before = random_grid<T>(s.rows, s.active, 4, 1, 0);
      auto d_gates = d_before;
      auto d_gates_want = d_before.template as<exact>(), d_magnitude = d_before.absolute().template as<exact>();
      grid<T> dy(pairs, width);
      grid<exact> dy_want(pairs, width), ignored(pairs, width);
      b.collect_backward(x.read(), y.read(), place.data(), r.gates.data(), s.active, dy.view(), d_gates.data());
      reference().collect_backward(wide_x.read(), wide_y.read(), place.data(), gates.data(), s.active, dy_want.view(),
                                   d_gates_want.data());
      const auto x_magnitude = wide_x.absolute(), y_magnitude = wide_y.absolute();
      reference().collect_backward(x_magnitude.read(), y_magnitude.read(), place.data(), gates.data(), s.active, ignored.view(),
                                   d_magnitude.data());
      CHECK(differences(dy.read(), dy_want.view(), [&](index i, index j) {
              return epsilon<T> * std::fabs(dy_want[i][j]) + std::numeric_limits<T>::min();
            }) == "");
      CHECK(differences(d_gates.read(), d_gates_want.view(), [&](index i, index j) {
              return 2 * static_cast<exact>(width + 1) * epsilon<T> * d_magnitude[i][j];
            }) == "");
      CHECK(dy.margins_intact());
      auto in_place = y;
      auto d_again = d_before;
      b.collect_backward(x.read(), in_place.read(), place.data(), r.gates.data(), s.active, in_place.view(), d_again.data());
      CHECK(bit_differences(in_place.view(), dy.view()) == "");
      CHECK(bit_differences(d_again.view(), d_gates.view()) == "");
    }
}

TEMPLATE_TEST_CASE("the losses of a router agree with the reference", "[routing]", float, double) {
  using T = TestType;
  for (const auto& layout : {ragged({}), ragged({1}), ragged({7, 0, 30, 1}), ragged({300, 2})})
    for (const auto& [experts, active] : {std::pair<index, index>{1, 1}, {5, 1}, {64, 4}, {100, 20}})
      for (const double offset : {0.0, -1000.0, 200.0})
        for (const router_loss_weights weights : {router_loss_weights{1, 0}, {0, 1}, {0.3, 0.01}}) {
          const index rows = layout.rows();
          const double scale = -0.5;
          CAPTURE(rows, experts, active, offset, weights.balance, weights.z);
          auto scores = random_grid<T>(rows, experts, 1, 2);
          for (index i = 0; i < rows; ++i)
            for (index e = 0; e < experts; ++e) scores[i][e] += static_cast<T>(offset / scale);
          const auto chosen = route_with(cpu(1), scores.read(), static_cast<const T*>(nullptr), scale, active).chosen;
          const auto wide = scores.template as<exact>();
          const std::size_t sequences = layout.sequences().size();
          std::vector<T> losses(sequences);
          std::vector<exact> losses_want(sequences);
          cpu b(2);
          b.router_loss(scores.read(), scale, chosen.data(), active, layout, weights, losses.data());
          reference().router_loss(wide.read(), scale, chosen.data(), active, layout, weights, losses_want.data());
          // Of one token: shares are at most E / k, logits at most `most`; sums of E terms, functions 8 eps.
          const exact most = std::fabs(static_cast<exact>(offset)) + 5, sum_error = 2 * static_cast<exact>(experts) + 16;
          const exact share = static_cast<exact>(experts) / static_cast<exact>(active), total = most + 5;
          const exact balance = static_cast<exact>(weights.balance) * share, z = static_cast<exact>(weights.z);
          const exact of_token =
              (balance * 2 * (2 * most + sum_error) + z * 2 * total * (2 * most + sum_error) + z * total * total) * epsilon<T>;
          for (std::size_t n = 0; n < sequences; ++n) {
            const exact tokens = static_cast<exact>(layout.sequences()[n].count);
            CHECK(std::fabs(losses[n] - losses_want[n]) <= tokens * of_token + epsilon<T> * std::fabs(losses_want[n]));
          }
          auto d = random_grid<T>(rows, experts, 5);
          auto d_want = d.template as<exact>();
          b.router_loss_backward(scores.read(), scale, chosen.data(), active, layout, weights, T(0.7), d.view());
          reference().router_loss_backward(wide.read(), scale, chosen.data(), active, layout, weights, exact(T(0.7)),
                                           d_want.view());
          const exact of_gradient = (2 * balance + 2 * z * total) * 2 * (2 * most + sum_error) * epsilon<T> + 8 * epsilon<T>;
          CHECK(differences(d.read(), d_want.view(), [&](index, index) { return of_gradient; }) == "");
          CHECK(d.margins_intact());
        }
}

}  // namespace gyre_test
