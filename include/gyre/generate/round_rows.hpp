// The bookkeeping of a round: which rows belong to which sequence, which go on after a step, which are finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <gyre/core/layout.hpp>
#include <gyre/generate/cache.hpp>
#include <gyre/generate/sampling.hpp>
#include <gyre/ops/shapes.hpp>
#include <gyre/policy/exits.hpp>

GYRE_BEGIN

/// The state of one token after one step, as a caller sees it on request.
template <class T>
struct token_state {
  index position = 0;
  int step = 0;              // steps run, from 1
  bool last = false;         // whether the token leaves the recurrence with this state
  std::span<const T> state;  // (width), before n_c; valid during the call
};
template <class T>
using state_observer = std::function<void(const token_state<T>&)>;

namespace detail {

/// One sequence's share of a round: the tokens of positions past .. past + ids.size() - 1.
template <class B, class T>
struct round_share {
  std::span<const token> ids;
  index past = 0;
  std::uint64_t key = 0;  // of the sequence
  state_key initial;      // of its initial states
  exits::any exit;        // its most_steps() is the sequence's r
  bool may_exit = false;  // whether these tokens may leave before r
  cache_lookup lookup = cache_lookup::latest;
  sequence_cache<B, T>* cache = nullptr;  // null in every share of a round: nothing is cached
  bool wants_logits = false;              // of its last token
  const sampling* choose = nullptr;       // of the next token, with wants_logits; null in every share of a round: none is drawn
  std::span<const token> history{};       // what `choose` penalises
  index most_history = 0;                 // tokens that it may come to have in later rounds
  double uniform = 0;                     // what it draws with
  const state_observer<T>* observer = nullptr;
};

/// Rows are numbered as they entered the round. Vectors grow to the largest round and are then kept.
template <class B, class T>
class round_rows {
 public:
  using share = round_share<B, T>;

