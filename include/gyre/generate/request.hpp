// What is asked of a generator, and what it gives.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gyre/core/types.hpp>
#include <gyre/generate/sampling.hpp>
#include <gyre/generate/stop.hpp>
#include <gyre/policy/cache.hpp>
#include <gyre/policy/exits.hpp>

GYRE_BEGIN

/// Why a generation ended.
enum class finish : std::uint8_t {
  running,      // it has not
  length,       // max_new tokens
  stop_token,   // drawn, and not part of the output
  stop_string,  // complete in the output's bytes; the text ends before it
  context,      // prompt and output fill the model's context
  cancelled
};

/// One generated token. Binds to two names: `auto [id, steps] = ...`.
struct generated {
  token id = 0;
  int steps = 0;               // recurrence steps behind its logits: those of the token before it
  double log_probability = 0;  // under the softmax of the logits as they came
  index position = 0;          // in the sequence, the prompt's first token being 0

  template <std::size_t I>
  constexpr auto get() const {
    static_assert(I < 2);
    if constexpr (I == 0)
      return id;
    else
      return steps;
  }
};

/// A generation so far, or all of it.
struct generation {
  std::vector<token> tokens;
  std::vector<int> steps;                   // (tokens) as generated::steps
  std::vector<double> log_probabilities;    // (tokens)
  std::uint64_t drafted = 0, accepted = 0;  // drafts that went on their way; those that were right
  std::string text;                         // with request.bytes: what is certain; never a piece of a character or stop string
  finish reason = finish::running;
};

/// One sequence to generate. Everything random in it depends on (`of`, `key`) and positions alone, so a batch around it changes
/// nothing. The initial state of the token at position p has the random numbers (of, state_step, key, p): a training row agrees
/// when its seed, step and row number are given here.
struct generation_request {
  std::span<const token> prompt{};  // at least one token; copied when the request starts
  exits::any exit{};                // how many steps a token runs; a plain number is a fixed count. There is no default
  bool exit_in_prompt = false;      // whether tokens of the prompt may leave early; else they run all steps
  cache_lookup lookup = cache_lookup::latest;
  // Self-speculative decoding: a token goes on its way as soon as the one before it has run so many steps and a draft was drawn
  // from there; drafts are drawn anew at twice that depth and so on. The output is the same to the bit, and how many tokens share
  // a reading of the weights depends on how often drafts are right. 0: off. For exits of fixed depth, and layers that neither
  // know which step runs nor remember across steps.
  int draft_steps = 0;
  sampling choose{};
  seed of{};
  std::uint64_t key = 0;         // the sequence's number, below 2^32
  std::uint64_t state_step = 0;  // below 2^32
  double state_scale = 1;        // of random initial states; 0: zeros
  index max_new = 0;             // most tokens; 0: until the context is full
  std::vector<token> stop_tokens{};
  std::vector<std::string> stop_strings{};           // need `bytes`
  std::function<std::string_view(token)> bytes{};    // a token's bytes, valid until the next call
  std::function<bool(const generated&)> on_token{};  // called for each token; false cancels
  std::function<void(std::string_view)> on_text{};   // called with each piece of text that became certain; needs `bytes`

  /// Throws gyre::error unless a model of `vocabulary` tokens and `context` positions can serve it.
  void validate(index vocabulary, index context) const {
    require(!prompt.empty(), "generate: the prompt is empty; at least 1 token is needed (a begin-of-text token will do)");
    require(static_cast<index>(prompt.size()) <= context, "generate: a prompt of ", prompt.size(),
            " tokens exceeds the context of ", context);
    for (std::size_t i = 0; i < prompt.size(); ++i)
      require(prompt[i] >= 0 && prompt[i] < vocabulary, "generate: token ", prompt[i], " at position ", i,
              " of the prompt is outside the vocabulary of ", vocabulary);
    for (const token stop : stop_tokens)
      require(stop >= 0 && stop < vocabulary, "generate: stop token ", stop, " is outside the vocabulary of ", vocabulary);
    exit.validate();
    choose.validate();
    require(draft_steps >= 0, "generate: draft_steps is ", draft_steps, "; it must not be negative (0: no drafts)");
    require(draft_steps == 0 || exit.reads() == exits::evidence::none, "generate: draft_steps is ", draft_steps,
            ", but the exit is not a fixed number of steps; it must be 0");
    require(max_new >= 0, "generate: max_new is ", max_new, "; it must not be negative (0: until the context is full)");
    require(key >> 32 == 0 && state_step >> 32 == 0, "generate: key ", key, " and state_step ", state_step,
            " must be below 2^32");
    require(state_scale >= 0 && std::isfinite(state_scale), "generate: state_scale is ", state_scale,
            "; it must be finite and not negative");
    require(bytes || (stop_strings.empty() && !on_text),
            "generate: stop strings and on_text need `bytes`, the function from a token to its bytes");
  }
};

GYRE_END

template <>
struct std::tuple_size<gyre::generated> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, gyre::generated> {
  using type = std::conditional_t<I == 0, gyre::token, int>;
};
