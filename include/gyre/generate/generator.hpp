// Many requests at once on shared weights: each joins when it starts and leaves when it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gyre/generate/decoder.hpp>
#include <gyre/generate/request.hpp>
#include <gyre/generate/sequence.hpp>
#include <gyre/generate/wavefront.hpp>

GYRE_BEGIN

/// Numbers of a generator.
struct generator_options {
  index prompt_rows = 512;  // most tokens of prompts in one round: bounds memory, and the wait of the others
};

/// Generates for any number of requests in ragged batches. The weights are only read: any number of generators, one a thread,
/// may share a network, which must outlive them.
///
/// A token's result depends neither on the other requests nor on prompt_rows (bitwise where the backend's operations have that
/// property, as the contract demands). Once every request has reached its largest size nothing is allocated.
template <architecture A, class B, precision P>
class generator {
 public:
  using scalar = activation_t<P>;
  using statistic = statistic_t<P>;
  using id = std::uint64_t;

  explicit generator(const network<A, B, P>& net, generator_options options = {})
      : decoder_(net), wavefront_(decoder_), options_(options) {
    require(options.prompt_rows >= 1, "generator: prompt_rows is ", options.prompt_rows, "; it must be at least 1");
  }

  /// Tells `observer`, which must outlive the generator or be taken off by null, what layers do in its rounds.
  /// Throws while a request with drafts runs, whose tokens are at different steps in one pass.
  void observe_passes(pass_observer<P>* observer) {
    const auto drafts = [](const auto& s) { return s->running() && s->drafting(); };
    require(observer == nullptr || std::none_of(sequences_.begin(), sequences_.end(), drafts),
            "generator: an observer of passes cannot follow drafts, and a request with draft_steps is running");
    decoder_.observe_passes(observer);
  }

  /// Adds a request; it joins at the next advance(). `states` is shown the state of each of its tokens after every step.
  /// Throws gyre::error for requests that the model cannot serve.
  id start(generation_request wanted, state_observer<scalar> states = {}) {
    wanted.validate(A::shape.vocab, A::shape.context);
    if (wanted.draft_steps > 0) {
      require(!states, "generate: the states of each step are not shown with drafts; draft_steps must be 0");
      require(!decoder_.observed(),
              "generate: an observer of passes cannot follow drafts, which are at different steps in one pass; "
              "draft_steps must be 0");
      require(!decoder_.remembers() && !decoder_.reads_step(), "generate: draft_steps is ", wanted.draft_steps,
              ", but a layer of the recurrence keeps a memory across steps or knows which step runs; it must be 0");
    }
    auto s = std::make_unique<sequence>(std::move(wanted), std::move(states), last_id_ + 1);
    if (s->tokens.size() == context) {
      s->result.reason = finish::context;
    } else {
      s->cache = spare_cache();
      s->cache->open(decoder_.caches(), s->request.exit.most_steps(), s->first_capacity());
    }
    sequences_.push_back(std::move(s));
    return ++last_id_;
  }

  /// One round: a piece of each waiting prompt, one token of each other request; of one with drafts, what has arrived. Callbacks run here; what they throw passes
  /// through, and the next call goes on where this one stopped. Returns whether any request is still running.
  bool advance() {
    require(!inside_, "generator: advance() was called from one of its own callbacks");
    const entered in(inside_);
    deliver();
    compose();
    if (!shares_.empty() || !wavefront_.empty()) {
      detail::round_result<statistic> round;
      if (!shares_.empty()) draw(round = decoder_.run(shares_));
      if (!wavefront_.empty()) run_drafting();
      commit(round);
      commit_drafting();
      deliver();
    }
    return std::any_of(sequences_.begin(), sequences_.end(), [](const auto& s) { return s->running(); });
  }
  /// Advances until no request is running.
  void run() {
    while (advance()) {
    }
  }

  /// Ends a request now; what it has generated stays. No effect on one that has ended.
  void cancel(id which) {
    if (sequence& s = at(which); s.running()) end(s, finish::cancelled);
  }
  bool running(id which) const { return at(which).running(); }
  /// What a request has generated so far.
  const generation& result(id which) const { return at(which).result; }
  /// Takes the result of a request that has ended, and forgets the request.
  generation take(id which) {
    sequence& s = at(which);
    require(!inside_, "generator: take() was called from a callback of advance()");
    require(!s.running(), "generator: request ", which, " is still running; advance() or cancel() it before take()");
    generation result = std::move(s.result);
    reclaim(s);
    std::erase_if(sequences_, [&](const auto& other) { return other.get() == &s; });
    return result;
  }

