// Monitors against their definitions with the whole matrix of correlations, and the two watches.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/train/adamw.hpp>
#include <gyre/train/report.hpp>

#include "train/support.hpp"

namespace {

constexpr int width = 12;

struct states {
  std::vector<double> data;
  gyre::rows<const double, width> rows() const { return {data.data(), static_cast<gyre::index>(data.size()) / width}; }
};
states random_states(std::size_t tokens, unsigned number, double shared) {
  std::mt19937 random(number);
  std::normal_distribution<double> normal;
  states s;
  std::vector<double> common(width);
  for (double& x : common) x = normal(random);
  for (std::size_t i = 0; i < tokens * width; ++i) s.data.push_back(shared * common[i % width] + normal(random));
  return s;
}

// Centre over features, unit-normalise each token, mean of the off-diagonal of X X^T.
double correlation(const double* x, int tokens) {
  std::vector<std::vector<double>> unit;
  for (gyre::index i = 0; i < tokens; ++i) {
    std::vector<double> row(x + i * width, x + (i + 1) * width);
    double mean = 0, squares = 0;
    for (const double v : row) mean += v / width;
    for (double& v : row) v -= mean, squares += v * v;
    for (double& v : row) v /= std::sqrt(squares);
    unit.push_back(row);
  }
  double sum = 0;
  for (int i = 0; i < tokens; ++i)
    for (int j = 0; j < tokens; ++j)
      for (int k = 0; k < width && i != j; ++k)
        sum += unit[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] *
               unit[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)];
  return sum / (tokens * (tokens - 1));
}
double root_mean_square(const std::vector<double>& x) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  return std::sqrt(squares / (static_cast<double>(x.size()) / width));
}

template <class B>
gyre::monitors measured(B device, const gyre::batch_layout& layout, const states& previous, const states& last,
                        const states& hidden) {
  std::vector<std::byte> memory(1 << 16);
  gyre::arena scratch(memory.data(), memory.size());
  gyre::detail::monitor_sums sums;
  auto* const numbers = scratch.take<double>(gyre::detail::measured_numbers(layout));
  gyre::detail::measure(device, scratch, layout, previous.rows(), last.rows(), hidden.rows(), numbers);
  gyre::detail::add_measured(layout, width, numbers, sums);
  return sums.means();
}

}  // namespace

TEMPLATE_TEST_CASE("monitors are their definitions, sequence by sequence", "[monitors]", gyre::reference, gyre::cpu) {
  const double shared = GENERATE(0.0, 0.5, 20.0);
  gyre::batch_layout layout;  // ragged: a sequence of one token correlates with nothing
  for (const gyre::index count : {5, 1, 9}) layout.add(count, 0, 0);
  const states previous = random_states(15, 1, shared), last = random_states(15, 2, shared), hidden = random_states(15, 3, 1);
  const gyre::monitors m = measured(TestType{}, layout, previous, last, hidden);
  const double expected = (correlation(last.data.data(), 5) + correlation(last.data.data() + gyre::index{6} * width, 9)) / 2;
  CHECK(std::abs(m.token_correlation - expected) <= 1e-13);
  std::vector<double> change = last.data;
  for (std::size_t i = 0; i < change.size(); ++i) change[i] -= previous.data[i];
  CHECK(m.state_norm == Approx(root_mean_square(last.data)).epsilon(1e-14));
  CHECK(m.state_change == Approx(root_mean_square(change)).epsilon(1e-14));
  CHECK(m.relative_change == Approx(root_mean_square(change) / root_mean_square(last.data)).epsilon(1e-14));
  CHECK(m.head_input_norm == Approx(root_mean_square(hidden.data)).epsilon(1e-14));
}

