// Drafted decoding: tokens of one sequence at different depths share each reading of the weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <gyre/generate/cache.hpp>
#include <gyre/generate/decoder.hpp>
#include <gyre/model/pass.hpp>

GYRE_BEGIN

namespace detail {

/// A token in the recurrence. After draft_steps steps, after twice as many and so on it tells what may follow, after most_steps
/// what does.
template <class B, class T>
struct wavefront_token {
  token id = 0;
  index position = 0;
  std::uint64_t key = 0;                        // of the sequence
  state_key initial;                            // of its initial state
  const sequence_cache<B, T>* cache = nullptr;  // with room for `position`
  int most_steps = 0, draft_steps = 0;
  std::uint64_t owner = 0;  // the request
  int depth = 0;            // steps run
  int speaks_at = 0;        // depth of the next draft
};

/// What one token says of the token that follows.
template <class S>
struct wavefront_answer {
  std::uint64_t owner = 0;
  index position = 0;
  bool complete = false;  // after most_steps, so that it has left; else a draft
  sampled_token drawn;    // id -1: the logits have no softmax; drafts have no probability
  std::span<const S> logits;
};

/// Self-speculative decoding (recurrent_depth, section 5.4) along the diagonal of section 5.5. A token enters as soon as the one
/// before it has a draft, draft_steps steps behind it, and every step serves all tokens on their way. What a draft has computed is
/// not thrown away: verification goes on from its state. At step t a token reads the keys and values that earlier tokens wrote
/// at step t, and these are further: they have passed step t whenever it gets there. So a token whose predecessors were right
/// ends with the very numbers that it has when it is run alone, to the bit.
///
/// Each time a token speaks its draft is drawn anew, and where it has changed what was built on it is dropped: of a wrong draft
/// the price is the rounds until it is seen, and most are seen after twice its steps. Rows are free as long as the way of the
/// weights through the caches takes longer than the arithmetic.
///
/// Reads of weights for a token, of one sequence and as long as drafts are right: prelude, draft_steps steps, coda and head,
/// instead of prelude, most_steps steps, coda and head.
template <architecture A, class B, precision P>
class wavefront {
  using T = activation_t<P>;
  using S = statistic_t<P>;
  using loop = typename A::loop;
  static constexpr int W = A::width;
  using view = rows<const T, W>;

 public:
  using entry = wavefront_token<B, T>;
  using answer = wavefront_answer<S>;

  /// Shares the decoder's memory: a round of either ends what the other's last round left.
  explicit wavefront(decoder<A, B, P>& d) : decoder_(d), device_(d.net().device()) {}

