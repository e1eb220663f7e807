// What the prose demo asks of a trained model: to speak, and how soon its states settle on held-out text.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models.hpp"

namespace examples {

using prose_network = gyre::network<prose_model, gyre::cpu, gyre::fp32>;

/// What the model writes after `prompt`, each token with `steps` steps, until the context is full.
inline std::string speak(const prose_network& net, const std::string& prompt, int steps, gyre::seed seed) {
  const auto ids = gyre::byte_tokens::encode(prompt);  // amid a text: no document begins here
  gyre::generation_request request;
  request.prompt = ids, request.exit = steps, request.of = seed;
  request.choose = {.temperature = 0.7f, .top_p = 0.95f};
  request.bytes = &gyre::byte_tokens::bytes;
  gyre::generator generator(net);
  const auto id = generator.start(std::move(request));
  generator.run();
  std::string text = generator.take(id).text;
  // A paragraph ends with a sentence; the context rarely does.
  if (const auto end = text.find_last_of(".!?"); end != std::string::npos && end > text.size() / 2) text.resize(end + 1);
  return text;
}

/// After how many steps the tokens of held-out rows leave, by latent difference: counts[t - 1] tokens took t steps.
struct exit_counts {
  std::vector<double> counts;
  double mean = 0;
  gyre::index tokens = 0;
};
inline exit_counts exits_on(const prose_network& net, std::span<const gyre::batch> held_out, gyre::exits::latent_diff rule,
                            int rows) {
  exit_counts result;
  result.counts.assign(static_cast<std::size_t>(rule.cap), 0);
  gyre::generator generator(net);
  int taken = 0;
  for (const gyre::batch& b : held_out)
    for (gyre::index i = 0; i < b.rows && taken < rows; ++i, ++taken) {
      gyre::generation_request request;
      request.prompt = b.inputs.subspan(static_cast<std::size_t>(i * b.length), static_cast<std::size_t>(b.length - 1));
      request.exit = rule, request.exit_in_prompt = true, request.max_new = 1, request.key = static_cast<std::uint64_t>(taken);
      const auto id = generator.start(std::move(request), [&](const gyre::token_state<float>& state) {
        if (!state.last) return;
        ++result.counts[static_cast<std::size_t>(state.step - 1)];
        ++result.tokens;
        result.mean += state.step;
      });
      generator.run();
      generator.take(id);
    }
  if (result.tokens > 0) result.mean /= static_cast<double>(result.tokens);
  return result;
}

}  // namespace examples
