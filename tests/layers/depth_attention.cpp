// Depth attention: its formula written out, and what must not matter to it.
#include <gyre/layers/depth_attention.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <vector>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

namespace {

using gyre::depth_attention, gyre::depth_attention_options, gyre::depth_encoding, gyre::gain;

constexpr gyre::dims sizes{.vocab = 7, .width = 8, .heads = 2, .kv_heads = 1, .head_width = 4, .mlp = 6, .context = 6};

constexpr depth_attention_options split{}, forward{.encoding = depth_encoding::forward, .exclusive = true},
    bare{.encoding = depth_encoding::none, .query_key_norm = false}, without_gain{.base = 100, .norm_gain = gain::none};

using rows_of_numbers = std::vector<std::vector<double>>;

rows_of_numbers noise(int rows, int cols, std::uint32_t number) {
  const gyre::random_stream stream(gyre::seed{7}, gyre::purpose::noise, number);
  rows_of_numbers out(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(cols)));
  for (std::size_t i = 0; i < out.size(); ++i)
    for (std::size_t j = 0; j < out[i].size(); ++j)
      out[i][j] = stream.normal({.row = static_cast<std::uint32_t>(i), .feature = static_cast<std::uint32_t>(j)});
  return out;
}

/// The layer itself, step by step on given inputs: outputs[step] (tokens, width).
template <class B, class P, depth_attention_options O>
std::vector<rows_of_numbers> run_layer(B device, const std::vector<double>& parameters,
                                       const std::vector<rows_of_numbers>& inputs) {
  using L = depth_attention<sizes, O>;
  using T = gyre::activation_t<P>;
  std::vector<std::byte> tape_memory(1 << 20), scratch_memory(1 << 20);
  gyre::arena tape(tape_memory.data(), tape_memory.size()), scratch(scratch_memory.data(), scratch_memory.size());
  gyre::record_stack records;
  const auto tokens = static_cast<gyre::index>(inputs[0].size());
  const auto layout = gyre::batch_layout::uniform(1, tokens);
  const gyre::rotary_tables<T> tables;
  gyre::context<B, P> c{device, tape, scratch, records, layout, tables};
  c.steps = static_cast<int>(inputs.size());
  const std::vector<T> weights(parameters.begin(), parameters.end());
  typename L::template carry<P> carry{};
  L::open_carry(c, tape, tokens, c.steps, carry);
  std::vector<rows_of_numbers> out;
  for (c.step = 0; c.step < c.steps; ++c.step) {
    std::vector<T> x, y(static_cast<std::size_t>(tokens * L::width));
    for (const auto& row : inputs[static_cast<std::size_t>(c.step)]) x.insert(x.end(), row.begin(), row.end());
    typename L::template tape<P> t{};
    L::forward(c, gyre::weights<B, P>{weights.data(), nullptr}, gyre::rows<const T, L::width>{x.data(), tokens},
               gyre::rows<T, L::width>{y.data(), tokens}, t, carry);
    rows_of_numbers result;
    for (gyre::index i = 0; i < tokens; ++i) result.emplace_back(y.begin() + i * L::width, y.begin() + (i + 1) * L::width);
    out.push_back(result);
  }
  return out;
}

