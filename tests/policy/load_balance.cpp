// The law of the selection biases: they balance loads, frozen they stay balanced, and without them loads are uneven.
// [no_sanitizer]
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/core/random.hpp>
#include <gyre/policy/load_balance.hpp>

namespace {

using gyre::index, gyre::load_balance;
using loads = std::vector<std::int64_t>;

void update(const load_balance& rule, std::vector<float>& b, const loads& of) {
  rule.update(std::span<float>(b), std::span<const std::int64_t>(of));
}

/// Router logits x_e = o_e + z: o_e fixed for each expert, z of each token, depth and expert; all standard normal.
class router {
 public:
  static constexpr index experts = 64, active = 4, depths = 4;

  router() : offsets_(std::size_t{experts}) { stream_.fill_normal(std::span<float>(offsets_), {0xffffffff, 0, 0, 0}); }

  /// Pairs of every expert, over all depths of `tokens` tokens of step `step`.
  loads count(std::uint32_t step, index tokens, const std::vector<float>& bias) {
    const index rows = tokens * depths, pairs = rows * active;
    std::vector<float> x(static_cast<std::size_t>(rows * experts)), logits(static_cast<std::size_t>(pairs)), gates(logits);
    std::vector<std::int32_t> chosen(logits.size());
    for (index i = 0; i < rows; ++i) {
      const std::span<float> row(x.data() + i * experts, std::size_t{experts});
      stream_.fill_normal(row, {step, static_cast<std::uint32_t>(i), 0, 0});
      for (std::size_t e = 0; e < row.size(); ++e) row[e] += offsets_[e];
    }
    device_.route(gyre::matrix_view<const float>(x.data(), rows, experts), bias.data(), 1.0, active, chosen.data(),
                  logits.data(), gates.data());
    loads of(std::size_t{experts});
    for (const std::int32_t e : chosen) ++of[static_cast<std::size_t>(e)];
    return of;
  }

 private:
  gyre::random_stream stream_{gyre::seed{7}, gyre::purpose::task};
  gyre::cpu device_{1};
  std::vector<float> offsets_;
};

double most_over_mean(const loads& of) {
  const auto total = std::accumulate(of.begin(), of.end(), std::int64_t{0});
  return static_cast<double>(*std::max_element(of.begin(), of.end())) * static_cast<double>(of.size()) /
         static_cast<double>(total);
}

}  // namespace

TEST_CASE("biases move by the sign of the distance from the mean load", "[load_balance]") {
  std::vector<float> b{0.5f, 0, 0, 0};
  update({0.125}, b, {1, 2, 3, 2});  // mean 2
  CHECK(b == std::vector<float>{0.625f, 0, -0.125f, 0});
  update({0.125}, b, {2, 2, 2, 3});  // mean 9/4: every load is on one of its sides
  CHECK(b == std::vector<float>{0.75f, 0.125f, 0, -0.125f});
  const auto before = b;
  update({0.125}, b, {0, 0, 0, 0});
  update({0.125, true}, b, {9, 0, 0, 0});
  CHECK(b == before);
  CHECK_THROWS_WITH(update({}, b, {1, 2}), Catch::Contains("4 biases for the loads of 2 experts"));
  std::vector<float> none;
  update({}, none, {});
  // Loads beyond the integers of a double are still told apart.
  update({0.125}, b, {std::int64_t{1} << 60, (std::int64_t{1} << 60) + 1, std::int64_t{1} << 60, std::int64_t{1} << 60});
  CHECK(b == std::vector<float>{0.875f, 0, 0.125f, 0});
}

TEST_CASE("the rule balances experts whose logits differ, and frozen biases keep them balanced", "[load_balance]") {
  router x;
  load_balance rule{.rate = 1e-2};
  std::vector<float> b(std::size_t{router::experts}, 0.0f);
  constexpr std::uint32_t held_out = 1u << 20;
  const double without = most_over_mean(x.count(held_out, 16384, b));
  for (std::uint32_t step = 0; step < 1500; ++step) update(rule, b, x.count(step, 64, b));
  rule.frozen = true;
  const auto kept = b;
  const loads of = x.count(held_out, 16384, b);
  update(rule, b, of);
  CHECK(b == kept);
  CAPTURE(without, most_over_mean(of));
  CHECK(without > 3);
  CHECK(most_over_mean(of) <= 1.5);
}
