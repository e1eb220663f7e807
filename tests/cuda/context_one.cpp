// A model whose context is one token: no sequence has a second row.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <gyre/backend/cuda.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/gyre.hpp>

namespace {

constexpr gyre::dims single{.vocab = 257, .width = 40, .heads = 5, .kv_heads = 1, .mlp = 56, .context = 1, .mean_steps = 2};
struct block : gyre::sandwich_block<gyre::sequence_attention<single>, gyre::gated_mlp<single>> {};
struct model : gyre::model<single, gyre::prelude<block>, gyre::recurrent<block, gyre::inject::concat>, gyre::coda<block>> {};

const std::vector<gyre::token> ids{3, 256, 0}, targets{200, -1, 7};

struct result {
  double loss = 0;
  std::vector<float> gradient;
};

template <class Backend>
result run(Backend device) {
  const gyre::network<model, Backend, gyre::fp32> net(device, gyre::seed{4});
  gyre::pass_memory<Backend> memory(device);
  gyre::device_buffer<Backend> gradient(device, static_cast<std::size_t>(model::parameter_count) * sizeof(float));
  device.fill(gyre::matrix_view<float>(gradient.template as<float>(), 1, model::parameter_count), 0.0f);
  const auto layout = gyre::batch_layout::uniform(3, 1);
  result r;
  r.loss = static_cast<double>(gyre::run_pass(net, memory, layout, ids, targets, gyre::state_key{gyre::seed{5}, 1, 1},
                                              gyre::depth_draw{1, 2}, 1.0f, gradient.template as<float>())
                                   .loss_sum);
  const float* const first = gradient.template as<float>();
  r.gradient.assign(first, first + model::parameter_count);
  return r;
}

}  // namespace

TEST_CASE("a model with a context of one token has its loss and gradient on cuda as on the reference", "[cuda_kernels]") {
  const result expected = run(gyre::reference()), found = run(gyre::simulated_cuda());
  CHECK(std::abs(found.loss - expected.loss) <= 1e-5 * expected.loss);
  float largest = 0, furthest = 0;
  for (std::size_t n = 0; n < expected.gradient.size(); ++n) {
    largest = (std::max)(largest, std::abs(expected.gradient[n]));
    furthest = (std::max)(furthest, std::abs(found.gradient[n] - expected.gradient[n]));
  }
  CHECK(largest > 1e-3f);
  CHECK(furthest <= 1e-5f * largest);
}