 private:
  static constexpr std::size_t vocabulary = static_cast<std::size_t>(A::shape.vocab),
                               context = static_cast<std::size_t>(A::shape.context);

  using sequence = detail::running_sequence<B, scalar, A::shape.context>;

  struct entered {
    explicit entered(bool& flag) : inside(flag) { inside = true; }
    ~entered() { inside = false; }
    bool& inside;
  };

  sequence& at(id which) const {
    for (const auto& s : sequences_)
      if (s->number == which) return *s;
    fail("generator: there is no request ", which, " (", last_id_, " were started; take() forgets a request)");
  }
  std::unique_ptr<sequence_cache<B, scalar>> spare_cache() {
    if (spare_.empty()) return std::make_unique<sequence_cache<B, scalar>>(decoder_.net().device());
    auto cache = std::move(spare_.back());
    spare_.pop_back();
    return cache;
  }

  /// Not when a sequence ends: the round that is running may still write its cache.
  void reclaim(sequence& s) {
    if (s.cache == nullptr) return;
    if (s.drafting()) wavefront_.drop(s.number);
    spare_.push_back(std::move(s.cache));
  }
  void make_room(sequence& s, index end, index past) {
    if (end > s.cache->capacity())
      s.cache->grow((std::min)((std::max)(end, 2 * s.cache->capacity()), static_cast<index>(context)), past);
  }

  void compose() {
    shares_.clear(), owners_.clear();
    index room = options_.prompt_rows;
    for (const auto& s : sequences_) {
      if (!s->running()) {
        reclaim(*s);
        continue;
      }
      const bool prompt = s->prefilling();
      if (!prompt && s->drafting()) {
        enter(*s);
        continue;
      }
      const index left = static_cast<index>((prompt ? s->prompt : s->tokens.size()) - s->fed);
      const index count = prompt ? (std::min)(left, room) : left;
      if (count == 0) continue;
      if (prompt) room -= count;
      const index past = static_cast<index>(s->fed), end = past + count;
      make_room(*s, end, past);
      const generation_request& r = s->request;
      shares_.push_back({.ids = std::span<const token>(s->tokens).subspan(s->fed, static_cast<std::size_t>(count)),
                         .past = past,
                         .key = r.key,
                         .initial = {r.of, r.state_step, r.state_scale},
                         .exit = r.exit,
                         .may_exit = !prompt || r.exit_in_prompt,
                         .lookup = r.lookup,
                         .cache = s->cache.get(),
                         .wants_logits = count == left,
                         .choose = &r.choose,
                         .history = s->tokens,
                         .most_history = s->most_tokens(),
                         .uniform = uniform_at(*s, s->tokens.size()),
                         .observer = s->observer ? &s->observer : nullptr});
      owners_.push_back(s.get());
    }
  }

