// Matching sizes: what the descent finds, that it finds it again, and what it refuses.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gyre/model/matching.hpp>

using gyre::integer_range;
using gyre::model_sizes;
using size = gyre::index;

namespace {

/// Sizes of somebody else: a member of another width, one in a part.
struct box {
  int width = 10;
  struct {
    size height = 10;
  } side;
  short depth = 1;
};
using box_parameter = gyre::hyper_parameter<box>;
size& height_of(box& b) { return b.side.height; }
constexpr auto anything = [](const box&) { return true; };

std::vector<box_parameter> box_parameters() {
  return {{"width", &box::width, integer_range(1, 20)}, {"height", height_of, integer_range(1, 20)}};
}
/// A valley across both axes: each number alone can only make it worse.
double valley(const box& b) {
  return 100 * std::abs(b.width + static_cast<double>(b.side.height) - 20) + std::abs(b.width - 3.0);
}

constexpr model_sizes layered{.vocab = 300,
                              .width = 64,
                              .context = 48,
                              .depth = 8,
                              .layers = 8,
                              .head_width = 16,
                              .heads = 4,
                              .kv_heads = 1,
                              .experts = 8,
                              .active = 2,
                              .expert_width = 64,
                              .shared_width = 64,
                              .router_width = 16};
model_sizes recurrent() {
  model_sizes s = layered;
  s.layers = 1, s.experts = 64, s.projection_experts = 4, s.active_projections = 2;
  return s;
}
std::vector<gyre::hyper_parameter<model_sizes>> mixture_parameters() {
  using S = model_sizes;
  return {{"experts", &S::experts, integer_range(2, 120)},
          {"active", &S::active, integer_range(1, 6)},
          {"expert_width", &S::expert_width, integer_range(16, 128, 8)},
          {"shared_width", &S::shared_width, integer_range(16, 128, 8)},
          {"projection_experts", &S::projection_experts, integer_range(1, 16)}};
}
const gyre::matched_quantities target = gyre::inference_quantities{}(layered);

}  // namespace

TEST_CASE("a range of integers ends at its last value or before") {
  CHECK(integer_range(3, 3) == std::vector<size>{3});
  CHECK(integer_range(-2, 5, 3) == std::vector<size>{-2, 1, 4});
  CHECK(integer_range(1, 7, 3) == std::vector<size>{1, 4, 7});
  const size least = (std::numeric_limits<size>::min)(), most = (std::numeric_limits<size>::max)();
  CHECK(integer_range(least, most, most) == std::vector<size>{least, -1, most - 1});
  CHECK_THROWS_WITH(integer_range(2, 1), "integer_range: there is nothing from 2 to 1");
  CHECK_THROWS_WITH(integer_range(1, 2, 0), "integer_range: step is 0; it must be at least 1");
  CHECK_THROWS_WITH(integer_range(0, most), Catch::Contains("more than 2^24 values"));
}

TEST_CASE("two hyper-parameters at a time leave a valley in which one at a time stalls") {
  const box from{};
  for (size i = 1; i <= 20; ++i) {
    box wider = from, higher = from;
    wider.width = static_cast<int>(i), higher.side.height = i;
    REQUIRE(valley(wider) >= valley(from));
    REQUIRE(valley(higher) >= valley(from));
  }
  const auto found = gyre::match_sizes(from, box_parameters(), valley, anything);
  CHECK(found.sizes.width == 3);
  CHECK(found.sizes.side.height == 17);
  CHECK(found.objective == 0);
  CHECK(found.candidates == 1 + 400);
  CHECK_FALSE(found.cancelled);
}

TEST_CASE("one hyper-parameter is searched alone, and what is none stays") {
  const std::vector<box_parameter> width{{"width", &box::width, {2, 3, 5, 7}}};
  box from{};
  from.depth = 4;
  const auto found = gyre::match_sizes(from, width, valley, anything);
  CHECK(found.sizes.width == 7);  // the least bad, 10 not being listed
  CHECK(valley(found.sizes) == found.objective);
  CHECK(found.sizes.side.height == 10);
  CHECK(found.sizes.depth == 4);
}

