// Generation as a range: `for (auto [id, steps] : gyre::generate(net, prompt, exits::latent_diff{.cap = 8}))`.
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <utility>

#include <gyre/generate/generator.hpp>

GYRE_BEGIN

/// One request, generated token by token as the range is read. An input range: it is read once. It refers to the network, which
/// must outlive it.
template <architecture A, class B, precision P>
class generation_stream {
 public:
  generation_stream(const network<A, B, P>& net, generation_request request)
      : generator_(net), first_(static_cast<index>(request.prompt.size())), request_(generator_.start(std::move(request))) {}
  generation_stream(const generation_stream&) = delete;
  generation_stream& operator=(const generation_stream&) = delete;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = generated;
    using difference_type = std::ptrdiff_t;

    generated operator*() const {
      const generation& r = stream_->result();
      return {r.tokens[at_], r.steps[at_], r.log_probabilities[at_], stream_->first_ + static_cast<index>(at_)};
    }
    iterator& operator++() {
      ++at_;
      stream_->reach(at_);
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& i, std::default_sentinel_t) { return i.at_ >= i.stream_->result().tokens.size(); }

   private:
    friend generation_stream;
    explicit iterator(generation_stream& s) : stream_(&s) { s.reach(0); }
    generation_stream* stream_;
    std::size_t at_ = 0;
  };

  iterator begin() { return iterator(*this); }
  std::default_sentinel_t end() const { return {}; }
  /// What has been generated so far; its `reason` tells why the range ended.
  const generation& result() const { return generator_.result(request_); }

 private:
  void reach(std::size_t count) {
    while (result().tokens.size() <= count && generator_.running(request_)) generator_.advance();
  }

  generator<A, B, P> generator_;
  index first_;  // position of the first generated token
  typename generator<A, B, P>::id request_;
};

/// Generates from one request with all its options, lazily.
template <architecture A, class B, precision P>
generation_stream<A, B, P> generate(const network<A, B, P>& net, generation_request request) {
  return generation_stream<A, B, P>(net, std::move(request));
}
/// Generates from a prompt: `exit` is an exit rule or a plain number of steps. Ends when the context is full, or when the
/// reader stops reading.
template <architecture A, class B, precision P>
generation_stream<A, B, P> generate(const network<A, B, P>& net, std::span<const token> prompt, exits::any exit,
                                    sampling choose = {}, seed of = {}) {
  generation_request request;
  request.prompt = prompt, request.exit = exit, request.choose = choose, request.of = of;
  return generation_stream<A, B, P>(net, std::move(request));
}
template <architecture A, class B, precision P, class... More>
void generate(network<A, B, P>&&, More&&...) = delete;  // the network would be gone when the range is read

GYRE_END
