// Rounds of a ragged batch: prompts and single tokens together, every row as many steps deep as it needs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <gyre/generate/cache.hpp>
#include <gyre/generate/round_result.hpp>
#include <gyre/generate/round_rows.hpp>
#include <gyre/model/pass.hpp>

GYRE_BEGIN

namespace detail {

/// The sequence of calls behind a round and its plan. `Rows` decides which rows go on after each step: round_rows or dry_rows.
template <class A, class B, class P, class Rows>
class round_walk {
  using T = activation_t<P>;
  using S = statistic_t<P>;
  using loop = typename A::loop;
  static constexpr int W = A::width;
  using view = rows<const T, W>;

 public:
  round_walk(context<B, P>& c, weights<B, P> w, Rows& batch, const cache_plan& caches)
      : c_(c), w_(w), rows_(batch), caches_(caches) {}

  round_result<S> run(index wanted, std::span<const token> targets) {
    c_.keep = false;
    typename A::template tape<P> tape{};
    const index tokens = c_.layout.rows();
    S* losses = c_.tape.template take<S>(targets.empty() ? 0 : tokens);
    const view e = A::embed(c_, w_, rows_.ids(), tape);
    const view s = recur(e);
    c_.cache_cursor = cache_width<typename A::prelude_layers>;
    view hidden = A::finish(c_, w_, s, tape);
    round_result<S> result;
    result.steps = rows_.steps();
    if (!targets.empty()) {
      A::loss(c_, w_, nullptr, hidden, targets, S(1), losses, rows<T, W>{});
      result.losses = {losses, targets.size()};
    }
    if (wanted > 0) {
      const auto picked = c_.tape.template take_rows<T, W>(wanted);
      if (wanted < tokens) {
        c_.device.gather(hidden.view(), rows_.wanted(), picked.view());
        hidden = picked;
      }
      const matrix_view<S> logits(c_.tape.template take<S>(wanted * A::shape.vocab), wanted, A::shape.vocab);
      A::logits(c_, w_, hidden, logits);
      result.logits = logits;
      token* const chosen = c_.tape.template take<token>(wanted);
      double* const log_probabilities = c_.tape.template take<double>(wanted);
      if (rows_.draws()) {
        const sampling_batch& choices = rows_.choices();
        c_.device.sample(matrix_view<const S>(logits), std::span<const sampling_row>(choices.rows),
                         std::span<const token>(choices.histories), chosen, log_probabilities);
        result.chosen = std::span<const token>(chosen, static_cast<std::size_t>(wanted));
        result.log_probabilities = std::span<const double>(log_probabilities, static_cast<std::size_t>(wanted));
      }
    }
    return result;
  }

 private:
  /// The recurrence: s_r of every row, in the order of the rows.
  view recur(view e) {
    const weights<B, P> w = w_ + A::loop_at;
    const auto take = [&] { return c_.tape.template take_rows<T, W>(e.count); };
    rows<T, W> turns[2] = {take(), take()}, kept[2], finished = take();
    view prepared = loop::injection::prepare(c_, w, e);
    if constexpr (loop::uses_input)
      for (auto& k : kept) k = take();
    S* change = c_.tape.template take<S>(2 * e.count);
    start(e, turns[0]);

    context<B, P> c{c_.device, c_.tape, c_.scratch, c_.records, rows_.active_layout(), c_.tables};
    c.keep = false;
    c.steps = rows_.most_steps();
    c.observer = c_.observer;
    carry_t<typename loop::body, P> carry{};
    const std::size_t before = c.tape.mark();
    open_carry<typename loop::body>(c, c.tape, e.count, c.steps, carry);
    const bool remembers = c.tape.mark() != before;
    rows_.note_memory(remembers);
    int now = 0;
    index finished_count = 0;
    for (int step = 0; !rows_.all_done(); ++step, now = 1 - now) {
      const index active = rows_.active();
      const view in{turns[now].data, active};
      const rows<T, W> out{turns[1 - now].data, active};
      c.step = step;
      c.lanes = rows_.active_lanes();
      c.cache_cursor = A::fixed_cache_width + step * A::step_cache_width;
      {
        const frame memory(c.tape);
        const frame records(c.records);
        typename loop::template step_tape<P> passing{};
        loop::step(c, w, in, view{prepared.data, active}, out, passing, carry);
      }
      if (step == 0) rows_.note_encoding(c.steps_matter, c.step_matters);
      const bool watched = rows_.watches(step + 1);
      if (watched) c.device.row_change(matrix_view<const T>(out.view()), in.view(), change), c.device.finish();
      rows_.decide(step + 1, watched ? change : nullptr);
      if (rows_.observed()) c.device.finish(), rows_.show(step + 1, out.view());
      const std::span<const index> leaving = rows_.leaving(), staying = rows_.staying();
      if (leaving.empty()) continue;
      extend(step);
      const index count = static_cast<index>(leaving.size());
      if (finished_count == 0 && staying.empty()) return out;  // all at once, in their order
      c.device.gather(matrix_view<const T>(out.view()), leaving, finished.view().slice(finished_count, count));
      finished_count += count;
      if (staying.empty()) continue;
      require(!remembers, "generate: tokens of one round leave after different steps, but a layer of ",
              "the recurrence keeps a memory across steps, whose rows cannot be taken out; exit_in_prompt must be off");
      const index left = static_cast<index>(staying.size());
      // The states that the step read are not needed any more; the survivors move there.
      c.device.gather(matrix_view<const T>(out.view()), staying, turns[now].view().slice(0, left));
      if constexpr (loop::uses_input) {
        rows<T, W>& to = prepared.data == kept[0].data ? kept[1] : kept[0];
        c.device.gather(prepared.view().slice(0, active), staying, to.view().slice(0, left));
        prepared = to;
      }
      rows_.compact();
      now = 1 - now;  // undoes the loop's turn
    }
    if (finished_count == 0) return view{turns[now].data, e.count};
    c.device.gather(matrix_view<const T>(finished.view()), rows_.order(), turns[0].view());
    return turns[0];
  }