TEST_CASE("a search begins at the listed values nearest to the given ones") {
  const auto begun = [](int width) {
    box from{};
    from.width = width;
    return gyre::match_sizes(
               from, std::vector<box_parameter>{{"width", &box::width, {2, 4, 9}}}, [](const box&) { return 1.0; }, anything)
        .sizes.width;
  };
  CHECK(begun(-7) == 2);
  CHECK(begun(2) == 2);
  CHECK(begun(3) == 2);
  CHECK(begun(6) == 4);
  CHECK(begun(7) == 9);
  CHECK(begun(50) == 9);
}

TEST_CASE("of equal candidates the first is kept, and the start before all others") {
  const auto flat = [](const box& b) { return b.width > 15 ? 1.0 : 2.0; };
  const auto found = gyre::match_sizes(box{}, box_parameters(), flat, anything);
  CHECK(found.sizes.width == 16);
  CHECK(found.sizes.side.height == 1);
  const auto constant = gyre::match_sizes(
      box{}, box_parameters(), [](const box&) { return 1.0; }, anything);
  CHECK(constant.sizes.width == 10);
  CHECK(constant.sizes.side.height == 10);
}

TEST_CASE("a start that is not allowed is left for one that is") {
  const auto odd = [](const box& b) { return b.width % 2 == 1 && b.side.height % 2 == 1; };
  const auto found = gyre::match_sizes(box{}, box_parameters(), valley, odd);
  CHECK(found.sizes.width == 3);
  CHECK(found.sizes.side.height == 17);
}

TEST_CASE("a matched mixture cannot be bettered by changing two of its sizes") {
  const auto parameters = mixture_parameters();
  const gyre::distance_to<> objective(target);
  const auto found = gyre::match_sizes(recurrent(), parameters, objective);
  CHECK(problem(found.sizes) == nullptr);
  CHECK(objective(found.sizes) == found.objective);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (std::size_t j = i + 1; j < parameters.size(); ++j)
      for (const size a : parameters[i].values())
        for (const size b : parameters[j].values()) {
          model_sizes s = found.sizes;
          parameters[i].set(s, a), parameters[j].set(s, b);
          if (problem(s) == nullptr && objective(s) < found.objective) FAIL("better at " << a << ", " << b);
        }
  const gyre::matched_quantities off = gyre::log_ratios(gyre::inference_quantities{}(found.sizes), target);
  CHECK(std::abs(off.parameters) < 0.02);
  CHECK(std::abs(off.flops) < 0.02);
  CHECK(off.memory == 0);
}

TEST_CASE("a search is repeatable, and more starts never find less") {
  const auto parameters = mixture_parameters();
  const gyre::distance_to<> objective(target);
  double before = std::numeric_limits<double>::infinity();
  for (const int starts : {1, 2, 8}) {
    const gyre::matching_options options{.starts = starts, .seed = gyre::seed{5}};
    const auto a = gyre::match_sizes(recurrent(), parameters, objective, gyre::makes_a_model{}, options);
    const auto b = gyre::match_sizes(recurrent(), parameters, objective, gyre::makes_a_model{}, options);
    CHECK(a.sizes == b.sizes);
    CHECK(a.of_starts == b.of_starts);
    CHECK(a.candidates == b.candidates);
    CHECK(a.of_starts.size() == static_cast<std::size_t>(starts));
    CHECK(a.objective == a.of_starts[static_cast<std::size_t>(a.start)]);
    CHECK(a.objective <= before);
    before = a.objective;
  }
  const auto soon = gyre::match_sizes(recurrent(), parameters, objective, gyre::makes_a_model{}, {.starts = 8, .enough = 0.02});
  CHECK(soon.objective <= 0.02);
  CHECK(soon.of_starts.size() == 1);
}

TEST_CASE("the objective is the root mean square of log ratios, and its measure can be chosen") {
  CHECK(gyre::deviation({2, 3, 4}, {2, 3, 4}) == 0);
  CHECK(gyre::deviation({2, 3, 8}, {2, 3, 4}) == Approx(std::log(2.0) / std::sqrt(3.0)));
  CHECK(gyre::deviation({1, 3, 4}, {2, 3, 4}) == Approx(std::log(2.0) / std::sqrt(3.0)));
  CHECK(gyre::deviation({1, 6, 2}, {2, 3, 4}) == Approx(std::log(2.0)));
  const auto training = [](const model_sizes& s) {
    const gyre::model_cost cost = gyre::cost_of(s);
    return gyre::matched_quantities{static_cast<double>(cost.parameters()),
                                    static_cast<double>(cost.forward() + cost.backward()),
                                    static_cast<double>(cost.sequence_cache)};
  };
  CHECK(gyre::distance_to(training(layered), training)(layered) == 0);
  CHECK(gyre::distance_to<>(target)(layered) == 0);
  CHECK_THROWS_WITH(gyre::distance_to<>({1, 0, 1}), Catch::Contains("a target of 0;"));
  CHECK_THROWS_WITH(gyre::distance_to<>({1, 1, std::nan("")}), Catch::Contains("must be positive"));
}

