// Sequence attention with norms of queries and keys: the formula written out, on both backends.
#include <gyre/layers/sequence_attention.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>
#include <gyre/core/random.hpp>

namespace {

constexpr gyre::dims sizes{.vocab = 7, .width = 6, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 5};
template <gyre::attention_options O>
using attention = gyre::sequence_attention<sizes, O>;
constexpr gyre::attention_options normed{.query_key_bias = false, .query_key_norm = true},
    everything{.pairs = gyre::pairing::half_split, .query_key_norm = true},
    without_gain{.query_key_norm = true, .norm_gain = gyre::gain::none};
constexpr int tokens = 5, d = 4;

std::vector<double> noise(gyre::index count, std::uint64_t number) {
  std::vector<double> values(static_cast<std::size_t>(count));
  gyre::random_stream(gyre::seed{7}, gyre::purpose::noise, number).fill_normal(std::span<double>(values), {}, 1.0);
  return values;
}

template <class B, gyre::attention_options O>
std::vector<double> run(B device, const std::vector<double>& weights, const std::vector<double>& x) {
  using L = attention<O>;
  using P = gyre::fp64;
  std::vector<std::byte> tape_memory(1 << 16), scratch_memory(1 << 16);
  gyre::arena tape(tape_memory.data(), tape_memory.size()), scratch(scratch_memory.data(), scratch_memory.size());
  gyre::record_stack records;
  const auto layout = gyre::batch_layout::uniform(1, tokens);
  std::vector<double> angles;
  for (int p = 0; p < sizes.context; ++p)
    for (int j = 0; j < d / 2; ++j) {
      const double angle = p * std::pow(sizes.rope_base, -2.0 * j / d);
      angles.push_back(std::cos(angle)), angles.push_back(std::sin(angle));
    }
  const gyre::rotary_tables<double> tables{{{L::rotary, angles.data()}}};
  gyre::context<B, P> c{device, tape, scratch, records, layout, tables};
  std::vector<double> y(x.size());
  typename L::template tape<P> t{};
  L::forward(c, gyre::weights<B, P>{weights.data(), nullptr}, gyre::rows<const double, L::width>{x.data(), tokens},
             gyre::rows<double, L::width>{y.data(), tokens}, t);
  return y;
}

/// recurrent_depth, section 1, and attention_mixtures, section 2, in plain numbers.
template <gyre::attention_options O>
std::vector<double> written_out(const std::vector<double>& weights, const std::vector<double>& x) {
  using L = attention<O>;
  const double *bias = weights.data(), *q_gain = bias + L::q_norm_at, *k_gain = bias + L::k_norm_at, *w = bias + L::qkv_at,
               *w_o = bias + L::proj_at;
  const auto project = [&](int token, int first) {
    std::vector<double> y(d);
    for (int i = 0; i < d; ++i)
      for (int j = 0; j < L::width; ++j) y[i] += w[(first + i) * L::width + j] * x[token * L::width + j];
    return y;
  };
  const auto ready = [&](int token, int first, const double* gain) {
    std::vector<double> v = project(token, first), out(d);
    double square = 0;
    for (const double a : v) square += a * a / d;
    for (int i = 0; i < d; ++i) {
      v[i] *= (O.norm_gain == gyre::gain::learned ? gain[i] : 1) / std::sqrt(square + sizes.norm_eps);
      if (O.query_key_bias) v[i] += bias[first + i];
    }
    for (int j = 0; j < d / 2; ++j) {
      const bool adjacent = O.pairs == gyre::pairing::adjacent;
      const int a = adjacent ? 2 * j : j, b = adjacent ? 2 * j + 1 : j + d / 2;
      const double angle = token * std::pow(sizes.rope_base, -2.0 * j / d);
      out[a] = v[a] * std::cos(angle) - v[b] * std::sin(angle), out[b] = v[a] * std::sin(angle) + v[b] * std::cos(angle);
    }
    return out;
  };
  std::vector<double> y(x.size());
  for (int token = 0; token < tokens; ++token)
    for (int head = 0; head < sizes.heads; ++head) {
      const auto q = ready(token, head * d, q_gain);
      std::vector<double> p, read(d);
      double total = 0;
      for (int other = 0; other <= token; ++other) {
        const auto k = ready(other, L::q_width, k_gain);
        double score = 0;
        for (int i = 0; i < d; ++i) score += q[i] * k[i];
        p.push_back(std::exp(score / std::sqrt(double{d}))), total += p.back();
      }
      for (int other = 0; other <= token; ++other)
        for (int i = 0; i < d; ++i) read[i] += p[other] / total * project(other, L::qk_width)[i];
      for (int i = 0; i < L::width; ++i)
        for (int j = 0; j < d; ++j) y[token * L::width + i] += w_o[i * L::q_width + head * d + j] * read[j];
    }
  return y;
}

template <gyre::attention_options O>
void check() {
  const auto weights = noise(attention<O>::parameter_count, 1), x = noise(tokens * sizes.width, 2);
  const auto want = written_out<O>(weights, x), exact = run<gyre::reference, O>({}, weights, x),
             on_cpu = run<gyre::cpu, O>(gyre::cpu(1), weights, x);
  double largest = 0;
  for (const double v : want) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < want.size(); ++i) {
    CHECK(std::abs(exact[i] - want[i]) <= 1e-12 * largest);
    CHECK(std::abs(on_cpu[i] - want[i]) <= 1e-12 * largest);
  }
}

}  // namespace

TEST_CASE("sequence attention with norms of queries and keys is the formula of the specification") {
  check<normed>();
  check<everything>();
  check<without_gain>();
}
