// What the program generate asks of a trained model: to continue a text, or to score a continuation.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/generate/generator.hpp>
#include <gyre/generate/score.hpp>
#include <gyre/io/byte_tokens.hpp>
#include <gyre/train/checkpoint.hpp>
#include <gyre/train/weights.hpp>

#include "arguments.hpp"
#include "models.hpp"
#include "session_text.hpp"
#include "terminal.hpp"

namespace examples {

struct speaking_options {
  std::string prompt, continuation;  // the second: scored instead of generated, unless empty
  int steps = 0;                     // 0: the model's mean, or an exit rule
  float exit_below = 0;              // latent difference; 0: every token runs `steps`
  int cap = 32, least = 1;           // of the exit rule
  int draft_steps = 0;               // 0: no drafts
  gyre::sampling choose{.temperature = 0.7f, .top_p = 0.95f};
  std::uint64_t seed = 1;
  gyre::index most = 0;  // tokens; 0: until the context is full
  std::vector<std::string> stops;
  bool bos = false, echo = false, show_steps = false;

  gyre::exits::any exit(int mean_steps) const {
    if (exit_below > 0) return gyre::exits::latent_diff{.below = exit_below, .cap = cap, .least = least};
    return steps > 0 ? steps : mean_steps;
  }
};

/// All but the prompt, which may come from standard input.
inline void read_speaking_options(arguments& given, speaking_options& o) {
  given.heading("How deep:");
  o.steps = given.number("steps", o.steps, "recurrence steps of every token; 0: the mean of the model's training");
  o.exit_below = given.number("exit", o.exit_below, "a token leaves when its state changes by less, relatively; 0: never");
  o.cap = given.number("cap", o.cap, "most steps with --exit");
  o.least = given.number("least", o.least, "least steps with --exit");
  o.draft_steps = given.number("draft-steps", o.draft_steps,
                               "begin with the next token on a guess after so many steps: the same text, sooner; 0: never");
  o.show_steps = given.flag("show-steps", "tell at the end how many tokens took how many steps");
  given.heading("How a token is chosen:");
  o.choose.temperature = given.number("temperature", o.choose.temperature, "0: always the likeliest");
  o.choose.top_k = given.number("top-k", o.choose.top_k, "only the k likeliest; 0: all");
  o.choose.top_p = given.number("top-p", o.choose.top_p, "only the likeliest that together have this probability; 1: all");
  o.choose.min_p = given.number("min-p", o.choose.min_p, "only tokens at least this likely, relative to the likeliest");
  o.choose.repetition_penalty =
      given.number("repetition-penalty", o.choose.repetition_penalty, "divides the logits of tokens that were there");
  o.seed = given.number("seed", o.seed, "of everything random");
  given.heading("What, and how much:");
  o.most = given.number("max", o.most, "most tokens; 0: until the context is full");
  o.stops = given.texts("stop", "the text ends before this string");
  const auto scored = given.maybe_text("score", "no text, but the log-likelihood of this continuation of the prompt");
  gyre::require(!scored || !scored->empty(), "--score is empty; there is no continuation to score");
  o.continuation = scored.value_or("");
  o.bos = given.flag("bos", "begin with the token that begins a document; an empty prompt always does");
  o.echo = given.flag("echo", "print the prompt too");
  gyre::require(o.exit_below >= 0, "--exit is ", o.exit_below, "; it must not be negative");
  gyre::require(o.steps >= 0, "--steps is ", o.steps, "; a token runs at least 1 step (0: the model's mean)");
  gyre::require(o.draft_steps >= 0, "--draft-steps is ", o.draft_steps, "; it must not be negative");
  gyre::require(o.draft_steps == 0 || o.exit_below == 0,
                "--draft-steps and --exit exclude each other: drafts want a fixed number of steps");
  gyre::require(o.steps == 0 || o.exit_below == 0, "--steps and --exit exclude each other; --cap bounds the steps of --exit");
}

/// "  4 steps  #########  123 tokens", a line for each number of steps that occurred.
inline std::string steps_histogram(const std::map<int, int>& counts) {
  int most = 1;
  for (const auto& [steps, count] : counts) most = (std::max)(most, count);
  std::string text;
  for (const auto& [steps, count] : counts) {
    const std::string number = std::to_string(steps);
    text += std::string(number.size() < 4 ? 4 - number.size() : 0, ' ') + number + (steps == 1 ? " step   " : " steps  ") +
            std::string(static_cast<std::size_t>((40 * count + most - 1) / most), '#') + ' ' + std::to_string(count) + '\n';
  }
  return text;
}

inline std::string reason_text(gyre::finish reason, gyre::index context) {
  switch (reason) {
    case gyre::finish::length:
      return "as many tokens as asked for";
    case gyre::finish::stop_token:
      return "the end of a document";
    case gyre::finish::stop_string:
      return "a stop string";
    case gyre::finish::context:
      return "the context of " + std::to_string(context) + " tokens is full";
    case gyre::finish::cancelled:
      return "interrupted";
    case gyre::finish::running:
      break;
  }
  return "not ended";
}

/// A checkpoint to read from, and the model of the catalogue that it is of.
struct found_checkpoint {
  std::filesystem::path folder;
  std::string model;
};

/// `path` is the folder of a training, whose latest checkpoint counts, or of one checkpoint. The model's name is the one that the
/// program train keeps; checkpoints of other programs are known by the fingerprint of their architecture.
inline found_checkpoint find_checkpoint(const std::filesystem::path& path) {
  gyre::require(!path.empty(), "no checkpoint is given; --checkpoint DIR names the folder of a training");
  gyre::require(std::filesystem::is_directory(path), path.string(),
                " is no folder; --checkpoint wants the folder of a training");
  found_checkpoint found{path, {}};
  if (!std::filesystem::exists(path / "state.json")) {
    const auto latest = gyre::latest_checkpoint(path);
    if (!latest) gyre::fail(path.string(), " holds no checkpoint");
    found.folder = *latest;
  }
  const std::filesystem::path file = found.folder / "state.json";
  const gyre::json root = gyre::parse_json(gyre::read_file(file), file.string());
  const gyre::json_field state(root, file.string());
  if (const gyre::json_field data = state["data"]; data.contains("settings"))
    if (const gyre::json_field settings = data["settings"]; settings.contains("model"))
      found.model = settings["model"].string();
  for (const std::string_view name : models::names())
    if (found.model.empty() &&
        models::visit(name, [&]<class A>() { return gyre::fingerprint<A>(); }) == state["fingerprint"].string())
      found.model = name;
  gyre::require(!found.model.empty(), file.string(), ": the architecture of fingerprint ", state["fingerprint"].string(),
                " is none that this program knows");
  return found;
}

/// Writes the continuation to `out` as it comes, in whole characters, and what there is to say about it to `notes`.
template <gyre::architecture A, gyre::backend B, gyre::precision P>
void speak(const gyre::network<A, B, P>& net, const gyre::evaluation_settings& trained, const speaking_options& o,
           std::ostream& out, std::ostream& notes) {
  const std::vector<gyre::token> prompt = gyre::byte_tokens::encode(o.prompt, o.bos || o.prompt.empty());
  std::map<int, int> steps;
  gyre::generation_request request;
  request.prompt = prompt, request.exit = o.exit(trained.steps), request.choose = o.choose;
  request.state_scale = trained.state_scale, request.draft_steps = o.draft_steps;
  request.of = gyre::seed{o.seed}, request.max_new = o.most, request.stop_strings = o.stops;
  request.stop_tokens = {gyre::byte_tokens::bos};
  request.bytes = &gyre::byte_tokens::bytes;
  request.on_text = [&](std::string_view text) { out << text << std::flush; };
  request.on_token = [&](const gyre::generated& token) {
    ++steps[token.steps];
    return !interrupt_guard::requested();
  };
  if (o.echo) out << o.prompt << std::flush;
  const stopwatch watch;
  gyre::generator generator(net);
  const auto id = generator.start(std::move(request));
  generator.run();
  const gyre::generation result = generator.take(id);
  const double seconds = watch.seconds();
  out << std::endl;
  notes << result.tokens.size() << " tokens, " << fixed_text(static_cast<double>(result.tokens.size()) / seconds, 0)
        << " a second; ended by: " << reason_text(result.reason, A::shape.context) << '\n';
  if (o.draft_steps > 0) notes << result.accepted << " of " << result.drafted << " drafts were right\n";
  if (o.show_steps) notes << steps_histogram(steps);
}

/// Writes the log-likelihood of the continuation.
template <gyre::architecture A, gyre::backend B, gyre::precision P>
void score_continuation(const gyre::network<A, B, P>& net, const gyre::evaluation_settings& trained, const speaking_options& o,
                        std::ostream& out) {
  const std::vector<gyre::token> prompt = gyre::byte_tokens::encode(o.prompt, o.bos || o.prompt.empty()),
                                 continuation = gyre::byte_tokens::encode(o.continuation);
  const gyre::scored result = gyre::score(net, prompt, continuation, o.exit(trained.steps),
                                          {.of = gyre::seed{o.seed}, .state_scale = trained.state_scale});
  std::map<int, int> steps;
  for (const int s : result.steps) ++steps[s];
  const double bytes = static_cast<double>(continuation.size());
  out << std::fixed << std::setprecision(6) << "log-likelihood " << result.total() << " nats, " << continuation.size()
      << " bytes, " << -result.total() / bytes / std::numbers::ln2 << " bits per byte\n";
  if (o.show_steps) out << steps_histogram(steps);
}

/// What the options ask of a checkpoint's model.
template <gyre::architecture A, gyre::precision P, gyre::backend B>
void speak_as(const B& device, const found_checkpoint& found, const speaking_options& o, std::ostream& out,
              std::ostream& notes) {
  const gyre::evaluation_settings trained = gyre::evaluation_of(found.folder);
  gyre::network<A, B, P> net(device, gyre::seed{}, false);
  gyre::load_weights(net, found.folder);
  if (o.continuation.empty())
    speak(net, trained, o, out, notes);
  else
    score_continuation(net, trained, o, out);
}
template <gyre::precision P, gyre::backend B>
void speak_in(const B& device, const found_checkpoint& found, const speaking_options& o, std::ostream& out,
              std::ostream& notes) {
  models::visit(found.model, [&]<class A>() {
    if constexpr (A::shape.vocab == gyre::byte_tokens::vocabulary) speak_as<A, P>(device, found, o, out, notes);
  });
}
// Units of their own compile these.
void speak_on_simulated_cuda(const found_checkpoint&, const speaking_options&, std::ostream& out, std::ostream& notes);
void speak_on_cuda(const found_checkpoint&, const speaking_options&, bool mixed, std::ostream& out, std::ostream& notes);

}  // namespace examples