TEST_CASE("a search tells where it is and can be cancelled") {
  std::vector<gyre::matching_progress> told;
  gyre::matching_options options{.starts = 3};
  options.observe = [&](const gyre::matching_progress& p) {
    told.push_back(p);
    return true;
  };
  const auto whole =
      gyre::match_sizes(recurrent(), mixture_parameters(), gyre::distance_to<>(target), gyre::makes_a_model{}, options);
  REQUIRE(told.size() >= 30);
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].pairs == 10);
    CHECK(told[i].starts == 3);
    CHECK(told[i].least_left >= 0);
    CHECK((told[i].least_left == 0) == (told[i].unimproved == 10));
    if (i == 0) continue;
    CHECK(told[i].candidates > told[i - 1].candidates);
    CHECK(told[i].best <= told[i - 1].best);
    CHECK(told[i].start - told[i - 1].start == (told[i - 1].unimproved == 10 ? 1 : 0));
  }
  CHECK(told.back().best == whole.objective);
  CHECK(told.back().candidates == whole.candidates);

  int calls = 0;
  options.observe = [&](const gyre::matching_progress&) { return ++calls < 4; };
  const auto part =
      gyre::match_sizes(recurrent(), mixture_parameters(), gyre::distance_to<>(target), gyre::makes_a_model{}, options);
  CHECK(calls == 4);
  CHECK(part.cancelled);
  CHECK(part.candidates == told[3].candidates);
  CHECK(part.objective == told[3].best);

  // Nothing allowed so far is no error once the search is cancelled, and a large grid is not waited for.
  const std::vector<box_parameter> large{{"width", &box::width, integer_range(1, 1000)},
                                         {"height", height_of, integer_range(1, 1000)}};
  const auto none = gyre::match_sizes(box{}, large, valley, [](const box&) { return false; },
                                      {.observe = [](const gyre::matching_progress&) { return false; }});
  CHECK(none.cancelled);
  CHECK(none.candidates == 65536);
  CHECK(std::isinf(none.objective));
}

TEST_CASE("what cannot be searched is refused in a sentence") {
  const auto width = [](std::vector<size> values) { return box_parameter("width", &box::width, std::move(values)); };
  CHECK_THROWS_WITH(width({}), "hyper_parameter width: there are no values to choose from");
  CHECK_THROWS_WITH(width({1, 3, 3}), "hyper_parameter width: values must ascend, but 3 follows 3");
  CHECK_THROWS_WITH(width({1, size{1} << 31}), "hyper_parameter width: its integer cannot hold 2147483648");
  CHECK_THROWS_WITH(box_parameter("depth", &box::depth, {40000}), Catch::Contains("cannot hold 40000"));

  const auto search = [](std::vector<box_parameter> parameters, gyre::matching_options options = {}) {
    return gyre::match_sizes(box{}, parameters, valley, anything, options);
  };
  CHECK_THROWS_WITH(search({}), "match_sizes: there are no hyper-parameters to choose");
  CHECK_THROWS_WITH(search(box_parameters(), {.starts = 0}), "match_sizes: starts is 0; at least 1 is needed");
  CHECK_THROWS_WITH(search(box_parameters(), {.enough = -1}), "match_sizes: enough is -1; it must not be negative");
  CHECK_THROWS_WITH(
      gyre::match_sizes(box{}, box_parameters(), valley, [](const box&) { return false; }, {.starts = 2}),
      "match_sizes: none of 802 candidates from 2 starts is allowed; start from sizes that are, or allow more values");
  CHECK_THROWS_WITH(gyre::match_sizes(
                        box{}, box_parameters(), [](const box& b) { return std::sqrt(b.width - 2.0); }, anything),
                    "match_sizes: the objective is not a number at width 1, height 1");
}
