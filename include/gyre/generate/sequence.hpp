// One request of a generator while it runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gyre/generate/cache.hpp>
#include <gyre/generate/request.hpp>
#include <gyre/generate/round_rows.hpp>

GYRE_BEGIN

namespace detail {

/// A request while it runs, and what it has given.
template <class B, class T, int Context>
struct running_sequence {
  static constexpr std::size_t context = Context;

  running_sequence(generation_request wanted, state_observer<T> watching, std::uint64_t n)
      : request(std::move(wanted)),
        observer(std::move(watching)),
        number(n),
        tokens(request.prompt.begin(), request.prompt.end()),
        prompt(tokens.size()),
        text(request.stop_strings) {
    request.prompt = {};  // the caller's
    const std::size_t most = static_cast<std::size_t>(most_tokens());
    if (request.max_new == 0) return;
    tokens.reserve(most);
    result.tokens.reserve(most - prompt), result.steps.reserve(most - prompt);
    result.log_probabilities.reserve(most - prompt);
    if (drafting()) drafts.reserve(static_cast<std::size_t>(request.exit.most_steps()) + 1), history.reserve(most);
  }

  bool running() const { return result.reason == finish::running; }
  bool prefilling() const { return fed < prompt; }
  bool drafting() const { return request.draft_steps > 0; }
  bool stops_at(token t) const {
    return std::find(request.stop_tokens.begin(), request.stop_tokens.end(), t) != request.stop_tokens.end();
  }
  index most_tokens() const {
    const index room = static_cast<index>(context), begin = static_cast<index>(prompt);
    return request.max_new == 0 ? room : begin + (std::min)(request.max_new, room - begin);
  }
  // Open-ended requests grow by doubling; others get their room at once.
  index first_capacity() const {
    const index begin = static_cast<index>(prompt) + 64;
    return request.max_new > 0 ? most_tokens() : (std::min)(begin, static_cast<index>(context));
  }

  generation_request request;
  state_observer<T> observer;
  std::uint64_t number = 0;
  std::vector<token> tokens;  // prompt and output
  std::size_t prompt = 0;     // tokens in it
  std::size_t fed = 0;        // tokens that the cache holds
  text_stream text;
  generation result;
  std::unique_ptr<sequence_cache<B, T>> cache;
  std::size_t delivered = 0;  // tokens of the result that callbacks have seen
  std::size_t shown = 0;      // bytes of its text
  sampled_token drawn;
  std::string drawn_bytes;

  // With drafts: the oldest token on its way is the last of `tokens`; those after it are drafts, and so may be one that is still
  // to enter.
  std::vector<token> drafts;
  std::size_t on_their_way = 0;
  std::vector<token> history;  // tokens and drafts
  bool has_answer = false;     // of this round: `drawn`

  bool is_on_its_way(index position) const { return static_cast<std::size_t>(position) + 1 < tokens.size() + on_their_way; }
  /// Prompt, output and drafts up to a position, which is among them.
  std::span<const token> history_to(index position) {
    history.assign(tokens.begin(), tokens.end());
    history.insert(history.end(), drafts.begin(), drafts.end());
    return std::span<const token>(history).first(static_cast<std::size_t>(position) + 1);
  }
  /// What the token at `position` expects to follow. Returns whether tokens behind it are on their way that another draft began.
  bool revise(index position, token draft) {
    const std::size_t next = static_cast<std::size_t>(position) + 1, place = next - tokens.size();
    if (place < drafts.size() && drafts[place] == draft) return false;
    drafts.resize(place);
    // Nobody will ask what follows the last token.
    if (static_cast<index>(next) + 1 < most_tokens()) drafts.push_back(draft);
    const std::size_t before = std::exchange(on_their_way, (std::min)(on_their_way, next - (tokens.size() - 1)));
    return on_their_way < before;
  }
  /// The oldest token has its answer, now the last of `tokens`. Returns whether the token after it was fed just that.
  bool confirm() {
    --on_their_way;
    const bool right = !drafts.empty() && drafts.front() == tokens.back();
    result.accepted += right;
    if (right)
      drafts.erase(drafts.begin());
    else
      drafts.clear(), on_their_way = 0;
    return right;
  }
};

}  // namespace detail

GYRE_END
