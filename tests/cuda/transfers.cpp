// Budgets of transfers: for every kernel there is, and at sizes that no operation's usual ones reach.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "suite.hpp"

using gyre::operation;

TEST_CASE("every kernel of cuda has a budget of transfers, and every budget a kernel", "[cuda_kernels]") {
  const std::regex kernel(R"(GYRE_KERNEL\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\()");
  std::set<std::string> there, budgeted;
  for (const auto& file : std::filesystem::directory_iterator("include/gyre/backend/cuda/kernels")) {
    std::ifstream stream(file.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found) there.insert((*found)[1]);
  }
  for (const gyre_test::transfer_budget& b : gyre_test::transfer_budgets) {
    CHECK(budgeted.insert(std::string(b.kernel)).second);
    CHECK(b.global >= 1);
    CHECK(b.shared >= 1);
  }
  CHECK(there.size() > 40);
  CHECK(there == budgeted);
}

TEST_CASE("kernels of cuda for a long past and for many experts keep to their budgets of transfers", "[cuda_kernels]") {
  REQUIRE(gyre::simt::machine::watches_accesses());
  gyre_test::shuffled_cuda device;
  gyre_test::check_transfers<float, operation::cached_attention>(device, {{"sequences", 1}, {"length", 1}, {"past", 600}});
  gyre_test::check_transfers<float, operation::group_pairs>(device, {{"rows", 1024}, {"experts", 4096}, {"active", 1}});
}

TEST_CASE("gradients of attention of cuda on tensor cores keep to their budgets of transfers", "[cuda_kernels]") {
  REQUIRE(gyre::simt::machine::watches_accesses());
  gyre_test::shuffled_cuda device;
  gyre_test::check_transfers<gyre::bfloat16, operation::attention_backward>(device);
}