  void begin(std::span<const share> shares) {
    shares_ = shares;
    ids_.clear(), owner_.clear(), active_.clear(), lanes_.clear(), wanted_.clear(), layout_.clear(), choices_.clear();
    most_steps_ = 0, left_count_ = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      const share& s = shares[i];
      const index count = static_cast<index>(s.ids.size()), begin = tokens();
      layout_.add(count, s.past, s.key);
      if (s.cache != nullptr) {
        lanes_.push_back(s.cache->lane(s.lookup));
        s.cache->note_steps(s.past, count, s.exit.most_steps());  // until they leave
      }
      ids_.insert(ids_.end(), s.ids.begin(), s.ids.end());
      for (index row = begin; row < begin + count; ++row) {
        owner_.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(s.past + row - begin)});
        active_.push_back(row);
      }
      if (s.wants_logits) wanted_.push_back(tokens() - 1);
      if (s.wants_logits && s.choose != nullptr) choices_.add(*s.choose, s.history, s.most_history, s.uniform);
      most_steps_ = (std::max)(most_steps_, s.exit.most_steps());
    }
    steps_.assign(ids_.size(), 0), place_.assign(ids_.size(), 0);
    place_rows(active_, active_layout_, active_lanes_);
  }

  index tokens() const { return static_cast<index>(ids_.size()); }
  std::span<const token> ids() const { return ids_; }
  const batch_layout& layout() const { return layout_; }
  std::span<const cache_lane<T>> lanes() const { return lanes_; }
  std::span<const index> wanted() const { return wanted_; }
  /// Whether tokens are drawn, one for each row wanted.
  bool draws() const { return !choices_.rows.empty(); }
  const sampling_batch& choices() const { return choices_; }
  int most_steps() const { return most_steps_; }
  std::span<const std::int32_t> steps() const { return steps_; }

  /// The rows that are still in the recurrence, in order.
  index active() const { return static_cast<index>(active_.size()); }
  const batch_layout& active_layout() const { return active_layout_; }
  std::span<const cache_lane<T>> active_lanes() const { return active_lanes_; }

  /// f(first row, layout, key) for each run of sequences whose initial states have the same key.
  template <class F>
  void each_state_key(F&& f) {
    const auto same = [](const state_key& a, const state_key& b) {
      return a.of == b.of && a.step == b.step && !(a.scale < b.scale) && !(b.scale < a.scale);
    };
    for (std::size_t first = 0, end = 0; first < shares_.size(); first = end) {
      part_.clear();
      for (end = first; end < shares_.size() && same(shares_[first].initial, shares_[end].initial); ++end)
        part_.add(static_cast<index>(shares_[end].ids.size()), shares_[end].past, shares_[end].key);
      f(layout_.sequences()[first].begin, static_cast<const batch_layout&>(part_), shares_[first].initial);
    }
  }

  void note_memory(bool) {}
  void note_encoding(bool, bool) {}
  /// Whether a rule wants to see the states after `steps` steps.
  bool watches(int steps) const {
    return std::any_of(active_.begin(), active_.end(), [&](index row) { return checked(owner_of(row), steps); });
  }
  /// After `steps` steps: decides which active rows are finished. `change` (active, 2) as row_change gives it, or null where
  /// nobody watches.
  void decide(int steps, const compute_t<T>* change) {
    leaving_.clear(), staying_.clear();
    for (index i = 0; i < active(); ++i) {
      const index row = active_[at(i)];
      const share& s = owner_of(row);
      bool leaves = steps >= s.exit.most_steps();
      if (!leaves && checked(s, steps))
        leaves = s.exit.leaves({steps, static_cast<double>(change[2 * i]), static_cast<double>(change[2 * i + 1])});
      if (!leaves) {
        staying_.push_back(i);
        continue;
      }
      leaving_.push_back(i);
      steps_[at(row)] = steps;
      place_[at(row)] = left_count_++;
      if (s.cache != nullptr) s.cache->note_steps(owner_[at(row)].position, 1, steps);
    }
  }
  /// Places, among the active rows, of those that have just finished and of those that go on.
  std::span<const index> leaving() const { return leaving_; }
  std::span<const index> staying() const { return staying_; }
  bool all_done() const { return left_count_ == tokens(); }

  /// The rows that finished after `steps` steps and whose keys and values later steps of other tokens will look for.
  struct extension {
    const batch_layout& layout;
    std::span<const cache_lane<T>> lanes;
    std::span<const std::int32_t> copies;
  };
  extension extended(int steps) {
    left_rows_.clear(), copies_.clear();
    for (index row = 0; row < tokens(); ++row) {
      const share& s = owner_of(row);
      if (steps_[at(row)] == steps && steps < s.exit.most_steps() && s.cache != nullptr && s.lookup == cache_lookup::latest)
        left_rows_.push_back(row);
    }
    place_rows(left_rows_, left_layout_, left_lanes_);
    for (const sequence_span& span : left_layout_.sequences())
      copies_.push_back(static_cast<std::int32_t>(owner_of(left_rows_[at(span.begin)]).exit.most_steps() - steps));
    return {left_layout_, left_lanes_, copies_};
  }
  /// Takes the finished rows out of the active ones.
  void compact() {
    for (std::size_t i = 0; i < staying_.size(); ++i) active_[i] = active_[at(staying_[i])];
    active_.resize(staying_.size());
    place_rows(active_, active_layout_, active_lanes_);
  }
  /// order()[row]: the place of a row's final state among the final states in the order of leaving.
  std::span<const index> order() const { return place_; }

  /// Whether somebody wants to see states.
  bool observed() const {
    return std::any_of(shares_.begin(), shares_.end(), [](const share& s) { return s.observer != nullptr && *s.observer; });
  }
  /// Shows the states of the active rows, after decide().
  void show(int steps, matrix_view<const T> states) const {
    for (index i = 0; i < active(); ++i) {
      const index row = active_[at(i)];
      const share& s = owner_of(row);
      if (s.observer == nullptr || !*s.observer) continue;
      (*s.observer)({owner_[at(row)].position, steps, steps_[at(row)] == steps, {states[i], at(states.cols)}});
    }
  }

 private:
  struct place {
    std::int32_t share, position;
  };
  static std::size_t at(index i) { return static_cast<std::size_t>(i); }
  const share& owner_of(index row) const { return shares_[static_cast<std::size_t>(owner_[at(row)].share)]; }
  static bool checked(const share& s, int steps) {
    return s.may_exit && s.exit.reads() != exits::evidence::none && s.exit.checks(steps);
  }
  /// Neighbouring rows of one sequence are one span.
  void place_rows(const std::vector<index>& chosen, batch_layout& layout, std::vector<cache_lane<T>>& lanes) {
    layout.clear(), lanes.clear();
    for (std::size_t i = 0, end = 0; i < chosen.size(); i = end) {
      const place first = owner_[at(chosen[i])];
      for (end = i + 1;
           end < chosen.size() && owner_[at(chosen[end])].share == first.share && chosen[end] == chosen[end - 1] + 1;)
        ++end;
      const share& s = shares_[static_cast<std::size_t>(first.share)];
      layout.add(static_cast<index>(end - i), first.position, s.key);
      if (s.cache != nullptr) lanes.push_back(s.cache->lane(s.lookup));
    }
  }

  std::span<const share> shares_;
  std::vector<token> ids_;           // (tokens)
  std::vector<place> owner_;         // (tokens)
  std::vector<std::int32_t> steps_;  // (tokens) steps run, 0 while active
  std::vector<index> place_;         // (tokens)
  std::vector<index> active_, wanted_, leaving_, staying_, left_rows_;
  std::vector<std::int32_t> copies_;
  sampling_batch choices_;
  batch_layout layout_, active_layout_, left_layout_, part_;
  std::vector<cache_lane<T>> lanes_, active_lanes_, left_lanes_;
  int most_steps_ = 0;
  index left_count_ = 0;
};

