// Log-likelihoods of given continuations, at any number of steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <gyre/generate/decoder.hpp>

GYRE_BEGIN

/// A text in two parts: the first is given, the second is scored.
struct score_item {
  std::span<const token> prompt;        // at least one token
  std::span<const token> continuation;  // both together have at most one token more than the model's context
};

/// One continuation's score.
struct scored {
  std::vector<double> log_likelihoods;  // (continuation) ln p of each token given all before it
  std::vector<int> steps;               // (continuation) recurrence steps behind it: those of the token before it

  double total() const { return std::accumulate(log_likelihoods.begin(), log_likelihoods.end(), 0.0); }
};

/// Numbers of scoring. Initial states have the random numbers (of, state_step, key, position), the same key for every item, so
/// an item's score does not depend on its place in the list; a training row agrees when its seed, step and row number are
/// given.
struct score_options {
  seed of{};
  std::uint64_t key = 0;         // below 2^32
  std::uint64_t state_step = 0;  // below 2^32
  double state_scale = 1;        // of random initial states; 0: zeros
  cache_lookup lookup = cache_lookup::latest;
  bool exit_in_prompt = false;  // whether tokens of the prompt may leave early; else they run all steps
  index rows = 2048;            // most tokens at a time, as long as one item fits
};

/// Scores continuations in ragged batches. With an exit rule a continuation's tokens leave early as generated tokens would, so
/// the result is that of decoding the given text. Memory grows to the largest batch and is then kept. Refers to the network.
template <architecture A, class B, precision P>
class scorer {
 public:
  using scalar = activation_t<P>;

  explicit scorer(const network<A, B, P>& net, score_options options = {}) : decoder_(net), options_(options) {
    require(options.rows >= 1, "score: rows is ", options.rows, "; it must be at least 1");
    require(options.key >> 32 == 0 && options.state_step >> 32 == 0, "score: key ", options.key, " and state_step ",
            options.state_step, " must be below 2^32");
    require(options.state_scale >= 0 && std::isfinite(options.state_scale), "score: state_scale is ", options.state_scale,
            "; it must be finite and not negative");
  }

  /// One score an item. `exit` is an exit rule or a plain number of steps. Throws gyre::error for empty prompts, tokens outside
  /// the vocabulary, items that exceed the context, and rules that are none.
  std::vector<scored> operator()(std::span<const score_item> items, exits::any exit) {
    exit.validate();
    for (std::size_t i = 0; i < items.size(); ++i) check(items[i], i);
    std::vector<scored> scores(items.size());
    for (std::size_t first = 0, end = 0; first < items.size(); first = end) {
      index rows = 0;
      while (end < items.size() && (end == first || rows + rows_of(items[end]) <= options_.rows)) rows += rows_of(items[end++]);
      score_batch(items.subspan(first, end - first), exit, std::span<scored>(scores).subspan(first, end - first));
    }
    return scores;
  }

 private:
  static index rows_of(const score_item& item) {
    return item.continuation.empty() ? 0 : static_cast<index>(item.prompt.size() + item.continuation.size()) - 1;
  }
  static void check(const score_item& item, std::size_t number) {
    require(!item.prompt.empty(), "score: the prompt of item ", number, " is empty; at least 1 token is needed");
    require(rows_of(item) <= A::shape.context, "score: item ", number, " has ", item.prompt.size(), " + ",
            item.continuation.size(), " tokens; the context of ", A::shape.context, " allows one more than that");
    for (const auto part : {item.prompt, item.continuation})
      for (const token t : part)
        require(t >= 0 && t < A::shape.vocab, "score: token ", t, " of item ", number, " is outside the vocabulary of ",
                A::shape.vocab);
  }

  void score_batch(std::span<const score_item> items, const exits::any& exit, std::span<scored> scores) {
    // Only tokens that others still look at after they have left need a cache.
    const bool cached = exit.reads() != exits::evidence::none;
    shares_.clear(), targets_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto [prompt, continuation] = items[i];
      if (continuation.empty()) continue;
      const auto fed = continuation.first(continuation.size() - 1);
      targets_.insert(targets_.end(), prompt.size() - 1, token{-1});
      targets_.insert(targets_.end(), continuation.begin(), continuation.end());
      detail::round_share<B, scalar> share;
      share.key = options_.key;
      share.initial = {options_.of, options_.state_step, options_.state_scale};
      share.exit = exit, share.lookup = options_.lookup;
      if (cached) {
        share.cache = cache(i);
        share.cache->open(decoder_.caches(), exit.most_steps(), rows_of(items[i]));
        share.ids = prompt, share.may_exit = options_.exit_in_prompt;
        shares_.push_back(share);
        share.past = static_cast<index>(prompt.size()), share.may_exit = true;
        // Tokens that leave one by one run one by one where layers keep a memory of each over its depths.
        const std::size_t together = decoder_.remembers() ? 1 : (std::max)(fed.size(), std::size_t{1});
        for (std::size_t at = 0; at < fed.size(); at += together) {
          share.ids = fed.subspan(at, (std::min)(together, fed.size() - at));
          shares_.push_back(share);
          share.past += static_cast<index>(share.ids.size());
        }
      } else {
        joined_.resize((std::max)(joined_.size(), items.size()));
        joined_[i].assign(prompt.begin(), prompt.end());
        joined_[i].insert(joined_[i].end(), fed.begin(), fed.end());
        share.ids = joined_[i];
        shares_.push_back(share);
      }
    }
    if (shares_.empty()) return;
    const auto round = decoder_.run(shares_, targets_);
    std::size_t row = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].continuation.empty()) continue;
      row += items[i].prompt.size() - 1;
      for (std::size_t n = 0; n < items[i].continuation.size(); ++n, ++row) {
        scores[i].log_likelihoods.push_back(-static_cast<double>(round.losses[row]));
        scores[i].steps.push_back(round.steps[row]);
      }
    }
  }
  sequence_cache<B, scalar>* cache(std::size_t i) {
    while (caches_.size() <= i) caches_.push_back(std::make_unique<sequence_cache<B, scalar>>(decoder_.net().device()));
    return caches_[i].get();
  }

  detail::decoder<A, B, P> decoder_;
  score_options options_;
  std::vector<detail::round_share<B, scalar>> shares_;
  std::vector<token> targets_;
  std::vector<std::vector<token>> joined_;
  std::vector<std::unique_ptr<sequence_cache<B, scalar>>> caches_;
};

/// Scores many continuations once. Keep a scorer to score often.
template <architecture A, class B, precision P>
std::vector<scored> score(const network<A, B, P>& net, std::span<const score_item> items, exits::any exit,
                          score_options options = {}) {
  return scorer<A, B, P>(net, options)(items, exit);
}
template <architecture A, class B, precision P>
scored score(const network<A, B, P>& net, std::span<const token> prompt, std::span<const token> continuation, exits::any exit,
             score_options options = {}) {
  const score_item item{prompt, continuation};
  return scorer<A, B, P>(net, options)({&item, 1}, exit)[0];
}

GYRE_END
