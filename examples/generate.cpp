// Lets a trained model continue a text: generate --help.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>

#include "support/arguments.hpp"
#include "support/models.hpp"
#include "support/place.hpp"
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
  const place where = read_place(given);
  read_speaking_options(given, options);
  if (!given.ready()) return 0;

  const found_checkpoint found = find_checkpoint(checkpoint);
  const bool mixed = precision == "bf16_mixed",
             text = models::visit(found.model, []<class A>() { return A::shape.vocab == gyre::byte_tokens::vocabulary; });
  if (!text) gyre::fail(found.folder.string(), " is of ", found.model, ", which knows no text");
  if (where.backend == "simulated_cuda" && mixed) gyre::fail("--backend simulated_cuda: --precision fp32 alone");
#if !GYRE_PROGRAMS_WITH_CUDA
  if (where.backend == "cuda") refuse_cuda();
#endif
  const interrupt_guard guard;
  options.prompt = prompt ? *prompt : standard_input();
  if (where.backend == "simulated_cuda") {
    speak_on_simulated_cuda(found, options, std::cout, std::cerr);
  } else if (where.backend == "cuda") {
#if GYRE_PROGRAMS_WITH_CUDA
    speak_on_cuda(found, options, mixed, std::cout, std::cerr);
#endif
  } else if (mixed) {
    speak_in<gyre::bf16_mixed>(gyre::cpu(where.threads), found, options, std::cout, std::cerr);
  } else {
    speak_in<gyre::fp32>(gyre::cpu(where.threads), found, options, std::cout, std::cerr);
  }
  return 0;
}

}  // namespace

int main(int count, char** values) {
  return examples::guarded(count, values, [&] { return generate(count, values); });
}
