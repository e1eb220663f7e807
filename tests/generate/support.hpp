// Small models of every injection, and logits without a cache, for the tests of generation.
#pragma once

#include <gyre/backend/reference.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/generate/decoder.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace gyre_test {

inline constexpr gyre::dims plain{.vocab = 23, .width = 16, .heads = 4, .mlp = 20, .context = 24};
inline constexpr gyre::dims grouped{.vocab = 23, .width = 16, .heads = 4, .kv_heads = 2, .mlp = 20, .context = 24};
inline constexpr gyre::attention_options half_split{.pairs = gyre::pairing::half_split};

template <gyre::dims D, gyre::attention_options O = gyre::attention_options{}>
struct Block : gyre::sandwich_block<gyre::sequence_attention<D, O>, gyre::gated_mlp<D>> {};
template <class Block, gyre::dims D, class Injection = gyre::inject::concat, class State = gyre::initial_state::like_init,
          class... Options>
struct Model : gyre::model<D, gyre::prelude<Block>, gyre::recurrent<gyre::stack<2, Block>, Injection, State>, gyre::coda<Block>,
                           Options...> {};

struct Concat : Model<Block<plain>, plain> {};
struct ConcatGrouped : Model<Block<grouped, half_split>, grouped> {};
struct AddGrouped : Model<Block<grouped>, grouped, gyre::inject::add, gyre::initial_state::normal> {};
struct NoInjection : Model<Block<plain>, plain, gyre::inject::none, gyre::initial_state::embedding> {};

template <class A, class P = gyre::fp64, class B = gyre::reference>
using net_of = gyre::network<A, B, P>;

/// Untrained, but with norm weights and biases that matter.
template <class A, class P = gyre::fp64, class B = gyre::reference>
net_of<A, P, B> make_net(std::uint64_t number = 1, B device = B{}) {
  net_of<A, P, B> net(device, gyre::seed{number}, false);
  const gyre::random_stream noise(gyre::seed{number}, gyre::purpose::noise);
  std::uint32_t tensor = 0;
  for (const gyre::tensor_entry& entry : gyre::parameter_table<A>::entries) {
    ++tensor;
    if (gyre::decays(entry.kind)) continue;
    using scalar = gyre::parameter_t<P>;
    for (gyre::index i = 0; i < entry.shape.size(); ++i) {
      scalar& w = net.values()[static_cast<std::size_t>(entry.offset + i)];
      w = scalar(w + gyre::compute_t<scalar>(0.3 * noise.normal({.row = tensor, .feature = static_cast<std::uint32_t>(i)})));
    }
  }
  net.refresh();
  return net;
}

inline std::vector<gyre::token> random_tokens(std::size_t count, int vocabulary, std::uint32_t number) {
  const gyre::random_stream stream(gyre::seed{99}, gyre::purpose::task);
  std::vector<gyre::token> tokens(count);
  for (std::size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<gyre::token>(stream.bits({.row = number, .position = static_cast<std::uint32_t>(i)}) %
                                         static_cast<std::uint64_t>(vocabulary));
  return tokens;
}

template <class T>
struct matrix {
  std::vector<T> values;
  gyre::index cols = 0;
  const T* operator[](gyre::index row) const { return values.data() + row * cols; }
};

/// Logits (tokens, vocabulary) of one sequence in one pass without a cache.
template <class A, class B, class P>
matrix<gyre::statistic_t<P>> full_logits(const gyre::network<A, B, P>& net, std::span<const gyre::token> ids, std::uint64_t key,
                                         gyre::state_key initial, int steps, gyre::pass_observer<P>* observer = nullptr) {
  using T = gyre::statistic_t<P>;
  const gyre::batch_layout layout = gyre::batch_layout::uniform(1, static_cast<gyre::index>(ids.size()), key);
  std::vector<std::byte> memory(std::size_t{1} << 22);
  gyre::arena tape(memory.data(), memory.size() / 2), scratch(memory.data() + memory.size() / 2, memory.size() / 2);
  gyre::record_stack records;
  B device = net.device();
  gyre::context<B, P> c{device, tape, scratch, records, layout, net.tables()};
  c.keep = false;
  c.observer = observer;
  typename A::template tape<P> t{};
  const auto hidden = A::forward(c, net.parameters(), ids, initial, {steps, 0}, t);
  matrix<T> logits{std::vector<T>(ids.size() * static_cast<std::size_t>(A::shape.vocab)), A::shape.vocab};
  A::logits(c, net.parameters(), hidden, {logits.values.data(), hidden.count, A::shape.vocab});
  return logits;
}

template <class T>
double largest(const T* x, gyre::index count) {
  double most = 0;
  for (gyre::index i = 0; i < count; ++i) most = (std::max)(most, std::abs(static_cast<double>(x[i])));
  return most;
}
template <class T, class U>
double difference(const T* x, const U* y, gyre::index count) {
  double most = 0;
  for (gyre::index i = 0; i < count; ++i)
    most = (std::max)(most, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  return most;
}
/// What caches and batches may change: rounding alone.
template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-12;  // of the largest logit

/// One sequence that a test feeds to a decoder piece by piece.
template <class A, class B, class P>
class fed_sequence {
 public:
  using T = gyre::activation_t<P>;
  using share = gyre::detail::round_share<B, T>;

  fed_sequence(gyre::detail::decoder<A, B, P>& decoder, std::vector<gyre::token> tokens, std::uint64_t key,
               gyre::exits::any exit, gyre::cache_lookup lookup = gyre::cache_lookup::latest)
      : ids(std::move(tokens)), cache_(decoder.net().device()) {
    share_.key = key, share_.initial = {gyre::seed{7}, 0, 1}, share_.exit = exit, share_.lookup = lookup;
    cache_.open(decoder.caches(), exit.most_steps(), 4);
  }

  bool done() const { return fed == ids.size(); }
  /// The next `count` tokens.
  share next(std::size_t count, bool may_exit = false) {
    cache_.grow(static_cast<gyre::index>(fed + count), static_cast<gyre::index>(fed));
    share s = share_;
    s.ids = std::span<const gyre::token>(ids).subspan(fed, count);
    s.past = static_cast<gyre::index>(fed), s.cache = &cache_, s.may_exit = may_exit, s.wants_logits = true;
    fed += count;
    return s;
  }
  gyre::state_key initial() const { return share_.initial; }
  std::uint64_t key() const { return share_.key; }

  std::vector<gyre::token> ids;
  std::size_t fed = 0;

 private:
  gyre::sequence_cache<B, T> cache_;
  share share_;
};

}  // namespace gyre_test