/// Section 3 for one token, in plain numbers: what the heads read at the last step, projected.
template <depth_attention_options O>
std::vector<double> written_out(const std::vector<double>& parameters, const std::vector<std::vector<double>>& h, int steps) {
  using L = depth_attention<sizes, O>;
  constexpr int d = L::head_width, heads = sizes.heads;
  const int l = static_cast<int>(h.size()) - 1;
  const double *q_gain = parameters.data(), *k_gain = q_gain + L::k_norm_at, *w = q_gain + L::qkv_at,
               *w_o = q_gain + L::proj_at;
  const auto project = [&](const std::vector<double>& x, int first) {
    std::vector<double> y(std::size_t{d});
    for (int i = 0; i < d; ++i)
      for (int j = 0; j < L::width; ++j)
        y[static_cast<std::size_t>(i)] += w[(first + i) * L::width + j] * x[static_cast<std::size_t>(j)];
    return y;
  };
  const auto ready = [&](std::vector<double> x, const double* weight, int step) {
    double square = 0;
    for (const double v : x) square += v * v / d;
    if (O.query_key_norm)
      for (int i = 0; i < d; ++i)
        x[static_cast<std::size_t>(i)] *= (O.norm_gain == gain::learned ? weight[i] : 1.0) / std::sqrt(square + sizes.norm_eps);
    for (int pair = 0; pair < d / 2 && O.encoding != depth_encoding::none; ++pair) {
      const int half = O.encoding == depth_encoding::split ? d / 4 : d / 2;
      const double theta = std::pow(O.base, -static_cast<double>(pair % half) / half),
                   angle = theta * (pair < half ? step : steps - 1 - step);
      double &a = x[static_cast<std::size_t>(2 * pair)], &b = x[static_cast<std::size_t>(2 * pair + 1)];
      const double first = a, second = b;
      a = first * std::cos(angle) - second * std::sin(angle), b = first * std::sin(angle) + second * std::cos(angle);
    }
    return x;
  };
  std::vector<double> read;
  for (int head = 0; head < heads; ++head) {  // one key and value head serves both
    const auto q = ready(project(h.back(), head * d), q_gain, l);
    std::vector<double> weights, sum(std::size_t{d});
    double total = 0;
    const int end = O.exclusive ? l : l + 1;
    for (int j = 0; j < end; ++j) {
      const auto k = ready(project(h[static_cast<std::size_t>(j)], L::q_width), k_gain, j);
      weights.push_back(std::exp(std::inner_product(q.begin(), q.end(), k.begin(), 0.0) / std::sqrt(double{d})));
      total += weights.back();
    }
    for (int j = 0; j < end; ++j) {
      const auto v = project(h[static_cast<std::size_t>(j)], L::qk_width);
      for (std::size_t i = 0; i < v.size(); ++i) sum[i] += weights[static_cast<std::size_t>(j)] / total * v[i];
    }
    read.insert(read.end(), sum.begin(), sum.end());
  }
  std::vector<double> out(std::size_t{L::width});
  for (int i = 0; i < L::width; ++i)
    for (int j = 0; j < L::q_width; ++j)
      out[static_cast<std::size_t>(i)] += w_o[i * L::q_width + j] * read[static_cast<std::size_t>(j)];
  return out;
}

template <depth_attention_options O>
std::vector<double> parameters_of() {
  return noise(1, static_cast<int>(depth_attention<sizes, O>::parameter_count), 3)[0];
}
std::vector<rows_of_numbers> some_inputs(int steps, int tokens) {
  std::vector<rows_of_numbers> inputs;
  for (int l = 0; l < steps; ++l) inputs.push_back(noise(tokens, sizes.width, static_cast<std::uint32_t>(10 + l)));
  return inputs;
}

template <depth_attention_options O>
void check_against_formula() {
  const auto parameters = parameters_of<O>();
  const auto inputs = some_inputs(5, 3);
  const auto exact = run_layer<gyre::reference, gyre::fp64, O>({}, parameters, inputs);
  const auto on_cpu = run_layer<gyre::cpu, gyre::fp64, O>(gyre::cpu(1), parameters, inputs);
  for (std::size_t l = 0; l < inputs.size(); ++l)
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<std::vector<double>> h;
      for (std::size_t j = 0; j <= l; ++j) h.push_back(inputs[j][i]);
      const auto want = written_out<O>(parameters, h, 5);
      double largest = 0;
      for (const double x : want) largest = std::max(largest, std::abs(x));
      CHECK((largest > 0) == !(O.exclusive && l == 0));
      for (std::size_t c = 0; c < want.size(); ++c) {
        CHECK(std::abs(exact[l][i][c] - want[c]) <= 1e-12 * largest);
        CHECK(std::abs(on_cpu[l][i][c] - want[c]) <= 1e-12 * largest);
      }
    }
}

}  // namespace

TEST_CASE("depth attention is the formula of the specification, token by token") {
  check_against_formula<split>();
  check_against_formula<forward>();
  check_against_formula<bare>();
  check_against_formula<without_gain>();
}

TEST_CASE("permuting tokens permutes the output; later steps change nothing") {
  const auto parameters = parameters_of<split>();
  auto inputs = some_inputs(4, 5);
  const auto before = run_layer<gyre::cpu, gyre::fp32, split>(gyre::cpu(1), parameters, inputs);
  auto permuted = inputs;
  for (auto& rows : permuted) std::rotate(rows.begin(), rows.begin() + 2, rows.end());
  auto after = run_layer<gyre::cpu, gyre::fp32, split>(gyre::cpu(1), parameters, permuted);
  for (auto& rows : after) std::rotate(rows.begin(), rows.begin() + 3, rows.end());
  CHECK(after == before);
  for (double& x : inputs[3][1]) x = -x + 1;
  const auto changed = run_layer<gyre::cpu, gyre::fp32, split>(gyre::cpu(1), parameters, inputs);
  for (std::size_t l = 0; l < 3; ++l) CHECK(changed[l] == before[l]);
  CHECK(changed[3] != before[3]);
}
