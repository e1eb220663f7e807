// The trainer: accumulation, clipping, stopping, and what it refuses.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gyre/train/adamw.hpp>

#include "train/support.hpp"

namespace {

using gyre_test::random_rows;
using net_type = gyre_test::reference_network<>;
const gyre::lognormal_poisson depth{.mean = 4, .backprop = 2};

template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const gyre::error& problem) {
    return problem.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("micro-batches are one large batch, though they count different numbers of targets", "[trainer]") {
  const random_rows data(6, 5);
  const auto train = [&](const std::vector<std::vector<gyre::batch>>& steps) {
    net_type net(gyre::reference{}, gyre::seed{1});
    gyre::trainer trainer(net, gyre::adamw{.lr = 0.01}, depth, {.seed = gyre::seed{5}});
    std::vector<gyre::step_report> reports;
    for (const auto& micro_batches : steps) reports.push_back(trainer.step(micro_batches));
    return std::pair(gyre_test::copy_of(net), reports);
  };
  const auto [large, large_reports] = train({{data.all()}, {data.all()}, {data.all()}});
  const std::vector<gyre::batch> cut{data.slice(0, 1), data.slice(1, 3), data.slice(4, 2)};
  const auto [small, small_reports] = train({cut, cut, cut});
  CHECK(largest_difference(large, small) <= 1e-12);
  for (std::size_t i = 0; i < 3; ++i) {
    const gyre::step_report &a = large_reports[i], &b = small_reports[i];
    CHECK(a.depth == b.depth);
    CHECK(a.tokens == b.tokens);
    CHECK(a.rows == 6);
    CHECK(b.rows == 6);
    CHECK(std::abs(a.loss - b.loss) <= 1e-12);
    CHECK(std::abs(a.gradient_norm - b.gradient_norm) <= 1e-12);
    CHECK(std::abs(a.seen.token_correlation - b.seen.token_correlation) <= 1e-12);
    CHECK(std::abs(a.seen.state_norm - b.seen.state_norm) <= 1e-12);
    CHECK(std::abs(a.seen.relative_change - b.seen.relative_change) <= 1e-12);
    CHECK(std::abs(a.seen.head_input_norm - b.seen.head_input_norm) <= 1e-12);
  }
  // The same rows in another order have other initial states: so the numbers above are no accident.
  const std::vector<gyre::batch> turned{data.slice(4, 2), data.slice(0, 4)};
  CHECK(largest_difference(large, train({turned, turned, turned}).first) > 1e-6);
}

TEST_CASE("depths are drawn once a step, or for each micro-batch where that is asked for", "[trainer]") {
  const random_rows data(2, 4);
  const std::vector<gyre::batch> two{data.slice(0, 1), data.slice(1, 1)};
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer once(net, gyre::adamw{.lr = 0}, depth, {.seed = gyre::seed{5}});
  gyre::trainer each(net, gyre::adamw{.lr = 0}, depth, {.seed = gyre::seed{5}, .depth_per_micro_batch = true});
  int differ = 0;
  for (std::uint64_t step = 1; step <= 10; ++step) {
    CHECK(once.next_depth() == depth.draw(gyre::seed{5}, step));
    CHECK(once.step(two).depth == depth.draw(gyre::seed{5}, step));
    const gyre::depth_draw last = each.step(two).depth;
    CHECK(last == depth.draw(gyre::seed{5}, step, 1));
    differ += last != depth.draw(gyre::seed{5}, step);
  }
  CHECK(differ > 0);
}

namespace {

/// A user's own rule: many steps of which one carries gradient, or few that all do.
struct alternating {
  gyre::depth_draw promised{10, 5};

  gyre::depth_draw draw(gyre::seed, std::uint64_t step, std::uint32_t = 0) const {
    return step % 2 == 0 ? gyre::depth_draw{10, 1} : gyre::depth_draw{0, 5};
  }
  double mean_depth() const { return 8; }
  gyre::depth_draw most_draw() const { return promised; }
  void validate() const {}
};

}  // namespace

TEST_CASE("memory is planned for the steps of either kind that a rule promises, and grows where it draws more", "[trainer]") {
  const random_rows data(2, 4);
  const auto bytes_for = [](gyre::depth_draw draw) {
    return gyre::plan_pass<gyre_test::Tiny, gyre::reference, gyre::fp64>(gyre::batch_layout::uniform(2, 4), draw, true)
        .tape_bytes;
  };
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer honest(net, gyre::adamw{.lr = 0}, alternating{});
  CHECK(honest.plan(2, 4).tape_bytes == bytes_for({10, 5}));
  std::vector<double> losses;
  for (int i = 0; i < 4; ++i) losses.push_back(honest.step(data.all()).loss);
  CHECK(honest.plan(2, 4).tape_bytes == bytes_for({10, 5}));
  CHECK(honest.plan(2, 4, {1, 9}).tape_bytes == bytes_for({10, 9}));

  gyre::trainer wrong(net, gyre::adamw{.lr = 0}, alternating{{0, 1}});
  CHECK(wrong.plan(2, 4).tape_bytes == bytes_for({2, 1}));  // the pass's own least
  for (const double loss : losses) CHECK(wrong.step(data.all()).loss == loss);
  CHECK(wrong.plan(2, 4).tape_bytes >= bytes_for({10, 5}));
  CHECK(wrong.plan(2, 4).tape_bytes < bytes_for({0, 15}));
}

TEST_CASE("a step is one clipped update by the mean gradient, and reports the losses of a plain pass", "[trainer]") {
  const random_rows data(3, 6);
  const double clip = GENERATE(0.05, 1000.0);
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre_test::scatter(net);
  const std::vector<double> before = gyre_test::copy_of(net);

  // By hand: one pass with scale 1 / count, the norm of all gradients, one adamw step.
  const gyre::seed seed{9};
  double counted = 0;
  for (const gyre::token t : data.targets) counted += t >= 0;
  const auto layout = gyre::batch_layout::uniform(3, 6);
  gyre::pass_memory<gyre::reference> memory(net.device());
  std::vector<double> g(before.size(), 0.0);
  const auto pass = gyre::run_pass(net, memory, layout, data.inputs, data.targets, gyre::state_key{seed, 1, 1},
                                   depth.draw(seed, 1), 1 / counted, g.data());
  double norm = 0;
  for (const double x : g) norm += x * x;
  norm = std::sqrt(norm);
  const double scale = 1 / std::max(1.0, norm / clip);

  gyre::trainer trainer(net, gyre::adamw{.lr = 0.01, .eps = 1, .decay = 0}, depth, {.seed = seed, .clip = clip});
  const gyre::step_report report = trainer.step(data.all());
  CHECK(report.step == 1);
  CHECK(std::abs(report.loss - pass.loss_sum / counted) <= 1e-13);
  CHECK(std::abs(report.gradient_norm - norm) <= 1e-13);
  CHECK(report.learning_rate == 0.01);
  CHECK(report.tokens == static_cast<gyre::index>(counted));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double gradient = scale * g[i];  // at t = 1 both corrected moments are the gradient's own
    CHECK(std::abs(net.values()[i] - (before[i] - 0.01 * gradient / (std::abs(gradient) + 1))) <= 1e-15);
  }
}

