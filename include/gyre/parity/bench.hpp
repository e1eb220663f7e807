// Operands of a trial, in host memory: random, and the same for the same trial.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <gyre/core/context.hpp>
#include <gyre/core/random.hpp>
#include <gyre/parity/trial.hpp>

GYRE_BEGIN
namespace parity {

template <class T>
class bench {
 public:
  using wide = compute_t<T>;  // of statistics and gradients of parameters
  explicit bench(const trial& t) : trial_(t) {}

  index operator[](std::string_view name) const { return trial_[name]; }

  /// Normal numbers times `scale`. Where the trial says so, one element is NaN or infinite: of the first operand, and of every other one
  /// or not, for some of them reach all of a result.
  template <class X = T>
  matrix_view<const X> in(index rows, index cols, double scale = 1) {
    const matrix_view<X> x = io<X>(rows, cols, scale);
    const index kind = trial_[special.name];
    if (kind > 0 && x.size() > 0 && (++specials_ == 1 || draw(2) == 0)) {
      constexpr float infinity = std::numeric_limits<float>::infinity(),
                      values[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity};
      x.data[draw(x.size())] = X(values[(kind - 1) % 3]);
    }
    return x;
  }
  const T* in(index count, double scale = 1) { return in(1, count, scale).data; }
  /// What is updated: always finite.
  template <class X = T>
  matrix_view<X> io(index rows, index cols, double scale = 1) {
    const matrix_view<X> x = out<X>(rows, cols);
    const random_stream stream(seed{trial_.seed}, purpose::task, ++streams_);
    std::vector<compute_t<X>> drawn(static_cast<std::size_t>(x.size()));
    stream.fill_normal(std::span(drawn), counter{}, scale);
    std::transform(drawn.begin(), drawn.end(), x.data, [](compute_t<X> value) { return X(value); });
    return x;
  }
  T* io(index count, double scale = 1) { return io(1, count, scale).data; }
  wide* wide_io(index count) { return io<wide>(1, count).data; }
  wide* wide_out(index count) { return out<wide>(1, count).data; }
  /// Positive numbers: squares of normal ones, away from 0.
  T* squares(index count) {
    T* x = io(count);
    for (index i = 0; i < count; ++i) x[i] = x[i] * x[i] + T(0.0625);
    return x;
  }
  template <class X = T>
  matrix_view<X> out(index rows, index cols) {
    return {take<X>(rows * cols), rows, cols};
  }
  T* out(index count) { return take<T>(count); }
  template <class X>
  X* take(index count) {
    auto memory = std::make_shared<std::vector<X>>(static_cast<std::size_t>(count) + 1);
    kept_.push_back(memory);
    return memory->data();
  }

  /// Whole numbers in [0, below).
  template <class I>
  std::span<const I> numbers(index count, index below) {
    I* x = take<I>(count);
    for (index i = 0; i < count; ++i) x[i] = static_cast<I>(draw(below));
    return {x, static_cast<std::size_t>(count)};
  }
  index draw(index below) {
    return static_cast<index>(detail::mixed(trial_.seed, ++draws_ + 1000) %
                              static_cast<std::uint64_t>((std::max)(below, index{1})));
  }

  /// Cosines and sines of `positions` angles for each of `pairs` pairs.
  const wide* turns(index positions, index pairs) {
    wide* table = take<wide>(positions * pairs * 2);
    for (index p = 0; p < positions; ++p)
      for (index j = 0; j < pairs; ++j) {
        const double angle = static_cast<double>(p) * std::pow(50.0, -static_cast<double>(j) / static_cast<double>(pairs));
        table[2 * (p * pairs + j)] = static_cast<wide>(std::cos(angle));
        table[2 * (p * pairs + j) + 1] = static_cast<wide>(std::sin(angle));
      }
    return table;
  }
  /// Sequences of `length`, 1, 0, half and 7 tokens in turn, as many as `sequences` says; after as many tokens as `past` says.
  const batch_layout& layout() {
    auto made = std::make_shared<batch_layout>();
    kept_.push_back(made);
    const index length = trial_["length"],
                lengths[] = {length, (std::min)(length, index{1}), 0, length / 2, (std::min)(length, index{7})};
    for (index n = 0; n < trial_["sequences"]; ++n)
      made->add(lengths[n % 5], trial_["past"] > 0 ? trial_["past"] + n : 0, 100 + static_cast<std::uint64_t>(n));
    return *made;
  }
  /// Cuts `rows` into `count` groups, empty ones among them.
  row_groups groups(index rows, index count, index stride) {
    std::int32_t* offsets = take<std::int32_t>(count + 1);
    for (index g = 1; g < count; ++g) offsets[g] = static_cast<std::int32_t>(draw(rows + 1));
    offsets[count] = static_cast<std::int32_t>(rows);
    std::sort(offsets, offsets + count);
    offsets[0] = 0;
    return {offsets, count, stride};
  }

 private:
  trial trial_;
  std::uint64_t streams_ = 0, draws_ = 0, specials_ = 0;
  std::vector<std::shared_ptr<void>> kept_;
};

namespace detail {

/// The memory of an operand that is input and output.
template <class T>
matrix_view<T> same(matrix_view<const T> x) {
  return {const_cast<T*>(x.data), x.rows, x.cols, x.stride};  // NOLINT: of a bench, whose memory is not const
}

}  // namespace detail

/// setting<Op> makes the calls of an operation: `dimensions` lists what varies, `arguments(bench<T>&)` the arguments, as a tuple.
template <operation Op>
struct setting;

}  // namespace parity
GYRE_END
