// Every operation of the contract on the reference and the cpu backend, by the trials of the program parity. [threads]
#include <gyre/parity/catch.hpp>

#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gyre/parity/suite.hpp>

#include "../examples/parity/trials.hpp"
#include "support/sanitized.hpp"

namespace {

constexpr gyre::index trials = gyre_test::sanitized ? 20 : 60;

/// All trials of all operations pass, and each of them has a line in the table.
template <class T>
void check_suite() {
  namespace parity = gyre::parity;
  examples::trials all;
  examples::add_cpu<T>(all, 2);
  std::vector<parity::outcome> outcomes;
  for (const parity::check& c : all.checks) {
    outcomes.push_back(parity::run_check(c, {.seed = 100, .trials = trials}));
    INFO(outcomes.back().failure);
    CHECK(outcomes.back().passed());
    CHECK(outcomes.back().worst.excess <= 1);
  }
  std::ostringstream table;
  parity::write_table(table, outcomes);
  // Updates are of masters, which are never bf16.
  constexpr auto last = std::is_same_v<T, gyre::bfloat16> ? gyre::operation::squared_norm : gyre::operation::count;
  for (std::size_t n = 0; n < static_cast<std::size_t>(last); ++n) {
    const std::string_view name = gyre::operation_names[n];
    CAPTURE(name);
    CHECK(table.str().find("| " + std::string(name) + " | " + std::string(parity::type_name<T>()) + " | " +
                           std::to_string(trials) + " |") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("parity of the reference and the cpu backend: every operation, float", "[parity][threads]") { check_suite<float>(); }
TEST_CASE("parity of the reference and the cpu backend: every operation, bf16", "[parity][threads]") {
  check_suite<gyre::bfloat16>();
}
#ifndef GYRE_TEST_SANITIZED  // the calls of float, with memory of another size
TEST_CASE("parity of the reference and the cpu backend: every operation, double", "[parity][threads]") {
  check_suite<double>();
}
#endif
