// Training steps, generation and captured passes of a whole model on the stand-ins: kernels are launched and do nothing.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/gyre.hpp>

#include "stand_in.hpp"

namespace gyre_test {
namespace {

using stand_in::now;

/// Depth attention, sequence attention with tied mixed projections, and experts: most of the operations.
inline constexpr gyre::dims tiny{.vocab = 11, .width = 8, .heads = 2, .kv_heads = 1, .mlp = 8, .context = 12, .mean_steps = 2};
struct model
    : gyre::mixture_model<
          tiny, gyre::mixture<gyre::sequential, gyre::depth_attention<tiny, gyre::depth_attention_options{}>,
                              gyre::sequence_attention<
                                  tiny, gyre::attention_options{.projections = {.count = 3, .active = 2, .router_width = 4}}>,
                              gyre::expert_attention<tiny, gyre::experts{.count = 4, .active = 2, .router_width = 4}>>> {};
using network = gyre::network<model, gyre::cuda, gyre::fp32>;

const std::vector<gyre::token> ids{1, 2, 3, 4, 5, 6}, targets{2, 3, -1, 5, 6, 7};

void train_and_generate() {
  const gyre::cuda device(std::make_shared<gyre::gpu_device>(gyre::gpu_options{.blas_workspace_bytes = 4096}));
  network net(device, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{}, gyre::fixed_depth{1});
  trainer.step(gyre::batch{ids, targets, 2, 3});
  for (auto [id, steps] : gyre::generate(net, std::span<const gyre::token>(ids).first(2), gyre::exits::fixed{1})) {
    CHECK((id >= 0 && id < 11));
    CHECK(steps == 1);
    break;
  }
}

}  // namespace

TEST_CASE("each call of a training step and of generation fails once in turn: a clear error, no leak, no crash", "[cuda]") {
  long failures = 0, errors = 0;
  std::set<std::string> calls;
  // CUB asks each device once what it is, and waits for ever for the answer if the first call that asked failed (CCCL 3.0).
  stand_in::restart();
  train_and_generate();
  for (long n = 0;; ++n) {
    stand_in::restart();
    now().fails = n;
    std::string said;
    try {
      train_and_generate();
    } catch (const gyre::error& error) {
      said = error.what();
    }
    CAPTURE(n, now().failed, said, now().refused);
    REQUIRE(now().held() == 0);
    REQUIRE(now().current == 0);
    if (now().failed.empty()) {
      REQUIRE(said.empty());
      REQUIRE(now().refused.empty());
      break;
    }
    ++failures;
    calls.insert(now().failed);
    if (said.empty()) continue;  // in a destructor, which has nobody to tell
    ++errors;
    REQUIRE((said.find("cuda: ") == 0 || said.find("simt: ") == 0));
    REQUIRE(said.size() > 30);
  }
  INFO(failures << " calls, " << errors << " errors");
  CHECK(failures > 500);
  CHECK(errors > failures / 2);
  for (const char* const call : {"cudaMallocManaged", "cudaMemcpyAsync", "cudaLaunchKernelExC", "cublasGemmEx"})
    CHECK(calls.contains(call));
}

TEMPLATE_TEST_CASE("steps after the first allocate nothing, and wait for the numbers of their report alone", "[cuda]",
                   gyre::adamw, gyre::huginn_adam, gyre::muon) {
  stand_in::restart();
  {
    const gyre::cuda device;
    network net(device, gyre::seed{1});
    for (const int depth : {1, 4}) {
      gyre::trainer trainer(net, TestType{}, gyre::fixed_depth{depth});
      const auto step = [&] {
        const auto before = now();
        trainer.step(gyre::batch{ids, targets, 2, 3});
        return std::pair{now().allocations - before.allocations, now().waits - before.waits};
      };
      CHECK(step().first > 0);
      for (int n = 0; n < 2; ++n) {
        const auto [allocations, waits] = step();
        CHECK(allocations == 0);
        // However deep: the pass with its losses, monitors and choices, the gradient's norm, and the biases that are balanced.
        CHECK(waits == 3);
      }
    }
  }
  CHECK(now().held() == 0);
}

TEST_CASE("tokens after the first allocate nothing, and wait for themselves alone", "[cuda]") {
  stand_in::restart();
  {
    const gyre::cuda device;
    const network net(device, gyre::seed{1});
    gyre::generator generator(net);
    std::vector<std::pair<long, long>> seen;  // allocations and waits until a token came
    gyre::generation_request request;
    request.prompt = std::span<const gyre::token>(ids).first(2), request.exit = gyre::exits::fixed{2}, request.max_new = 6;
    request.on_token = [&](const gyre::generated&) {
      seen.emplace_back(now().allocations, now().waits);
      return true;
    };
    const auto id = generator.start(std::move(request));
    generator.run();
    CHECK(generator.take(id).tokens.size() == 6);
    REQUIRE(seen.size() == 6);
    for (std::size_t n = 2; n < seen.size(); ++n) {
      CHECK(seen[n].first == seen[1].first);
      CHECK(seen[n].second - seen[n - 1].second == 1);
    }
  }
  CHECK(now().held() == 0);
}

namespace {

/// Experts with losses of their own.
struct balanced
    : gyre::mixture_model<
          tiny, gyre::mixture<gyre::sequential, gyre::depth_attention<tiny, gyre::depth_attention_options{}>,
                              gyre::expert_attention<
                                  tiny, gyre::experts{.count = 4, .active = 2, .router_width = 4, .balance_weight = 0.01}>>> {};
using sandwich = gyre::sandwich_block<gyre::sequence_attention<tiny>, gyre::gated_mlp<tiny>>;
struct huginn
    : gyre::model<tiny, gyre::prelude<sandwich>, gyre::recurrent<sandwich, gyre::inject::concat>, gyre::coda<sandwich>> {};

template <class Model, class P>
void capture_pass() {
  stand_in::restart();
  {
    const gyre::cuda device;
    const gyre::network<Model, gyre::cuda, P> net(device, gyre::seed{1});
    gyre::pass_memory<gyre::cuda> memory(device);
    gyre::device_buffer<gyre::cuda> gradient(device, static_cast<std::size_t>(Model::parameter_count) * sizeof(float));
    gyre::batch_layout layout;
    layout.add(4, 0, 7);
    layout.add(2, 0, 8);
    const auto pass = [&] {
      gyre::launch_pass(net, memory, layout, ids, targets, gyre::state_key{gyre::seed{3}, 1, 1}, gyre::depth_draw{1, 2}, 1.0f,
                        gradient.as<float>());
    };
    const cudaStream_t stream = device.device().stream();
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    CHECK_THROWS_WITH(pass(), Catch::Contains("captured"));  // its memory is not there yet
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    pass();
    gyre::cuda(device).finish();
    const long calls = now().calls;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    CHECK_NOTHROW(pass());
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(now().calls - calls > 100);
    CHECK(graph != nullptr);
    cudaGraphDestroy(graph);
    CHECK(now().refused == std::vector<std::string>());
    gyre::cuda(device).finish();
  }
  CHECK(now().held() == 0);
}

template <class Rule>
void capture_update() {
  stand_in::restart();
  {
    const gyre::cuda device;
    gyre::network<balanced, gyre::cuda, gyre::bf16_mixed> net(device, gyre::seed{1});
    gyre::device_buffer<gyre::cuda> gradient(device, static_cast<std::size_t>(balanced::parameter_count) * sizeof(float));
    gyre::optimizer_state<Rule, decltype(net)> state(device);
    const auto update = [&] {
      state.apply(Rule{}, net, gradient.as<float>(), 1, 1);
      net.refresh();
    };
    update();
    gyre::cuda(device).finish();
    const long calls = now().calls, waits = now().waits;
    const cudaStream_t stream = device.device().stream();
    cudaGraph_t graph = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    CHECK_NOTHROW(update());
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    CHECK(now().calls - calls > 20);
    CHECK(now().waits == waits);
    cudaGraphDestroy(graph);
    CHECK(now().refused == std::vector<std::string>());
    gyre::cuda(device).finish();
  }
  CHECK(now().held() == 0);
}

}  // namespace

TEST_CASE("a pass that has run once is captured without a call that captures forbid", "[cuda]") {
  capture_pass<model, gyre::fp32>();
  capture_pass<model, gyre::bf16_mixed>();
  capture_pass<balanced, gyre::fp32>();
  capture_pass<huginn, gyre::bf16_mixed>();
}

TEST_CASE("an update that has run once is captured, whatever the optimiser", "[cuda]") {
  capture_update<gyre::adamw>();
  capture_update<gyre::huginn_adam>();
  capture_update<gyre::muon>();
}

}  // namespace gyre_test