TEST_CASE("schedules reach the update and the report", "[trainer]") {
  const random_rows data(1, 4);
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{.lr = 0.01}, gyre::fixed_depth{2}, gyre::warmup_constant_cooldown{.warm_up = 4},
                        {.total_steps = 8});
  std::vector<double> rates;
  for (int i = 0; i < 8; ++i) rates.push_back(trainer.step(data.all()).learning_rate);
  CHECK(rates[0] == Approx(0.0025));
  CHECK(rates[3] == Approx(0.01));
  CHECK(rates[7] == 0);
  CHECK(trainer.finished());
}

TEST_CASE("run stops where its observer, the total or the batches say so", "[trainer]") {
  const random_rows data(4, 4);
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{}, gyre::fixed_depth{1}, {.total_steps = 9});
  const std::vector<gyre::batch> seven(7, data.slice(0, 1));
  std::vector<std::uint64_t> seen;
  const auto until = [&](std::uint64_t last) {
    return [&seen, last](const gyre::step_report& report) {
      seen.push_back(report.step);
      return report.step == last ? gyre::after_step::stop : gyre::after_step::go_on;
    };
  };
  CHECK(trainer.run(seven, until(3)) == 3);
  CHECK(seen == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(trainer.run(
            seven, [](const gyre::step_report&) {}, 2) == 3);  // three pairs; the seventh batch is dropped
  CHECK(trainer.steps() == 6);
  CHECK(trainer.rows_seen() == 3 + 6);
  CHECK(trainer.run(seven, [](const gyre::step_report&) {}) == 3);  // nine in all
  CHECK(trainer.run(seven, [](const gyre::step_report&) {}) == 0);
}

