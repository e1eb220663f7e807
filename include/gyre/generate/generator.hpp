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
  using id = std::uint64_t;

  explicit generator(const network<A, B, P>& net, generator_options options = {})
      : decoder_(net), options_(options), probabilities_(vocabulary), order_(vocabulary) {
    require(options.prompt_rows >= 1, "generator: prompt_rows is ", options.prompt_rows, "; it must be at least 1");
  }

  /// Tells `observer`, which must outlive the generator or be taken off by null, what layers do in its rounds.
  void observe_passes(pass_observer<P>* observer) { decoder_.observe_passes(observer); }

  /// Adds a request; it joins at the next advance(). `states` is shown the state of each of its tokens after every step.
  /// Throws gyre::error for requests that the model cannot serve.
  id start(generation_request wanted, state_observer<scalar> states = {}) {
    wanted.validate(A::shape.vocab, A::shape.context);
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

  /// One round: a piece of each waiting prompt, one token of each other request. Callbacks run here; what they throw passes
  /// through, and the next call goes on where this one stopped. Returns whether any request is still running.
  bool advance() {
    require(!inside_, "generator: advance() was called from one of its own callbacks");
    const entered in(inside_);
    deliver();
    compose();
    if (!shares_.empty()) {
      const auto round = decoder_.run(shares_);
      draw(round);
      commit(round);
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

  struct sequence {
    sequence(generation_request wanted, state_observer<scalar> watching, id n)
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
    }

    bool running() const { return result.reason == finish::running; }
    bool prefilling() const { return fed < prompt; }
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
    state_observer<scalar> observer;
    id number = 0;
    std::vector<token> tokens;  // prompt and output
    std::size_t prompt = 0;     // tokens in it
    std::size_t fed = 0;        // tokens that the cache holds
    text_stream text;
    generation result;
    std::unique_ptr<sequence_cache<B, scalar>> cache;
    std::size_t delivered = 0;  // tokens of the result that callbacks have seen
    std::size_t shown = 0;      // bytes of its text
    sampled_token drawn;
    std::string drawn_bytes;
  };

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
    if (s.cache != nullptr) spare_.push_back(std::move(s.cache));
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
      const index left = static_cast<index>((prompt ? s->prompt : s->tokens.size()) - s->fed);
      const index count = prompt ? (std::min)(left, room) : left;
      if (count == 0) continue;
      if (prompt) room -= count;
      const index past = static_cast<index>(s->fed), end = past + count;
      if (end > s->cache->capacity())
        s->cache->grow((std::min)((std::max)(end, 2 * s->cache->capacity()), static_cast<index>(context)), past);
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
                         .observer = s->observer ? &s->observer : nullptr});
      owners_.push_back(s.get());
    }
  }

  /// All draws before any is kept: if one throws, the round has not happened.
  void draw(const detail::round_result<scalar>& round) {
    index row = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (!shares_[i].wants_logits) continue;
      sequence& s = *owners_[i];
      const std::span<const scalar> logits(round.logits[row++], vocabulary);
      if (!s.running()) continue;  // cancelled by an observer of its states
      const double uniform = sampling_uniform(s.request.of, s.request.key, s.tokens.size());
      s.drawn = sample(logits, std::span<const token>(s.tokens), s.request.choose, uniform, {probabilities_, order_});
      if (s.request.bytes && !s.stops_at(s.drawn.id)) s.drawn_bytes = s.request.bytes(s.drawn.id);
    }
  }
  void commit(const detail::round_result<scalar>& round) {
    std::size_t rows = 0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      sequence& s = *owners_[i];
      rows += shares_[i].ids.size();
      s.fed += shares_[i].ids.size();
      if (!shares_[i].wants_logits || !s.running()) continue;
      if (s.stops_at(s.drawn.id)) {
        end(s, finish::stop_token);
        continue;
      }
      s.tokens.push_back(s.drawn.id);
      s.result.tokens.push_back(s.drawn.id);
      s.result.steps.push_back(round.steps[rows - 1]);
      s.result.log_probabilities.push_back(s.drawn.log_probability);
      if (s.request.bytes) s.result.text += s.text.push(s.drawn_bytes);
      if (s.text.stopped())
        end(s, finish::stop_string);
      else if (s.request.max_new > 0 && static_cast<index>(s.result.tokens.size()) == s.request.max_new)
        end(s, finish::length);
      else if (s.tokens.size() == context)
        end(s, finish::context);
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
  generator_options options_;
  std::vector<double> probabilities_;
  std::vector<token> order_;
  std::vector<std::unique_ptr<sequence>> sequences_;
  std::vector<std::unique_ptr<sequence_cache<B, scalar>>> spare_;
  std::vector<detail::round_share<B, scalar>> shares_;
  std::vector<sequence*> owners_;
  id last_id_ = 0;
  bool inside_ = false;
};

GYRE_END
