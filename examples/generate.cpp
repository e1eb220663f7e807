// Lets a trained model continue a text: generate --help.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "support/arguments.hpp"
#include "support/models.hpp"
#include "support/speaking.hpp"
#include "support/terminal.hpp"

namespace {

using namespace examples;

constexpr const char* purpose = R"(Continues a text with a model that the program train has trained.

  generate --checkpoint runs/novel --prompt "It was a" --steps 16     every token runs 16 recurrence steps
  generate --checkpoint runs/novel --exit 0.03 --cap 32 --show-steps  a token leaves when its state has settled
  generate --checkpoint runs/novel --prompt "It was" --score " a"     how likely a continuation is
  echo -n "It was a" | generate --checkpoint runs/novel               the prompt from a pipe

The text goes to standard output, everything else to standard error. Ctrl-C ends it.)";

std::string standard_input() {
  if (isatty(STDIN_FILENO) != 0) std::cerr << "prompt, ended by Ctrl-D:\n";
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

int generate(int count, char** values) {
  arguments given(count, values, purpose);
  speaking_options options;
  given.heading("What speaks, and after what:");
  const std::filesystem::path checkpoint = given.text("checkpoint", "", "folder of a training, or of one of its checkpoints");
  const std::optional<std::string> prompt = given.maybe_text("prompt", "what the text begins with; without it, standard input");
  const std::string precision = given.choice("precision", {"fp32", "bf16_mixed"}, "fp32", "of parameters and activations");
  const int threads = given.number("threads", gyre::thread_pool::default_threads(), "threads; they do not change the result");
  read_speaking_options(given, options);
  if (!given.ready()) return 0;

  const found_checkpoint found = find_checkpoint(checkpoint);
  const interrupt_guard guard;
  models::visit(found.model, [&]<class A>() {
    if constexpr (A::shape.vocab != gyre::byte_tokens::vocabulary) {
      gyre::fail(found.folder.string(), " is of ", found.model, ", which knows no text");
    } else {
      const gyre::evaluation_settings trained = gyre::evaluation_of(found.folder);
      options.prompt = prompt ? *prompt : standard_input();
      const auto run = [&]<class P>(P) {
        speaking_network<A, P> net(gyre::cpu(threads), gyre::seed{}, false);
        gyre::load_weights(net, found.folder);
        if (options.continuation.empty())
          speak<A, P>(net, trained, options, std::cout, std::cerr);
        else
          score_continuation<A, P>(net, trained, options, std::cout);
      };
      if (precision == "bf16_mixed")
        run(gyre::bf16_mixed{});
      else
        run(gyre::fp32{});
    }
  });
  return 0;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return generate(count, values); });
}