  void start(view e, rows<T, W> s) {
    rows_.each_state_key([&](index first, const batch_layout& layout, const state_key& key) {
      context<B, P> c{c_.device, c_.tape, c_.scratch, c_.records, layout, c_.tables};
      loop::state_policy::template fill<B, P, W>(c, key, view{e[first], layout.rows()}, rows<T, W>{s[first], layout.rows()});
    });
  }
  /// Later steps of other tokens find the deepest keys and values of the tokens that left after `step`.
  void extend(int step) {
    const auto left = rows_.extended(step + 1);
    if (left.layout.rows() == 0) return;
    c_.device.cache_extend(left.layout, left.lanes, left.copies, A::fixed_cache_width + step * A::step_cache_width,
                           std::span<const index>(caches_.step), A::step_cache_width);
  }

  context<B, P>& c_;
  weights<B, P> w_;
  Rows& rows_;
  const cache_plan& caches_;
};

/// Runs rounds for one stream. Memory grows to the largest round and is then kept.
template <architecture A, class B, precision P>
class decoder {
 public:
  using scalar = activation_t<P>;
  using share = round_share<B, scalar>;
  using statistic = statistic_t<P>;
  static_assert(std::is_same_v<compute_t<scalar>, statistic>, "decoder: norms are read in the compute type of activations");

  /// What memory is planned for.
  struct extent {
    index tokens = 0, wanted = 0;
    int steps = 0;
    bool losses = false;

    bool covers(const extent& o) const {
      return o.tokens <= tokens && o.wanted <= wanted && o.steps <= steps && o.losses <= losses;
    }
    extent with(const extent& o) const {
      return {(std::max)(o.tokens, tokens), (std::max)(o.wanted, wanted), (std::max)(o.steps, steps), o.losses || losses};
    }
  };

  explicit decoder(const network<A, B, P>& net) : net_(net), memory_(net.device()) { plan_caches(); }
  decoder(const decoder&) = delete;
  decoder& operator=(const decoder&) = delete;

  const network<A, B, P>& net() const { return net_; }
  void observe_passes(pass_observer<P>* observer) { observer_ = observer; }
  bool observed() const { return observer_ != nullptr; }
  const cache_plan& caches() const { return caches_; }
  /// Whether the recurrence keeps a memory across its steps: then rows of one round cannot leave one by one.
  bool remembers() const { return remembers_; }
  /// Whether a layer of the recurrence knows which step runs: then rows of one round cannot be at different steps.
  bool reads_step() const { return reads_step_; }

  /// Logits of the shares that want them; with `targets` (one a token, negative: does not count) the losses besides. The caller
  /// has checked tokens and positions and has made room in the caches.
  round_result<statistic> run(std::span<const share> shares, std::span<const token> targets = {}) {
    return fit(shares) == shares.size() ? run_together(shares, targets) : run_in_parts(shares, targets);
  }

  /// Empties the memory and makes it large enough for a round of `need`.
  void make_room(const extent& need) {
    if (largest_.covers(need)) return memory_.prepare(plan_);
    const extent larger = largest_.with(need);
    const pass_plan planned = plan(larger);
    memory_.prepare(planned);  // where memory is short, smaller rounds go on
    largest_ = larger, plan_ = planned;
  }
  pass_memory<B>& memory() { return memory_; }