  /// The number that draws the token at a position.
  static double uniform_at(const sequence& s, std::size_t position) {
    return sampling_uniform(s.request.of, s.request.key, position);
  }
  /// All draws before any is kept: if one throws, the round has not happened.
  void draw(const detail::round_result<statistic>& round) {
    std::size_t rows = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (!shares_[i].wants_logits) continue;
      sequence& s = *owners_[i];
      const std::size_t row = rows++;
      if (!s.running()) continue;  // cancelled by an observer of its states
      take_drawn(s, {round.chosen[row], round.log_probabilities[row]}, {round.logits[static_cast<index>(row)], vocabulary});
    }
  }
  void take_drawn(sequence& s, sampled_token drawn, std::span<const statistic> logits) {
    s.drawn = drawn.id >= 0 ? drawn : drawn_on_host(s, logits);
    if (s.request.bytes && !s.stops_at(s.drawn.id)) s.drawn_bytes = s.request.bytes(s.drawn.id);
  }
  /// Throws what is wrong with logits that have no softmax, which the device does not tell.
  GYRE_COLD sampled_token drawn_on_host(const sequence& s, std::span<const statistic> logits) {
    std::vector<double> probabilities(vocabulary);
    std::vector<token> order(vocabulary);
    return sample(logits, std::span<const token>(s.tokens), s.request.choose, uniform_at(s, s.tokens.size()),
                  {probabilities, order});
  }
  void commit(const detail::round_result<statistic>& round) {
    std::size_t rows = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      sequence& s = *owners_[i];
      rows += shares_[i].ids.size();
      s.fed += shares_[i].ids.size();
      if (shares_[i].wants_logits && s.running()) keep(s, round.steps[rows - 1]);
    }
  }
  /// The token that was drawn becomes part of the output.
  void keep(sequence& s, int steps) {
    if (s.stops_at(s.drawn.id)) return end(s, finish::stop_token);
    s.tokens.push_back(s.drawn.id);
    s.result.tokens.push_back(s.drawn.id);
    s.result.steps.push_back(steps);
    s.result.log_probabilities.push_back(s.drawn.log_probability);
    if (s.request.bytes) s.result.text += s.text.push(s.drawn_bytes);
    if (s.text.stopped())
      end(s, finish::stop_string);
    else if (s.request.max_new > 0 && static_cast<index>(s.result.tokens.size()) == s.request.max_new)
      end(s, finish::length);
    else if (s.tokens.size() == context)
      end(s, finish::context);
  }

  /// The next token of a sequence with drafts joins the others on their way, if it is known.
  void enter(sequence& s) {
    if (s.on_their_way > s.drafts.size()) return;
    const std::size_t place = s.tokens.size() - 1 + s.on_their_way;
    const index position = static_cast<index>(place);
    make_room(s, position + 1, position);
    const generation_request& r = s.request;
    wavefront_.enter({.id = place < s.tokens.size() ? s.tokens[place] : s.drafts[place - s.tokens.size()],
                      .position = position,
                      .key = r.key,
                      .initial = {r.of, r.state_step, r.state_scale},
                      .cache = s.cache.get(),
                      .most_steps = r.exit.most_steps(),
                      .draft_steps = r.draft_steps,
                      .owner = s.number});
    ++s.on_their_way;
    s.result.drafted += place >= s.tokens.size();
  }
  /// Draws answers and drafts. Where anything throws, every sequence begins again at its last certain token.
  void run_drafting() try {
    const auto choose = [this](std::uint64_t owner, index position, bool complete, detail::sampling_batch& batch) {
      sequence& s = at(owner);
      const std::span<const token> history = s.history_to(position);
      batch.add(s.request.choose, history, s.most_tokens(), uniform_at(s, history.size()), !complete);
    };
    for (const auto& answer : wavefront_.run(choose)) {
      sequence& s = at(answer.owner);
      // Cancelled by a callback of this round, or behind a token that this round has shown to be wrong.
      if (!s.running() || !s.is_on_its_way(answer.position)) continue;
      if (answer.complete) {
        take_drawn(s, answer.drawn, answer.logits);
        s.has_answer = true;
        if (s.drafts.empty() || s.drafts.front() != s.drawn.id) s.drafts.clear(), s.on_their_way = 1;
      } else if (answer.drawn.id >= 0) {  // else none: plain decoding might never have come to such logits
        if (s.revise(answer.position, answer.drawn.id)) wavefront_.drop(s.number, answer.position + 1);
      }
    }
  } catch (...) {
    wavefront_.clear();
    for (const auto& s : sequences_) s->on_their_way = 0, s->drafts.clear(), s->has_answer = false;
    throw;
  }
  void commit_drafting() {
    for (const auto& each : sequences_) {
      sequence& s = *each;
      if (!std::exchange(s.has_answer, false)) continue;
      if (!s.running()) continue;
      ++s.fed;
      keep(s, s.request.exit.most_steps());
      if (s.running() && !s.confirm()) wavefront_.drop(s.number);
    }
  }
  void end(sequence& s, finish reason) {
    s.result.reason = reason;
    std::string_view held = s.text.finish();
    held.remove_suffix(utf8_incomplete_tail(held));
    s.result.text += held;
  }
  /// Callbacks see what they have not seen; they may start and cancel requests.
  void deliver() {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      sequence& s = *sequences_[i];
      while (s.delivered < s.result.tokens.size()) {
        const std::size_t n = s.delivered++;
        const generated seen{s.result.tokens[n], s.result.steps[n], s.result.log_probabilities[n],
                             static_cast<index>(s.prompt + n)};
        if (s.request.on_token && !s.request.on_token(seen) && s.running()) end(s, finish::cancelled);
      }
      if (s.shown < s.result.text.size()) {
        const std::size_t from = std::exchange(s.shown, s.result.text.size());
        if (s.request.on_text) s.request.on_text(std::string_view(s.result.text).substr(from));
      }
    }
  }

  detail::decoder<A, B, P> decoder_;
  detail::wavefront<A, B, P> wavefront_;
  generator_options options_;
  std::vector<std::unique_ptr<sequence>> sequences_;
  std::vector<std::unique_ptr<sequence_cache<B, scalar>>> spare_;
  std::vector<detail::round_share<B, scalar>> shares_;
  std::vector<sequence*> owners_;
  id last_id_ = 0;
  bool inside_ = false;
};

GYRE_END