TEST_CASE("a loss that is not finite stops the step and changes nothing", "[trainer]") {
  const random_rows data(2, 4);
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{.lr = 0.25}, depth);
  trainer.step(data.all());
  const double keep = net.values()[0];
  net.values()[0] = std::numeric_limits<double>::quiet_NaN();
  net.refresh();
  const std::vector<double> moments = gyre_test::moments_of(trainer);
  const std::string text = error_of([&] { trainer.step(data.all()); });
  CAPTURE(text);
  CHECK(contains(text, "the loss is nan at step 2"));
  CHECK(contains(text, "learning rate 0.25"));
  CHECK(contains(text, "the weights are those of step 1"));
  CHECK(contains(text, "checkpoint"));
  CHECK(trainer.steps() == 1);
  CHECK(gyre_test::moments_of(trainer) == moments);
  // Repaired, it goes on as one that never stumbled.
  net.values()[0] = keep;
  net.refresh();
  trainer.step(data.all());
  net_type other_net(gyre::reference{}, gyre::seed{1});
  gyre::trainer other(other_net, gyre::adamw{.lr = 0.25}, depth);
  other.step(data.all());
  other.step(data.all());
  CHECK(gyre_test::copy_of(net) == gyre_test::copy_of(other_net));
}

TEST_CASE("a gradient that is not finite stops the step and changes nothing", "[trainer]") {
  const random_rows data(2, 4);
  gyre_test::reference_network<gyre_test::Untied> net(gyre::reference{}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  for (double& w : net.values().last(std::size_t{gyre_test::small.vocab} * gyre_test::small.width)) w *= 1e200;
  net.refresh();
  const std::vector<double> before = gyre_test::copy_of(net);
  const std::string text = error_of([&] { trainer.step(data.all()); });
  CAPTURE(text);
  CHECK(contains(text, "the norm of the gradient is inf at step 1"));
  CHECK(contains(text, "the weights are those of step 0"));
  CHECK(trainer.steps() == 0);
  CHECK(gyre_test::copy_of(net) == before);
  for (const double m : gyre_test::moments_of(trainer)) CHECK(m == 0);
}

TEST_CASE("wrong input is refused with its numbers", "[trainer]") {
  random_rows data(2, 4);
  net_type net(gyre::reference{}, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  const auto refused = [&](const gyre::batch& b, const std::string& part) {
    const std::string text = error_of([&] { trainer.step(b); });
    CAPTURE(text);
    CHECK(contains(text, part));
  };
  refused({}, "a batch of 0 rows of 0 tokens");
  refused({data.inputs, data.targets, 2, 5}, "8 inputs and 8 targets for 2 rows of 5 tokens");
  refused({{}, {}, gyre::index{1} << 62, 4}, "0 inputs and 0 targets for 4611686018427387904 rows");
  refused({data.inputs, std::span(data.targets).first(7), 2, 4}, "8 inputs and 7 targets");
  data.inputs[6] = 11;
  refused(data.all(), "row 1, position 2: input 11");
  data.inputs[6] = -1;
  refused(data.all(), "row 1, position 2: input -1");
  data.inputs[6] = 0, data.targets[3] = 99;
  refused(data.all(), "row 0, position 3: input");
  std::fill(data.targets.begin(), data.targets.end(), -1);
  refused(data.all(), "step 1 has no target that counts");
  const random_rows long_rows(1, 9);
  refused(long_rows.all(), "rows of 9 tokens exceed the context of 8");
  CHECK(contains(error_of([&] { trainer.step(std::span<const gyre::batch>{}); }), "no target that counts"));
  CHECK(contains(error_of([&] { gyre::trainer t(net, gyre::adamw{}, depth, {.clip = 0}); }), "clip is 0"));
  CHECK(contains(error_of([&] { gyre::trainer t(net, gyre::adamw{.lr = -1}, depth); }), "adamw: lr is -1"));
  CHECK(contains(error_of([&] { gyre::trainer t(net, gyre::adamw{}, gyre::fixed_depth{0}); }), "steps is 0"));
  CHECK(contains(error_of([&] { gyre::trainer t(net, gyre::adamw{}, depth, gyre::warmup_cosine{}); }), "total_steps"));
  CHECK(trainer.steps() == 0);
}