/// The same calls for a dry run: `tokens` rows of one sequence that run one step. `blocks` is what the layers have cached so
/// far; the calls tell where the sections begin.
template <class B, class T>
class dry_rows {
 public:
  dry_rows(index tokens, index wanted, int steps, const std::vector<index>& blocks)
      : blocks_(blocks), wanted_(static_cast<std::size_t>(wanted)), steps_(steps) {
    layout_.add(tokens, 0, 0);
  }
  index tokens() const { return layout_.rows(); }
  std::span<const token> ids() const {
    // Addresses that are never read.
    return {reinterpret_cast<const token*>(arena::counting().template take<T>(1)), static_cast<std::size_t>(tokens())};
  }
  const batch_layout& layout() const { return layout_; }
  std::span<const cache_lane<T>> lanes() const { return {&lane_, 1}; }
  std::span<const index> wanted() const { return wanted_; }
  bool draws() const { return true; }
  const sampling_batch& choices() const { return choices_; }
  int most_steps() const { return steps_; }
  std::span<const std::int32_t> steps() const { return {}; }
  index active() const { return tokens(); }
  const batch_layout& active_layout() const { return layout_; }
  std::span<const cache_lane<T>> active_lanes() const { return lanes(); }
  template <class F>
  void each_state_key(F&& f) {
    loop_begins_ = blocks_.size();
    f(index{0}, static_cast<const batch_layout&>(layout_), state_key{});
  }
  bool watches(int) const { return false; }
  void decide(int, const compute_t<T>*) { done_ = true, loop_ends_ = blocks_.size(); }
  bool observed() const { return false; }
  void show(int, matrix_view<const T>) const {}
  std::span<const index> leaving() const { return {}; }
  std::span<const index> staying() const { return {}; }
  std::span<const index> order() const { return {}; }
  bool all_done() const { return done_; }
  void compact() {}
  struct extension {
    const batch_layout& layout;
    std::span<const cache_lane<T>> lanes;
    std::span<const std::int32_t> copies;
  };
  extension extended(int) const { return {nobody_, {}, {}}; }

  /// Whether the recurrence keeps a memory across its steps.
  void note_memory(bool remembers) { remembers_ = remembers; }
  bool remembers() const { return remembers_; }
  /// Whether a layer's result depends on the steps asked for; whether on the step that runs.
  void note_encoding(bool counts_steps, bool reads_step) { counts_steps_ = counts_steps, reads_step_ = reads_step; }
  bool counts_steps() const { return counts_steps_; }
  bool reads_step() const { return reads_step_; }
  void sections(cache_plan& plan) const {
    const auto at = [this](std::size_t i) { return blocks_.begin() + static_cast<std::ptrdiff_t>(i); };
    plan.prelude.assign(at(0), at(loop_begins_));
    plan.step.assign(at(loop_begins_), at(loop_ends_));
    plan.coda.assign(at(loop_ends_), blocks_.end());
  }

 private:
  const std::vector<index>& blocks_;
  std::size_t loop_begins_ = 0, loop_ends_ = 0;
  batch_layout layout_, nobody_;
  cache_lane<T> lane_{};
  std::vector<index> wanted_;
  sampling_batch choices_;
  int steps_ = 0;
  bool done_ = false, remembers_ = false, counts_steps_ = false, reads_step_ = false;
};

}  // namespace detail

GYRE_END
