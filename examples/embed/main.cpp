// A program of someone else with gyre in it: it loads weights, continues a text while it listens, and weighs an ending.
//   embed ["It was "]                                        random weights: noise, but all of it runs
//   embed "It was " build/demo/prose/random-r/step-00001000  a checkpoint of ./run demo or ./run train, or a safetensors file
#include <gyre/gyre.hpp>

#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// An architecture is a type, and must be that of the weights. This one is the Huginn for bytes that ./run demo trains.
inline constexpr gyre::dims sizes{
    .vocab = gyre::byte_tokens::vocabulary, .width = 128, .heads = 4, .mlp = 352, .context = 256, .mean_steps = 8};
struct Block : gyre::sandwich_block<gyre::sequence_attention<sizes>, gyre::gated_mlp<sizes>> {};
struct Huginn : gyre::model<sizes, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>>, gyre::coda<Block>> {};

using Network = gyre::network<Huginn, gyre::cpu, gyre::fp32>;

/// Continues `prompt`; every byte is given as many recurrence steps as it needs. Text arrives in whole characters.
gyre::generation speak(const Network& net, std::string_view prompt, std::ostream& listener) {
  const std::vector<gyre::token> tokens = gyre::byte_tokens::encode(prompt, /*begin=*/true);
  gyre::generation_request request;
  request.prompt = tokens;
  request.exit = gyre::exits::latent_diff{.below = 0.03f, .cap = 16};  // or a number: the steps of every token
  request.choose = {.temperature = 0.7f, .top_p = 0.95f};
  request.of = gyre::seed{1};
  request.max_new = 48;
  request.stop_tokens = {gyre::byte_tokens::bos};
  request.bytes = &gyre::byte_tokens::bytes;
  request.on_text = [&](std::string_view text) { listener << text << std::flush; };
  gyre::generator generator(net);  // serves any number of requests at once; here one
  const auto id = generator.start(std::move(request));
  generator.run();
  return generator.take(id);
}

/// ln p(ending | prompt) when every token runs `steps` recurrence steps.
double log_likelihood(const Network& net, std::string_view prompt, std::string_view ending, int steps) {
  return gyre::score(net, gyre::byte_tokens::encode(prompt, true), gyre::byte_tokens::encode(ending), steps).total();
}

void run(const std::string& prompt, const std::filesystem::path& weights) {
  Network net(gyre::cpu{}, gyre::seed{1}, /*gradients=*/false);  // all cores; gyre::cpu(n) for n threads
  if (!weights.empty()) gyre::load_weights(net, weights);
  std::cout << "gyre " << GYRE_VERSION_MAJOR << '.' << GYRE_VERSION_MINOR << '.' << GYRE_VERSION_PATCH << ", "
            << Network::parameter_count << " parameters, " << (weights.empty() ? "random weights" : weights.string()) << "\n\n"
            << prompt;
  const gyre::generation spoken = speak(net, prompt, std::cout);
  int steps = 0;
  for (const int s : spoken.steps) steps += s;
  std::cout << "\n\n" << spoken.tokens.size() << " bytes took " << steps << " steps\n";
  for (const int r : {1, 4, 16})
    std::cout << "ln p(\"the end.\") at r = " << r << ": " << log_likelihood(net, prompt, "the end.", r) << '\n';
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(count > 1 ? arguments[1] : "It was ", count > 2 ? arguments[2] : "");
  } catch (const gyre::error& problem) {  // says what was wrong, where, and what to do: a file, a field, a number
    std::cerr << "embed: " << problem.what() << '\n';
    return 1;
  } catch (const std::exception& problem) {  // of the standard library: no memory, say
    std::cerr << "embed: " << problem.what() << '\n';
    return 2;
  }
}