  bool empty() const { return tokens_.empty(); }
  /// The first token of a sequence, or the one after its newest.
  void enter(const entry& e) {
    tokens_.push_back(e), places_.push_back(-1);
    tokens_.back().speaks_at = e.draft_steps;
  }
  /// Forgets the tokens of a request from a position on. Those that enter in their place overwrite what they have cached.
  void drop(std::uint64_t owner, index from = 0) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].owner != owner || tokens_[i].position < from) tokens_[kept] = tokens_[i], places_[kept++] = places_[i];
    tokens_.resize(kept), places_.resize(kept);
  }
  void clear() { tokens_.clear(), places_.clear(); }

  /// Runs all tokens on to the next depth at which one of them has something to say. Answers come in the order of the tokens,
  /// those of a request thus by position; their logits are valid until the decoder's next round. `choose(owner, position,
  /// complete, batch)` adds to the batch how the token that follows is drawn. If it throws, clear() and begin again.
  template <class Choose>
  std::span<const answer> run(const Choose& choose) {
    const index total = static_cast<index>(tokens_.size());
    const index entered = static_cast<index>(std::count(places_.begin(), places_.end(), index{-1})), old = total - entered;
    int steps = tokens_.front().most_steps;
    for (const entry& e : tokens_) steps = (std::min)({steps, e.draft_steps, e.most_steps - e.depth});
    choose_speakers(steps);
    decoder_.make_room({.tokens = total, .wanted = static_cast<index>(speakers_.size()), .steps = 1, .losses = false});
    make_room(total);
    gather_survivors(old);
    if (entered > 0) begin(old, entered);
    go_on(steps);
    speak(choose);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].depth < tokens_[i].most_steps) tokens_[kept] = tokens_[i], places_[kept++] = static_cast<index>(i);
    tokens_.resize(kept), places_.resize(kept);
    return answers_;
  }

 private:
  static std::size_t at(index i) { return static_cast<std::size_t>(i); }

  /// Tokens that have something to say after `steps` more steps.
  void choose_speakers(int steps) {
    speakers_.clear();
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (const int depth = tokens_[i].depth + steps; depth == tokens_[i].most_steps || depth >= tokens_[i].speaks_at)
        speakers_.push_back(static_cast<index>(i));
  }

  /// Four parts of `capacity` rows: two turns of the states, two of what the injection prepares from the embeddings.
  void make_room(index total) {
    if (total <= capacity_) return;
    const index capacity = (std::max)(total, 2 * capacity_);
    auto grown = std::make_unique<device_buffer<B>>(device_, at(4 * capacity * W) * sizeof(T));
    for (int part = 0; part < 4 && capacity_ > 0; ++part)
      device_.copy(matrix_view<const T>(memory_->template as<T>() + part * capacity_ * W, capacity_, W, W),
                   matrix_view<T>(grown->template as<T>() + part * capacity * W, capacity_, W, W));
    memory_ = std::move(grown), capacity_ = capacity;
  }
  rows<T, W> states(int turn, index count) const { return {memory_->template as<T>() + turn * capacity_ * W, count}; }
  rows<T, W> prepared(int turn, index count) const { return states(2 + turn, count); }

  context<B, P> open(const batch_layout& layout, const std::vector<cache_lane<T>>& lanes) {
    auto& memory = decoder_.memory();
    context<B, P> c{device_, memory.tape(), memory.scratch(), memory.records(), layout, decoder_.net().tables()};
    c.keep = false, c.lanes = lanes, c.steps = 1;
    return c;
  }
  /// Every token is a sequence of its own to the layers. `shift`: the lane begins `depth` steps later, so that one cursor serves
  /// tokens of all depths.
  void place(const entry& e, bool shift, batch_layout& layout, std::vector<cache_lane<T>>& lanes) const {
    layout.add(1, e.position, e.key);
    cache_lane<T> lane = e.cache->lane(cache_lookup::latest);
    if (shift) lane.base += e.depth * A::step_cache_width * lane.capacity;
    lanes.push_back(lane);
  }

  void gather_survivors(index old) {
    const std::span<const index> chosen(places_.data(), at(old));
    const auto close_up = [&](rows<T, W> from, rows<T, W> to) {
      if (old > 0) device_.gather(matrix_view<const T>(from.view()), chosen, to.view());
    };
    close_up(states(now_, capacity_), states(1 - now_, old));
    if constexpr (loop::uses_input) close_up(prepared(input_now_, capacity_), prepared(1 - input_now_, old));
    now_ = 1 - now_, input_now_ = 1 - input_now_;
  }

  /// Prelude and initial states of the tokens that have entered, rows [old, old + entered).
  void begin(index old, index entered) {
    ids_.clear(), layout_.clear(), lanes_.clear();
    for (index i = old; i < old + entered; ++i) {
      ids_.push_back(tokens_[at(i)].id);
      place(tokens_[at(i)], false, layout_, lanes_);
    }
    auto c = open(layout_, lanes_);
    const frame memory(c.tape);
    typename A::template tape<P> tape{};
    const auto w = decoder_.net().parameters();
    const view e = A::embed(c, w, ids_, tape);
    const view input = loop::injection::prepare(c, w + A::loop_at, e);
    if constexpr (loop::uses_input) device_.copy(input.view(), prepared(input_now_, old + entered).view().slice(old, entered));
    const rows<T, W> s = states(now_, old + entered);
    for (index i = 0; i < entered; ++i) {
      const entry& token = tokens_[at(old + i)];
      one_.clear(), one_.add(1, token.position, token.key);
      auto each = open(one_, lanes_);
      loop::state_policy::template fill<B, P, W>(each, token.initial, view{e[i], 1}, rows<T, W>{s[old + i], 1});
    }
  }

  void go_on(int steps) {
    layout_.clear(), lanes_.clear();
    for (const entry& e : tokens_) place(e, true, layout_, lanes_);
    const index total = layout_.rows();
    auto c = open(layout_, lanes_);
    const frame memory(c.tape);
    const auto w = decoder_.net().parameters() + A::loop_at;
    carry_t<typename loop::body, P> carry{};
    open_carry<typename loop::body>(c, c.tape, total, steps, carry);
    const view input = prepared(input_now_, total);
    for (int step = 0; step < steps; ++step, now_ = 1 - now_) {
      const frame passing_memory(c.tape);
      const frame records(c.records);
      c.step = step;
      c.cache_cursor = A::fixed_cache_width + step * A::step_cache_width;
      typename loop::template step_tape<P> passing{};
      loop::step(c, w, view(states(now_, total)), input, states(1 - now_, total), passing, carry);
    }
    for (entry& e : tokens_) e.depth += steps;
  }

  /// Coda and head of the speakers, and what follows by them.
  template <class Choose>
  void speak(const Choose& choose) {
    answers_.clear(), choices_.clear();
    const index count = static_cast<index>(speakers_.size());
    if (count == 0) return;
    layout_.clear(), lanes_.clear();
    for (const index i : speakers_) place(tokens_[at(i)], false, layout_, lanes_);
    auto c = open(layout_, lanes_);
    const auto picked = c.tape.template take_rows<T, W>(count);
    device_.gather(matrix_view<const T>(states(now_, static_cast<index>(tokens_.size())).view()),
                   std::span<const index>(speakers_), picked.view());
    typename A::template tape<P> tape{};
    const auto w = decoder_.net().parameters();
    c.cache_cursor = cache_width<typename A::prelude_layers>;
    const view hidden = A::finish(c, w, view(picked), tape);
    const matrix_view<S> logits(c.tape.template take<S>(count * A::shape.vocab), count, A::shape.vocab);
    A::logits(c, w, hidden, logits);
    const auto complete = [](const entry& e) { return e.depth == e.most_steps; };
    for (const index i : speakers_) choose(tokens_[at(i)].owner, tokens_[at(i)].position, complete(tokens_[at(i)]), choices_);
    token* const chosen = c.tape.template take<token>(count);
    double* const log_probabilities = c.tape.template take<double>(count);
    device_.sample(matrix_view<const S>(logits), std::span<const sampling_row>(choices_.rows),
                   std::span<const token>(choices_.histories), chosen, log_probabilities);
    device_.finish();  // the host reads what was drawn
    for (index i = 0; i < count; ++i) {
      entry& e = tokens_[at(speakers_[at(i)])];
      e.speaks_at = 2 * e.depth;
      answers_.push_back({e.owner, e.position, complete(e), {chosen[i], log_probabilities[i]}, {logits[i], at(logits.cols)}});
    }
  }

  decoder<A, B, P>& decoder_;
  B device_;
  std::vector<entry> tokens_;  // older ones first; those of one request in order
  std::vector<index> places_;  // (tokens) rows of states() and prepared(); -1: just entered
  std::vector<index> speakers_;
  std::vector<answer> answers_;
  sampling_batch choices_;
  std::vector<token> ids_;
  batch_layout layout_, one_;
  std::vector<cache_lane<T>> lanes_;
  std::unique_ptr<device_buffer<B>> memory_;  // (4, capacity, width)
  index capacity_ = 0;
  int now_ = 0, input_now_ = 0;
};

}  // namespace detail

GYRE_END
