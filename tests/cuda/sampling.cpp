// Tokens that cuda draws: as the reference and the host's functions do, of any vocabulary, and none from logits without a softmax.
#include "trials.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gyre/generate/sampling.hpp>

namespace gyre_test {

using gyre::index, gyre::operation, gyre::sampling_row, gyre::token;

namespace {

/// Rows of logits in the memory of a device, and what it draws from them.
template <class S>
struct drawing {
  shuffled_cuda device;
  index rows, vocabulary;
  gyre::simt::device_array<S> logits;
  gyre::simt::device_array<token> chosen;
  gyre::simt::device_array<double> log_probabilities;

  drawing(index n, index v)
      : rows(n),
        vocabulary(v),
        logits(machine().template allocate<S>(static_cast<std::size_t>(n * v))),
        chosen(machine().template allocate<token>(static_cast<std::size_t>(n))),
        log_probabilities(machine().template allocate<double>(static_cast<std::size_t>(n))) {}
  gyre::simt::machine& machine() { return device.device().machine(); }
  std::span<const S> row(index i) const { return {logits.data() + i * vocabulary, static_cast<std::size_t>(vocabulary)}; }
  void draw(const std::vector<sampling_row>& choices, const std::vector<token>& histories = {}) {
    device.sample(gyre::matrix_view<const S>(logits.data(), rows, vocabulary), std::span<const sampling_row>(choices),
                  std::span<const token>(histories), chosen.data(), log_probabilities.data());
  }
};

}  // namespace

TEMPLATE_TEST_CASE("tokens of cuda agree with the reference", "[cuda_kernels]", float, double) {
  check_operations<TestType, operation::sample>(24);
  if (gyre::simt::machine::watches_accesses() && sizeof(TestType) == 4) {
    shuffled_cuda right;
    check_transfers<TestType, operation::sample>(right, {{"rows", 4}, {"top_k", 40}, {"top_p", 1}, {"penalty", 1}});
  }
}

TEMPLATE_TEST_CASE("cuda draws from any vocabulary", "[cuda_kernels]", float, double) {
  for (const index vocabulary : {31, 33, 512, 513, 4099})
    for (const index top_k : {0, 1, 40})
      check_trial<TestType, operation::sample>({{"rows", 2},
                                                {"vocabulary", vocabulary},
                                                {"spread", 1},
                                                {"top_k", top_k},
                                                {"top_p", top_k % 2},
                                                {"min_p", 1},
                                                {"penalty", 1},
                                                {"gap", 3}});
  check_trial<TestType, operation::sample>(
      {{"rows", 1}, {"vocabulary", 32771}, {"spread", 1}, {"top_k", 1000}, {"top_p", 1}, {"penalty", 2}, {"temperature", 1}});
}

TEST_CASE("cuda draws what the host's functions draw, by any rules", "[cuda_kernels]") {
  std::mt19937 random(3);
  const auto pick = [&](std::vector<float> from) { return from[random() % from.size()]; };
  for (const index vocabulary : {1, 7, 257, 1000}) {
    constexpr index rows = 24;
    drawing<float> d(rows, vocabulary);
    std::vector<sampling_row> choices;
    std::vector<token> histories;
    for (index i = 0; i < rows; ++i) {
      const bool ties = i % 4 == 0;
      for (index t = 0; t < vocabulary; ++t)
        d.logits[static_cast<std::size_t>(i * vocabulary + t)] =
            ties ? static_cast<float>(static_cast<int>(random() % 5) - 2)
                 : static_cast<float>(std::normal_distribution<double>(0, 3)(random));
      sampling_row row;
      row.rules = {pick({0, 1, 1, 0.3f, 2.5f}), pick({1, 1, 0.95f, 0.501f, 1e-6f}),    pick({0, 0, 0.0501f, 0.9f}),
                   pick({1, 1, 1.3f, 0.7f}),    static_cast<int>(pick({0, 0, 1, 20})), random() % 16 == 0};
      row.uniform = gyre::sampling_uniform(gyre::seed{9}, 1, static_cast<std::uint64_t>(i));
      row.history = std::ssize(histories), row.history_size = static_cast<index>(random() % 30);
      for (index n = 0; n < row.history_size; ++n)
        histories.push_back(static_cast<token>(random() % static_cast<unsigned>(vocabulary)));
      row.id_only = i % 6 == 5;
      choices.push_back(row);
    }
    d.draw(choices, histories);
    std::vector<double> probabilities(static_cast<std::size_t>(vocabulary));
    std::vector<token> order(probabilities.size());
    for (index i = 0; i < rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const sampling_row& row = choices[at];
      const gyre::sampled_token expected =
          gyre::sample(d.row(i), gyre::detail::history_of(row, histories), row.rules, row.uniform, {probabilities, order});
      CAPTURE(vocabulary, i, row.rules.top_k, row.rules.top_p, row.rules.min_p, row.rules.temperature);
      CHECK(d.chosen[at] == expected.id);
      CHECK(d.log_probabilities[at] == (row.id_only ? Approx(0) : Approx(expected.log_probability).epsilon(1e-13)));
    }
  }
}

TEST_CASE("of equal tokens cuda keeps the first, as many as fit, and draws each as often as the others", "[cuda_kernels]") {
  constexpr index rows = 14, vocabulary = 1500, kept = 7;
  drawing<float> d(rows, vocabulary);
  for (float& z : d.logits) z = 2;
  std::vector<sampling_row> choices(rows);
  for (index i = 0; i < rows; ++i) {
    sampling_row& row = choices[static_cast<std::size_t>(i)];
    row.uniform = (static_cast<double>(i % kept) + 0.5) / kept;
    if (i < kept)
      row.rules.top_k = kept;
    else
      row.rules.top_p = (kept + 0.5f) / vocabulary;
  }
  d.draw(choices);
  for (index i = 0; i < rows; ++i) CHECK(d.chosen[static_cast<std::size_t>(i)] == i % kept);

  // Far above the uniform number's border with the likeliest: one that is likelier than all that top_p leaves stays.
  d.logits[vocabulary - 1] = 10;
  choices[0] = {.rules = {.top_p = 1e-6f}, .uniform = 0.999};
  d.draw(choices);
  CHECK(d.chosen[0] == vocabulary - 1);
  CHECK(d.log_probabilities[0] == Approx(-std::log1p((vocabulary - 1) * std::exp(-8.0))));
}

TEST_CASE("cuda finds no token in logits that have no softmax, and harms no other row", "[cuda_kernels]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr index rows = 5, vocabulary = 600;
  for (const bool greedy : {false, true})
    for (const bool id_only : {false, true}) {
      drawing<float> d(rows, vocabulary);
      for (float& z : d.logits) z = -infinity;
      d.logits[3] = d.logits[500] = 7;                                   // row 0 has a softmax
      d.logits[vocabulary + 1] = nan;                                    // row 1
      d.logits[2 * vocabulary + 599] = infinity;                         // row 2; row 3 is impossible altogether
      d.logits[4 * vocabulary] = nan, d.logits[4 * vocabulary + 1] = 5;  // row 4
      sampling_row row{.rules = {.repetition_penalty = 2, .greedy = greedy}, .uniform = 0.75, .history_size = 2};
      row.id_only = id_only;
      d.draw(std::vector<sampling_row>(rows, row), {500, 7});
      CHECK(d.chosen[0] == 3);  // e^7 of e^7 + e^3.5
      CHECK(d.log_probabilities[0] == Approx(id_only ? 0 : std::log(0.5)));
      for (std::size_t i = 1; i < rows; ++i) {
        CHECK(d.chosen[i] == -1);
        CHECK(d.log_probabilities[i] == 0);
      }
    }
}

TEST_CASE("cuda refuses rules, histories and numbers that mean nothing", "[cuda_kernels]") {
  drawing<float> d(1, 4);
  for (float& z : d.logits) z = 0;
  CHECK_THROWS_WITH(d.draw({}), Catch::Contains("sample: 1 rows of logits and 0 of rules"));
  CHECK_THROWS_WITH(d.draw({{.rules = {.top_p = 0}}}), Catch::Contains("top_p is 0"));
  CHECK_THROWS_WITH(d.draw({{.uniform = 1}}), Catch::Contains("the uniform number is 1"));
  CHECK_THROWS_WITH(d.draw({{.history = 1, .history_size = 2}}, {0, 0}),
                    Catch::Contains("a history of 2 tokens from token 1 on; there are 2"));
  CHECK_THROWS_WITH(d.draw({{.rules = {.repetition_penalty = 2}, .history_size = 2}}, {0, 4}),
                    Catch::Contains("the history holds token 4, outside the vocabulary of 4"));
  CHECK_NOTHROW(d.draw({{.history_size = 2}}, {0, 4}));  // nobody looks
}

}  // namespace gyre_test
