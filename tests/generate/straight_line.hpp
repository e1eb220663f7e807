// A Huginn-like model written out in plain loops, one token after the other, as recurrent_depth, sections 1 and 5, define it.
// Shares no code with the library but the table of tensor names and the random numbers of initial states.
#pragma once

#include <gyre/core/dims.hpp>
#include <gyre/core/random.hpp>
#include <gyre/model/network.hpp>

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gyre_test {

using numbers = std::vector<double>;

/// The decisions that a test varies.
struct straight_rules {
  bool half_split = false;  // rotary pairs (j, j + d/2)
  bool skip = false;        // lookup `skip`, else `latest`
  double below = 0;         // exit when ||s_t - s_{t-1}|| < below ||s_t||; 0: never
  int most = 1;             // r
  std::size_t prompt = 0;   // tokens that run all steps
  std::uint64_t seed = 0, key = 0;
};

/// Sandwich layers with biases on q and k, concatenated input, like-init states, tied head.
class straight_line {
 public:
  template <class Net>
  straight_line(const Net& net, gyre::dims d, int prelude, int core, int coda, straight_rules rules)
      : d_(d), rules_(rules), prelude_(prelude), core_(core), coda_(coda) {
    const auto names = Net::table::names();
    for (std::size_t n = 0; n < names.size(); ++n) {
      const auto& entry = Net::table::entries[n];
      const auto values =
          net.values().subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.shape.size()));
      tensors_[names[n]] = numbers(values.begin(), values.end());
    }
  }

  /// Logits after the next token; steps() tells how many it ran.
  numbers next(int token) {
    past_.emplace_back();
    const std::size_t h = width(), position = past_.size() - 1;
    numbers e(h);
    for (std::size_t j = 0; j < h; ++j)
      e[j] = std::sqrt(double(h)) * tensor("wte.weight")[static_cast<std::size_t>(token) * h + j];
    for (int l = 0; l < prelude_; ++l) e = block("prelude." + std::to_string(l), e, -1, l);

    const gyre::random_stream stream(gyre::seed{rules_.seed}, gyre::purpose::initial_state);
    numbers s(h);
    for (std::size_t j = 0; j < h; ++j)
      s[j] = stream.truncated_normal({.step = 0,
                                      .row = static_cast<std::uint32_t>(rules_.key),
                                      .position = static_cast<std::uint32_t>(position),
                                      .feature = static_cast<std::uint32_t>(j)},
                                     std::sqrt(2.0 / 5.0));
    for (int t = 0; t < rules_.most; ++t) {
      numbers both = s;
      both.insert(both.end(), e.begin(), e.end());
      numbers x = times(tensor("adapter.weight"), both);
      for (int l = 0; l < core_; ++l) x = block("core_block." + std::to_string(l), x, t, l);
      double moved = 0, size = 0;
      for (std::size_t j = 0; j < h; ++j) moved += (x[j] - s[j]) * (x[j] - s[j]), size += x[j] * x[j];
      s = x;
      past_[position].steps = t + 1;
      if (position >= rules_.prompt && std::sqrt(moved) < rules_.below * std::sqrt(size)) break;
    }
    s = normed("ln_f", s);
    for (int l = 0; l < coda_; ++l) s = block("coda." + std::to_string(l), s, -2, l);
    return times(tensor("wte.weight"), normed("ln_f", s));
  }
  int steps() const { return past_.back().steps; }

 private:
  struct memory {
    numbers key, value;
  };
  struct token_memory {
    int steps = 0;
    std::map<std::pair<int, int>, memory> slots;  // (step, layer); step -1: prelude, -2: coda
  };

  std::size_t width() const { return static_cast<std::size_t>(d_.width); }
  const numbers& tensor(const std::string& name) const { return tensors_.at("transformer." + name); }

  static numbers times(const numbers& matrix, const numbers& x) {
    numbers y(matrix.size() / x.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += matrix[i * x.size() + j] * x[j];
    return y;
  }
  static numbers plus(numbers x, const numbers& y) {
    for (std::size_t j = 0; j < x.size(); ++j) x[j] += y[j];
    return x;
  }
  numbers normed(const std::string& name, const numbers& x) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    numbers y(x.size());
    for (std::size_t j = 0; j < x.size(); ++j)
      y[j] = x[j] / std::sqrt(squares / double(x.size()) + d_.norm_eps) * tensor(name + ".weight")[j];
    return y;
  }
  void turn(double* head, std::size_t d, std::size_t position) const {
    for (std::size_t j = 0; j < d / 2; ++j) {
      const double angle = double(position) * std::pow(d_.rope_base, -2.0 * double(j) / double(d));
      double& a = head[rules_.half_split ? j : 2 * j];
      double& b = head[rules_.half_split ? j + d / 2 : 2 * j + 1];
      const double x = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle), a = x;
    }
  }

  /// One layer at the newest token; it remembers its key and value under (step, layer).
  numbers block(const std::string& name, const numbers& x, int step, int layer) {
    const numbers read = attention(name + ".attn.", normed(name + ".norm_1", x), step, layer);
    const numbers middle = normed(name + ".norm_2", plus(x, read));
    const numbers fc = times(tensor(name + ".mlp.fc.weight"), normed(name + ".norm_3", middle));
    numbers gated(fc.size() / 2);
    for (std::size_t j = 0; j < gated.size(); ++j) gated[j] = fc[j] / (1 + std::exp(-fc[j])) * fc[j + gated.size()];
    return normed(name + ".norm_4", plus(middle, times(tensor(name + ".mlp.proj.weight"), gated)));
  }
  numbers attention(const std::string& name, const numbers& x, int step, int layer) {
    const std::size_t heads = static_cast<std::size_t>(d_.heads), groups = static_cast<std::size_t>(d_.key_value_heads()),
                      d = static_cast<std::size_t>(d_.width_per_head()), position = past_.size() - 1;
    numbers qkv = times(tensor(name + "Wqkv.weight"), x);
    for (std::size_t j = 0; j < (heads + groups) * d; ++j) qkv[j] += tensor(name + "qk_bias")[j];
    for (std::size_t h = 0; h < heads + groups; ++h) turn(&qkv[h * d], d, position);
    const auto middle = qkv.begin() + static_cast<std::ptrdiff_t>(heads * d),
               last = middle + static_cast<std::ptrdiff_t>(groups * d);
    past_[position].slots[{step, layer}] = {numbers(middle, last), numbers(last, qkv.end())};

    // What every past token offers to this step, by the lookup.
    std::vector<const memory*> seen;
    for (std::size_t j = 0; j <= position; ++j) {
      int from = step;
      if (step >= 0 && j < position && past_[j].steps <= step) {
        if (rules_.skip) continue;
        from = past_[j].steps - 1;
      }
      seen.push_back(&past_[j].slots.at({from, layer}));
    }
    numbers read(heads * d);
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t g = h / (heads / groups);
      numbers p;
      double sum = 0;
      for (const memory* m : seen) {
        double score = 0;
        for (std::size_t c = 0; c < d; ++c) score += qkv[h * d + c] * m->key[g * d + c];
        p.push_back(std::exp(score / std::sqrt(double(d))));
        sum += p.back();
      }
      for (std::size_t j = 0; j < seen.size(); ++j)
        for (std::size_t c = 0; c < d; ++c) read[h * d + c] += p[j] / sum * seen[j]->value[g * d + c];
    }
    return times(tensor(name + "proj.weight"), read);
  }

  gyre::dims d_;
  straight_rules rules_;
  int prelude_, core_, coda_;
  std::map<std::string, numbers> tensors_;
  std::vector<token_memory> past_;
};

}  // namespace gyre_test
