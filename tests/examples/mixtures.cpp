// What mixtures and experiments stand on: tasks as data, accuracy, what a mixture tells about itself. [no_sanitizer]
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "../../examples/support/mixture_report.hpp"
#include "../../examples/support/mixture_training.hpp"
#include "../../examples/support/task_data.hpp"
#include "scratch_folder.hpp"

using namespace examples;
using gyre::token;
using gyre_test::scratch_folder;

namespace {

std::vector<token> copy(std::span<const token> from) { return {from.begin(), from.end()}; }

mixture_rules rules(std::uint64_t total) {
  return {gyre::adamw{.lr = 3e-3}, any_schedule{gyre::warmup_constant_cooldown{5, 1, 1}},
          gyre::trainer_options{.seed = gyre::seed{5}, .total_steps = total}};
}

}  // namespace

TEST_CASE("tasks: fresh rows each step and micro-batch, others for examinations", "[examples]") {
  for (const std::string& name : task_names()) {
    INFO(name);
    const gyre::index tokens = name == "swaps" ? 32 : 6;  // so many that no two rows are equal by chance
    const auto data = make_task(name, 4, tokens, gyre::seed{3});
    const auto length = static_cast<std::size_t>(data->length());
    std::set<std::vector<token>> seen;
    for (std::uint64_t step = 1; step <= 10; ++step)
      for (std::uint32_t part = 0; part < 2; ++part) {
        const gyre::batch b = data->next(step, part, 8);
        CHECK((b.rows == 4 && b.inputs.size() == 4 * length));
        for (std::size_t row = 0; row < 4; ++row) seen.insert(copy(b.inputs.subspan(length * row, length)));
      }
    CHECK(seen.size() == 80);
    const std::vector<token> again = copy(data->next(7, 1, 8).inputs);
    CHECK(again == copy(make_task(name, 4, tokens, gyre::seed{3})->next(7, 1, 1).inputs));  // whatever the depth
    gyre::index rows = 0, counted = 0;
    for (const std::uint64_t examination : {std::uint64_t{0}, std::uint64_t{1}})
      for (const gyre::batch& b : data->held_out_rows(1000, examination)) {
        CHECK(b.rows * b.length <= 4096);
        rows += b.rows;
        for (std::size_t i = 0; i < b.targets.size(); ++i) counted += b.targets[i] >= 0;
        for (std::size_t row = 0; row < static_cast<std::size_t>(b.rows); ++row)
          CHECK(seen.insert(copy(b.inputs.subspan(length * row, length))).second);
      }
    CHECK(rows == 2000);
    CHECK(counted == 2000 * data->answers());
    CHECK(data->held_out(8, 60 * data->answers()).front().rows == 60);
    CHECK_FALSE(data->depth_should_help());
  }
  CHECK(make_task("permutations", 4, 6, {})->identity() != make_task("permutations", 4, 7, {})->identity());
  CHECK_THROWS_WITH(make_task("sums", 4, 6, {}),
                    Catch::Contains("no task is named 'sums'; there are swaps, k-hops and permutations"));
  CHECK_THROWS_WITH(make_task("permutations", 4, 49, {}), Catch::Contains("rows of 49 elements; 1 to 48"));
  CHECK_THROWS_WITH(make_task("swaps", 4, 1, {}), Catch::Contains("the task swaps: rows of 1 elements; 2 to 48"));
  CHECK_THROWS_WITH(make_task("k-hops", 0, 6, {}), Catch::Contains("0 rows to a batch"));
}

