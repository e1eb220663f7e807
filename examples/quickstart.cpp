#include <gyre/gyre.hpp>

#include <exception>
#include <iostream>
#include <span>

inline constexpr gyre::dims tiny{.vocab = 257, .width = 128, .heads = 4, .mlp = 352, .context = 256, .mean_steps = 8};

struct Block : gyre::sandwich_block<gyre::sequence_attention<tiny>, gyre::gated_mlp<tiny>> {};
struct Huginn : gyre::model<tiny, gyre::prelude<Block>,                                    // one layer
                            gyre::recurrent<gyre::stack<2, Block>, gyre::inject::concat>,  // two layers, r times
                            gyre::coda<Block>> {};                                         // one layer

template <gyre::architecture Arch>
void train_and_speak(gyre::backend auto device, gyre::depth_rule auto depth, std::span<const gyre::token> text) {
  gyre::network<Arch, decltype(device), gyre::fp32> net(device, gyre::seed{1});
  gyre::trainer trainer(net, gyre::adamw{.lr = 2e-3}, depth);
  for (const gyre::batch& rows : gyre::pack(text, /*rows=*/8, /*length=*/128)) {
    std::cout << trainer.step(rows) << '\n';
    if (trainer.steps() == 100) break;
  }
  for (auto [id, steps] : gyre::generate(net, text.first(16), gyre::exits::latent_diff{.below = 0.03f, .cap = 16}))
    std::cout << "byte " << id << " took " << steps << " steps\n";
}

int main(int count, char** arguments) try {
  const auto text = gyre::bytes_of_file(count > 1 ? arguments[1] : "prose.txt");
  train_and_speak<Huginn>(gyre::cpu{}, gyre::lognormal_poisson{.mean = 8, .backprop = 4}, text);
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