  /// Bytes of tape and scratch that the last round was planned for, and those that it took.
  std::array<std::size_t, 2> planned() const { return {plan_.tape_bytes, plan_.scratch_bytes}; }
  std::array<std::size_t, 2> taken() { return {memory_.tape().peak(), memory_.scratch().peak()}; }

 private:
  round_result<statistic> run_together(std::span<const share> shares, std::span<const token> targets) {
    batch_.begin(shares);
    make_room({batch_.tokens(), static_cast<index>(batch_.wanted().size()), batch_.most_steps(), !targets.empty()});
    B device = net_.device();
    context<B, P> c{device, memory_.tape(), memory_.scratch(), memory_.records(), batch_.layout(), net_.tables()};
    c.lanes = batch_.lanes();
    c.observer = observer_;
    const auto result = round_walk<A, B, P, round_rows<B, scalar>>(c, net_.parameters(), batch_, caches_)
                            .run(static_cast<index>(batch_.wanted().size()), targets);
    device.finish();  // the host reads tokens, or logits and losses
    return result;
  }

  /// How many shares from the first on can run in one round. Where layers know the steps asked for, these must be equal. A memory
  /// across the steps (a carry) has a place for every row, so its rows cannot leave one by one: sequences with an exit run alone.
  std::size_t fit(std::span<const share> shares) const {
    std::size_t count = (std::min)(shares.size(), std::size_t{1});
    const auto may_leave = [](const share& s) { return s.may_exit && s.exit.reads() != exits::evidence::none; };
    const auto alike = [&](const share& s) {
      return (!remembers_ || (!may_leave(s) && !may_leave(shares[0]))) &&
             ((!remembers_ && !counts_steps_) || s.exit.most_steps() == shares[0].exit.most_steps());
    };
    while (count < shares.size() && alike(shares[count])) ++count;
    return count;
  }
  round_result<statistic> run_in_parts(std::span<const share> shares, std::span<const token> targets) {
    collected_.clear();
    while (!shares.empty()) {
      const auto part = shares.first(fit(shares));
      std::size_t tokens = 0;
      for (const share& each : part) tokens += each.ids.size();
      const auto round = run_together(part, targets.empty() ? targets : targets.first(tokens));
      targets = targets.empty() ? targets : targets.subspan(tokens);
      shares = shares.subspan(part.size());
      collected_.append(round);
    }
    return collected_.result(A::shape.vocab);
  }

  GYRE_COLD pass_plan plan(const extent& e) {
    dry<B> counter;
    arena tape = arena::counting(), scratch = arena::counting();
    record_stack records;
    rotary_tables<statistic_t<P>> tables;
    for (const rotary_spec& spec : parameter_table<A>::rotary_specs()) tables.all.push_back({spec, nullptr});
    dry_rows<B, scalar> batch(e.tokens, e.wanted, e.steps, counter.cache_blocks);
    context<dry<B>, P> c{counter, tape, scratch, records, batch.layout(), tables};
    c.lanes = batch.lanes();
    // Addresses that keep the books and are never read.
    const auto* numbers = arena::counting().template take<parameter_t<P>>(1);
    const std::span<const token> targets(reinterpret_cast<const token*>(numbers),
                                         e.losses ? static_cast<std::size_t>(e.tokens) : 0);
    round_walk<A, dry<B>, P, dry_rows<B, scalar>>(c, weights<dry<B>, P>{numbers, nullptr}, batch, caches_)
        .run(e.wanted, targets);
    batch.sections(caches_);
    remembers_ = batch.remembers(), counts_steps_ = batch.counts_steps(), reads_step_ = batch.reads_step();
    return {tape.peak(), scratch.peak(), counter.costs};
  }
  void plan_caches() {
    plan({.tokens = 1, .wanted = 0, .steps = 1, .losses = false});
    const auto sum = [](const std::vector<index>& blocks) { return std::accumulate(blocks.begin(), blocks.end(), index{0}); };
    caches_.fixed_width = sum(caches_.prelude) + sum(caches_.coda), caches_.step_width = sum(caches_.step);
    require(caches_.fixed_width == A::fixed_cache_width && caches_.step_width == A::step_cache_width,
            "decoder: the layers cache ", caches_.fixed_width, " and, each step, ", caches_.step_width,
            " scalars a token, but declare ", A::fixed_cache_width, " and ", A::step_cache_width);
  }

  const network<A, B, P>& net_;
  pass_memory<B> memory_;
  round_rows<B, scalar> batch_;
  cache_plan caches_;
  extent largest_;
  pass_plan plan_;
  pass_observer<P>* observer_ = nullptr;
  bool remembers_ = false, counts_steps_ = false, reads_step_ = false;
  collected_rounds<statistic> collected_;
};

}  // namespace detail

GYRE_END
