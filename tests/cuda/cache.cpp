#include "suite.hpp"

using gyre::operation;

TEMPLATE_TEST_CASE("the cache of cuda agrees with the reference", "[cuda_kernels]", float, double) {
  gyre_test::check_operations<TestType, operation::cache_append, operation::cache_extend>(60);
}

TEMPLATE_TEST_CASE("the cache of cuda agrees where a sequence takes several blocks", "[cuda_kernels]", float, double) {
  namespace parity = gyre::parity;
  gyre::reference left;
  gyre_test::shuffled_cuda right;
  const auto check = [&]<operation Op>(gyre::index cols, gyre::index offset) {
    parity::trial t{Op, std::string(parity::type_name<TestType>()), 3, {}};
    t.sizes = {{"sequences", 2}, {"length", 2500}, {"past", 7}, {"cols", cols},
               {"cursor", 4},    {"copies", 3},    {"gap", 0},  {"offset", offset}};
    const parity::report r = parity::run_trial<Op, TestType>(left, right, t);
    INFO(r);
    CHECK(r.passed());
  };
  for (const gyre::index offset : {0, 1})
    for (const gyre::index cols : {7, 8}) {
      check.template operator()<operation::cache_append>(cols, offset);
      check.template operator()<operation::cache_extend>(cols, offset);
    }
}
