// Every operation of the contract on the reference and the cpu backend.
#pragma once

#include <gyre/parity/catch.hpp>

#include <sstream>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>

namespace gyre_test {

// A race or a wrong address shows in the first trials or in none; sanitizers make each take many times as long.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GYRE_TEST_SANITIZED 1
#endif
#endif
#if GYRE_TEST_SANITIZED
inline constexpr gyre::index suite_trials = 20;
#else
inline constexpr gyre::index suite_trials = 60;
#endif

/// All trials of the operations from First to the one before Last pass, and each of them has a line in the table.
template <class T, gyre::operation First, gyre::operation Last>
void check_suite() {
  namespace parity = gyre::parity;
  gyre::reference left;
  gyre::cpu right(2);
  std::vector<parity::outcome> outcomes;
  for (const parity::check& c : parity::all_checks<T, First, Last>(left, right)) {
    outcomes.push_back(parity::run_check(c, {.seed = 100, .trials = suite_trials}));
    INFO(outcomes.back().failure);
    CHECK(outcomes.back().passed());
    CHECK(outcomes.back().worst.excess <= 1);
  }
  std::ostringstream table;
  parity::write_table(table, outcomes);
  for (auto n = static_cast<std::size_t>(First); n < static_cast<std::size_t>(Last); ++n) {
    CAPTURE(gyre::operation_names[n]);
    CHECK(table.str().find("| " + std::string(gyre::operation_names[n]) + " | " + std::string(parity::type_name<T>()) + " | " +
                           std::to_string(suite_trials) + " |") != std::string::npos);
  }
}

}  // namespace gyre_test
