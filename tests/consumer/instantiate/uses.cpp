#include <array>
#include <gyre_instantiated/Tiny.hpp>

double loss(int steps) {
  const gyre::reference device;
  gyre::network<mine::Tiny, gyre::reference, gyre::fp32> net(device, gyre::seed{1});
  gyre::pass_memory<gyre::reference> memory(device);
  const std::array<gyre::token, 3> ids{1, 2, 3}, targets{2, 3, 4};
  const auto layout = gyre::batch_layout::uniform(1, 3);
  return gyre::plan_pass<mine::Tiny, gyre::reference, gyre::fp32>(layout, {0, steps}, false).tape_bytes > 0
             ? gyre::run_pass(net, memory, layout, ids, targets, {}, {0, steps}, 1, nullptr).loss_sum
             : 0;
}
