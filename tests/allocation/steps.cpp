// Nothing is allocated once the largest step has run. [no_sanitizer]
#include <sys/mman.h>

#include <Eigen/Core>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <new>

#include <gyre/gyre.hpp>

#include "training.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 61, .width = 48, .heads = 3, .mlp = 72, .context = 40};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};

/// So that a call whose result nobody reads is not optimised away.
void* used(void* memory) {
  asm volatile("" : "+r"(memory));
  return memory;
}

}  // namespace

TEST_CASE("the counter sees every way of taking memory") {
  CHECK(gyre_test::allocations_in([&] { std::free(used(std::malloc(100))); }) == 1);
  CHECK(gyre_test::allocations_in([&] { ::operator delete(used(::operator new(100))); }) == 1);
  CHECK(gyre_test::allocations_in([&] { std::free(used(std::aligned_alloc(64, 128))); }) == 1);
  CHECK(gyre_test::allocations_in(
            [&] { ::operator delete (used(::operator new (128, std::align_val_t{64})), std::align_val_t{64}); }) >= 1);
  CHECK(gyre_test::allocations_in([&] {
          void* memory = nullptr;
          CHECK(posix_memalign(&memory, 64, 128) == 0);
          std::free(used(memory));
        }) >= 1);
  CHECK(gyre_test::allocations_in(
            [&] { munmap(used(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), 4096); }) == 1);
  CHECK(gyre_test::allocations_in([&] {
          Eigen::MatrixXf m(64, 64);
          used(m.data());
        }) >= 1);
}

TEMPLATE_TEST_CASE("fifty steps of random depth allocate nothing after the largest one", "", gyre::adamw, gyre::huginn_adam,
                   gyre::muon) {
  gyre_test::check_training<Model>(TestType{});
}
