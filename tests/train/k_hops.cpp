// The format of the k-hops task, and that its rows are what they say.
#include <catch2/catch.hpp>

#include <gyre/train/k_hops.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "train/task_rows.hpp"

using gyre::k_hops_task;
using gyre::purpose;
using gyre::random_stream;
using gyre::seed;
using gyre::token;

namespace {

constexpr std::size_t length = k_hops_task::length;

using rows = gyre_test::task_rows<length>;

double chi_square(const std::vector<double>& seen) {
  double total = 0, chi = 0;
  for (const double n : seen) total += n;
  const double expected = total / static_cast<double>(seen.size());
  for (const double n : seen) chi += (n - expected) * (n - expected) / expected;
  return chi;
}
double most_chi(double freedom) { return freedom + 5 * std::sqrt(2 * freedom); }

}  // namespace

TEST_CASE("a k-hops row is eight edges, a node, a number of hops, and where they lead", "[k_hops]") {
  CHECK(k_hops_task::vocabulary == 80);
  CHECK(k_hops_task::length == 10);
  const std::size_t count = 500;
  rows batch(count);
  k_hops_task::fill(random_stream(seed{1}, purpose::task), 9, 0, batch.inputs, batch.targets);
  for (std::size_t r = 0; r < count; ++r) {
    const token* in = &batch.inputs[r * length];
    const token* out = &batch.targets[r * length];
    std::vector<token> f(8, -1);
    std::set<token> images;
    for (int i = 0; i < 8; ++i) {
      REQUIRE((in[i] >= 0 && in[i] < 64));
      REQUIRE(f[static_cast<std::size_t>(in[i] / 8)] == -1);  // every node has one edge
      f[static_cast<std::size_t>(in[i] / 8)] = in[i] % 8;
      images.insert(in[i] % 8);
    }
    REQUIRE(images.size() == 8);
    CHECK(std::count(out, out + 9, -1) == 9);
    REQUIRE((in[8] >= 64 && in[8] < 72));
    REQUIRE((in[9] >= 72 && in[9] < 80));
    token at = in[8] - 64;
    for (token k = 1; k <= in[9] - 71; ++k) at = f[static_cast<std::size_t>(at)];
    CHECK(out[9] == 64 + at);
  }
}

TEST_CASE("edges, nodes and numbers of hops are uniform and independent", "[k_hops]") {
  const std::size_t count = 8000;
  rows batch(count);
  k_hops_task::fill(random_stream(seed{2}, purpose::task), 1, 0, batch.inputs, batch.targets);
  std::vector<double> first(64, 0.0), asked(64, 0.0), place(64, 0.0);
  for (std::size_t r = 0; r < count; ++r) {
    const token* in = &batch.inputs[r * length];
    ++first[static_cast<std::size_t>(in[0])];
    ++asked[static_cast<std::size_t>(8 * (in[8] - 64) + in[9] - 72)];
    const token* edge = std::find_if(in, in + 8, [&](token e) { return e / 8 == in[8] - 64; });
    ++place[static_cast<std::size_t>(8 * (edge - in) + in[9] - 72)];  // where the first pointer stands
  }
  for (const auto* seen : {&first, &asked, &place}) CHECK(chi_square(*seen) < most_chi(63));
}

TEST_CASE("k-hops rows are keyed by stream, step and row, not by how the batch is cut", "[k_hops]") {
  const random_stream stream(seed{3}, purpose::task);
  rows whole(64), parts(64);
  k_hops_task::fill(stream, 5, 0, whole.inputs, whole.targets);
  const std::span<token> in(parts.inputs), out(parts.targets);
  k_hops_task::fill(stream, 5, 0, in.first(24 * length), out.first(24 * length));
  k_hops_task::fill(stream, 5, 24, in.subspan(24 * length), out.subspan(24 * length));
  CHECK(whole.inputs == parts.inputs);
  CHECK(whole.targets == parts.targets);

  rows step(64), other(64), fresh(64);
  k_hops_task::fill(stream, 6, 0, step.inputs, step.targets);
  k_hops_task::fill(random_stream(seed{4}, purpose::task), 5, 0, other.inputs, other.targets);
  k_hops_task::fill(random_stream(seed{3}, purpose::task, 1), 5, 0, fresh.inputs, fresh.targets);
  for (const rows* r : {&step, &other, &fresh}) {
    int same = 0;
    for (std::size_t i = 0; i < 64; ++i)
      same += std::equal(&r->inputs[i * length], &r->inputs[i * length] + length, &whole.inputs[i * length]);
    CHECK(same == 0);  // equal by chance with probability 64 / 8!^2 / 64
  }
}

TEST_CASE("a row may ask several questions, and one of fewer begins it", "[k_hops]") {
  CHECK(k_hops_task::most_length == 48);
  const random_stream stream(seed{5}, purpose::task);
  constexpr std::size_t n = k_hops_task::most_length;
  const std::size_t count = 400;
  gyre_test::task_rows<n> batch(count);
  rows brief(count);
  k_hops_task::fill(stream, 3, 0, batch.inputs, batch.targets, 20);
  k_hops_task::fill(stream, 3, 0, brief.inputs, brief.targets);
  std::vector<double> asked(64, 0.0), next(64, 0.0);
  for (std::size_t r = 0; r < count; ++r) {
    const token* in = &batch.inputs[r * n];
    const token* out = &batch.targets[r * n];
    CHECK(std::equal(in, in + length, &brief.inputs[r * length]));
    CHECK(std::equal(out, out + length, &brief.targets[r * length]));
    std::vector<token> f(8, -1);
    for (std::size_t i = 0; i < 8; ++i) f[static_cast<std::size_t>(in[i] / 8)] = in[i] % 8;
    for (std::size_t q = 8; q < n; q += 2) {
      REQUIRE((in[q] >= 64 && in[q] < 72 && in[q + 1] >= 72 && in[q + 1] < 80));
      token at = in[q] - 64;
      for (token k = 1; k <= in[q + 1] - 71; ++k) at = f[static_cast<std::size_t>(at)];
      CHECK(out[q] == -1);
      CHECK(out[q + 1] == 64 + at);
      ++asked[static_cast<std::size_t>(8 * (in[q] - 64) + in[q + 1] - 72)];
      if (q > 8) ++next[static_cast<std::size_t>(8 * (in[q] - 64) + in[q - 2] - 64)];
    }
  }
  CHECK(chi_square(asked) < most_chi(63));
  CHECK(chi_square(next) < most_chi(63));  // a question says nothing about the next one
  for (const int questions : {0, 21})
    CHECK_THROWS_WITH(k_hops_task::fill(stream, 1, 0, batch.inputs, batch.targets, questions),
                      Catch::Contains(std::to_string(questions) + " questions to a row; 1 to 20"));
}

TEST_CASE("wrong spans of k-hops are refused with their numbers", "[k_hops]") {
  const random_stream stream(seed{1}, purpose::task);
  rows batch(2);
  CHECK_THROWS_WITH(k_hops_task::fill(stream, 1, 0, batch.inputs, std::span(batch.targets).first(10)),
                    Catch::Contains("20 inputs and 10 targets; both must be rows of 10"));
  CHECK_THROWS_AS(k_hops_task::fill(stream, 1, 0, std::span(batch.inputs).first(9), std::span(batch.targets).first(9)),
                  gyre::error);
}
