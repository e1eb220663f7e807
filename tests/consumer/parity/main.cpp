// A backend of someone else's, with one kernel of theirs, compared by the installed harness.
#include <gyre/backend/reference.hpp>
#include <gyre/parity/suite.hpp>
#include <gyre/parity/wrapped.hpp>
#include <iostream>

int main() {
  gyre::reference left;
  auto right = gyre::parity::replace<gyre::operation::add>(gyre::reference(),
                                                           [](gyre::matrix_view<const float> x, gyre::matrix_view<float> y) {
                                                             for (gyre::index i = 0; i < y.rows; ++i)
                                                               for (gyre::index j = 0; j < y.cols; ++j)
                                                                 y[i][j] = x[i][j] + y[i][j];
                                                           });
  const auto outcome = gyre::parity::run_check(gyre::parity::check_of<gyre::operation::add, float>(left, right));
  std::cout << outcome.trials << " trials\n";
  if (!outcome.passed()) std::cout << outcome.failure;
  return outcome.passed() ? 0 : 1;
}