TEST_CASE("the token correlation is 1 for equal tokens and -1 / (S - 1) for tokens that cancel", "[monitors]") {
  states same = random_states(1, 4, 0), opposite = same;
  for (int i = 0; i < 3 * width; ++i) same.data.push_back(same.data[static_cast<std::size_t>(i)]);
  for (int i = 0; i < width; ++i) opposite.data.push_back(-opposite.data[static_cast<std::size_t>(i)]);
  CHECK(measured(gyre::reference{}, gyre::batch_layout::uniform(1, 4), same, same, same).token_correlation == Approx(1));
  CHECK(measured(gyre::reference{}, gyre::batch_layout::uniform(1, 2), opposite, opposite, opposite).token_correlation ==
        Approx(-1));
}

TEST_CASE("a step reports the states before n_c and the head's input", "[monitors]") {
  // Against a pass run by hand, whose tape holds them.
  const gyre_test::random_rows data(2, 6);
  gyre_test::reference_network<> net(gyre::reference{}, gyre::seed{1});
  gyre_test::scatter(net);
  const gyre::lognormal_poisson depth{.mean = 4, .backprop = 2};
  const auto layout = gyre::batch_layout::uniform(2, 6);
  gyre::pass_memory<gyre::reference> memory(net.device());
  const auto pass = gyre::run_pass(net, memory, layout, data.inputs, data.targets, gyre::state_key{{}, 1, 1}, depth.draw({}, 1),
                                   1.0, nullptr);
  const auto norm = [](const double* x, std::size_t size) {
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i) squares += x[i] * x[i];
    return std::sqrt(squares / 12);
  };
  const std::size_t size = 96;  // 12 tokens, width 8
  const double state = norm(pass.tape.steps.last.data, size), head = norm(pass.tape.hidden.data, size);
  gyre::trainer trainer(net, gyre::adamw{}, depth);
  const gyre::step_report report = trainer.step(data.all());
  CHECK(report.seen.state_norm == Approx(state).epsilon(1e-13));
  CHECK(report.seen.head_input_norm == Approx(head).epsilon(1e-13));
  CHECK(report.seen.state_change > 0);
}

TEST_CASE("the collapse watch names a lasting correlation, not a spike", "[monitors]") {
  gyre::collapse_watch watch;
  for (std::uint64_t step = 1; step <= 300; ++step) CHECK_FALSE(watch.see(step, step % 50 == 1 ? 1.0 : 0.4));
  std::uint64_t named = 0;
  for (std::uint64_t step = 301; step <= 600 && named == 0; ++step)
    if (const auto text = watch.see(step, step % 7 == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.999)) {
      named = step;
      CHECK(text->find("hidden-state collapse") != std::string::npos);
      CHECK(text->find("step " + std::to_string(step)) == 0);
    }
  CHECK(named > 301);
  CHECK(named <= 500);
  CHECK(watch.average() > 0.95);
  // A high start, as random weights may have, is no failure.
  gyre::collapse_watch fresh;
  for (std::uint64_t step = 1; step <= 20; ++step) CHECK_FALSE(fresh.see(step, 0.99));
  gyre::collapse_watch strict{.threshold = 0.3, .memory = 0};
  CHECK(strict.see(1, 0.31));
}

TEST_CASE("the ignored-state watch compares r = 1 with r = 8 once the model has learned", "[monitors]") {
  const gyre::ignored_state_watch watch;
  CHECK_FALSE(watch.see(10, 256, 5.0, 5.0));  // ln 256 = 5.545: not learned yet
  CHECK_FALSE(watch.see(10, 256, 2.02, 2.0));
  const auto text = watch.see(10, 256, 2.005, 2.0);
  REQUIRE(text);
  CHECK(text->find("ignored state") != std::string::npos);
  CHECK(text->find("step 10") == 0);
  CHECK(watch.see(10, 256, 1.9, 2.0));
  CHECK_FALSE(watch.see(10, 256, std::numeric_limits<double>::quiet_NaN(), 2.0));
}

TEST_CASE("a report prints as one line", "[monitors]") {
  gyre::step_report report;
  report.step = 12, report.loss = 2, report.depth = {5, 4};
  std::ostringstream out;
  out << report;
  CHECK(out.str().find("step 12  loss 2.0000 (2.885 bits)  r 9 = 5 + 4") == 0);
  CHECK(out.str().find('\n') == std::string::npos);
}
