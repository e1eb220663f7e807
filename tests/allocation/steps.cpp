// Nothing is allocated once the largest step has run. [no_sanitizer]
#include <sys/mman.h>

#include <Eigen/Core>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <gyre/gyre.hpp>

#include "interpose.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 61, .width = 48, .heads = 3, .mlp = 72, .context = 40};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Model : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};
constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 8};
struct Dreamer
    : gyre::mixture_model<
          sizes,
          gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, gyre::depth_attention_options{.projections = maps}>,
                        gyre::sequence_attention<sizes, gyre::attention_options{.projections = maps}>,
                        gyre::expert_attention<sizes, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

/// So that a call whose result nobody reads is not optimised away.
void* used(void* memory) {
  asm volatile("" : "+r"(memory));
  return memory;
}

template <class F>
long allocations_in(F&& f) {
  const long before = gyre_test::allocations();
  f();
  return gyre_test::allocations() - before;
}

}  // namespace

TEST_CASE("the counter sees every way of taking memory") {
  CHECK(allocations_in([&] { std::free(used(std::malloc(100))); }) == 1);
  CHECK(allocations_in([&] { ::operator delete(used(::operator new(100))); }) == 1);
  CHECK(allocations_in([&] { std::free(used(std::aligned_alloc(64, 128))); }) == 1);
  CHECK(allocations_in([&] { ::operator delete (used(::operator new (128, std::align_val_t{64})), std::align_val_t{64}); }) >=
        1);
  CHECK(allocations_in([&] {
          void* memory = nullptr;
          CHECK(posix_memalign(&memory, 64, 128) == 0);
          std::free(used(memory));
        }) >= 1);
  CHECK(allocations_in(
            [&] { munmap(used(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), 4096); }) == 1);
  CHECK(allocations_in([&] {
          Eigen::MatrixXf m(64, 64);
          used(m.data());
        }) >= 1);
}

namespace {

template <class A, class Rule>
void check_training(Rule rule) {
  gyre::network<A, gyre::cpu, gyre::fp32> net(gyre::cpu{2}, gyre::seed{1});
  gyre::trainer trainer(net, rule, gyre::uniform_depth{.low = 1, .high = 12, .backprop = 4});
  std::vector<gyre::token> ids(4 * 40), targets(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<gyre::token>(7 * i % 61), targets[i] = static_cast<gyre::token>(5 * i % 61);
  const gyre::batch rows{ids, targets, 4, 40};
  trainer.plan(4, 40);
  // The pool's scratch grows with the first tasks that each worker happens to take, so a few steps of the largest depth warm it.
  for (int i = 0; i < 8; ++i) trainer.step(rows);
  double loss = 0;
  CHECK(allocations_in([&] {
          for (int i = 0; i < 50; ++i) loss += trainer.step(rows).loss;
        }) == 0);
  CHECK(loss > 0);
}

}  // namespace

TEMPLATE_TEST_CASE("fifty steps of random depth allocate nothing after the largest one", "", gyre::adamw, gyre::huginn_adam,
                   gyre::muon) {
  check_training<Model>(TestType{});
}

TEST_CASE("nor do steps of a mixture, whose experts get other numbers of tokens every time") {
  check_training<Dreamer>(gyre::adamw{});
}

TEST_CASE("decoding allocates nothing once it runs") {
  gyre::network<Model, gyre::cpu, gyre::fp32> net(gyre::cpu{2}, gyre::seed{1});
  const std::vector<gyre::token> prompt{1, 2, 3};
  gyre::generator generator(net);
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) generator.advance();
  };
  gyre::generation_request request;
  request.prompt = prompt, request.exit = 6, request.max_new = 36;
  const auto id = generator.start(request);
  run(6);
  CHECK(allocations_in([&] { run(24); }) == 0);
  generator.run();
  CHECK(generator.take(id).tokens.size() == 36);
}
