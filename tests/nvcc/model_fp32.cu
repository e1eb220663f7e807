#include "model.hpp"

TEST_CASE("a model like Huginn trains and speaks on a GPU", "[cuda]") {
  gyre_test::check_model<gyre_test::huginn_like, gyre::fp32>();
}
TEST_CASE("a model like Dreamer trains and speaks on a GPU", "[cuda]") {
  gyre_test::check_model<gyre_test::dreamer_like, gyre::fp32>();
}