TEST_CASE("a mixture learns what it can, and tells of its experts and depths", "[examples]") {
  const auto model = make_mixture("attending-8", gyre::cpu(1), rules(60));
  CHECK((model->depth() == 8 && model->steps_of_use() == 8));
  permutations_data data(240, 1, gyre::seed{3});  // the product of one element is the element
  const auto before = model->accuracy_on(data.held_out_rows(500, 1), 8);
  REQUIRE(before);
  CHECK((before->answers == 500 && before->rows == 500));
  CHECK(before->all < 0.6);  // a tied head gives back a token whose state begins with its embedding
  for (std::uint64_t step = 1; step <= 60; ++step) {
    model->accumulate(data.next(step, 0, 8));
    const gyre::step_report report = model->update();
    CHECK(report.expert_load >= 1);
  }
  const auto after = model->accuracy_on(data.held_out_rows(500, 1), 8);
  CHECK(after->all > 0.9);
  CHECK(after->last == after->all);

  // Rows of three: the first element is known, the products are not.
  permutations_data longer(32, 3, gyre::seed{3});
  const auto three = model->accuracy_on(longer.held_out_rows(500, 1), 8);
  CHECK((three->answers == 1500 && three->rows == 500));
  CHECK(three->last < 0.3);
  CHECK(three->all > three->last);

  const mixture_examination seen = model->examine(longer.held_out_rows(500, 1));
  CHECK((seen.experts.depths == 8 && seen.experts.experts == 128 && seen.experts.active == 2 && seen.experts.shared));
  CHECK(seen.experts.hits * 128 * 8 == Approx(1500 * 2 * 8));
  REQUIRE(seen.reading.size() == 8);
  for (std::size_t reader = 0; reader < 8; ++reader) {
    double sum = 0;
    for (std::size_t read = 0; read < 8; ++read) {
      sum += seen.reading[reader][read];
      if (read > reader) CHECK(seen.reading[reader][read] == 0);
    }
    CHECK(sum == Approx(1).margin(1e-5));
  }
}

TEST_CASE("accuracies over a training, and when they first reach what is wanted", "[examples]") {
  training_records records;
  for (const auto& [step, all] : {std::pair{10, 0.5}, std::pair{20, 0.91}, std::pair{30, 0.85}, std::pair{40, 0.95}})
    records.validations.push_back({static_cast<std::uint64_t>(step), "interval", {{8, 1.0, 64}}, {{all, all / 2, 64, 8}}});
  records.validations.push_back({40, "watch", {{8, 1.0, 64}}, {}});
  const accuracy_curve curve = curve_of(records, 384);
  CHECK(curve.tokens == std::vector<double>{3840, 7680, 11520, 15360});
  CHECK(curve.all == std::vector<double>{0.5, 0.91, 0.85, 0.95});
  CHECK(curve.last[3] == 0.475);
  CHECK(tokens_to(curve, 0.9) == 7680);
  CHECK(tokens_to(curve, 0.95) == 15360);
  CHECK_FALSE(tokens_to(curve, 0.96));

  gyre::expert_use_report use;
  use.used_at_least = {1, 0.75, 0.5};
  CHECK(used_at(use, 3) == 0.5);
  CHECK_FALSE(used_at(use, 4));
  use.shared = false;
  CHECK_FALSE(used_at(use, 1));
}

TEST_CASE("k hops count the answers to their questions", "[examples]") {
  const auto model = make_mixture("recurrent-8", gyre::cpu(1), rules(1));
  k_hops_data data(4, gyre::seed{3}, 1);
  const auto right = model->accuracy_on(data.held_out_rows(200, 1), 8);
  CHECK((right->answers == 200 && right->rows == 200));
  CHECK(right->all == right->last);
  const auto more = model->accuracy_on(k_hops_data(4, gyre::seed{3}).held_out_rows(50, 1), 8);
  CHECK((more->answers == 1000 && more->rows == 50));
  CHECK(model->examine(data.held_out_rows(20, 1)).reading.empty());
}

TEST_CASE("a layered mixture runs once, and its routers are followed by depth", "[examples]") {
  const auto model = make_mixture("layered-8", gyre::cpu(1), rules(1));
  CHECK((model->depth() == 8 && model->steps_of_use() == 1));
  permutations_data data(4, 5, gyre::seed{3});
  const mixture_examination seen = model->examine(data.held_out_rows(20, 1));
  CHECK((seen.experts.depths == 8 && seen.experts.experts == 8 && !seen.experts.shared));
  const double ratio = static_cast<double>(make_mixture("attending-8", gyre::cpu(1), rules(1))->forward_flops(48)) /
                       static_cast<double>(model->forward_flops(48));
  CHECK(std::abs(ratio - 1) < 0.02);
  CHECK_THROWS_WITH(make_mixture("layered-9", gyre::cpu(1), rules(1)), Catch::Contains("layered-8, layered-16 and layered-32"));
  CHECK_THROWS_WITH(make_mixture("other", gyre::cpu(1), rules(1)),
                    Catch::Contains("attending-8, recurrent-8 and attending-16"));
}
