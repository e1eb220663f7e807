// The recurrence: truncated backpropagation, memory that is flat in r, and a carry that its steps share.
#include <catch2/catch.hpp>
#include <complex>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/compose/chain.hpp>
#include <gyre/compose/recurrent.hpp>
#include <gyre/compose/residual.hpp>
#include <gyre/layers/gated_mlp.hpp>
#include <gyre/layers/linear.hpp>
#include <gyre/layers/sequence_attention.hpp>

#include "support/depth_memory.hpp"

namespace {

constexpr gyre::dims narrow{.vocab = 11, .width = 8, .heads = 2, .mlp = 10, .context = 8};
struct Block : gyre::sandwich_block<gyre::sequence_attention<narrow>, gyre::gated_mlp<narrow>> {};
using Loop = gyre::recurrent<gyre::stack<2, Block>>;
using Remembering = gyre::recurrent<gyre::chain<gyre_test::depth_memory<8>, Block>, gyre::inject::add>;

/// Runs a loop in scalar T on given weights, state and input.
template <class L, class P>
struct loop_run {
  using T = gyre::activation_t<P>;
  static constexpr int width = L::width;
  std::vector<T> weights, state, input, gradient, input_gradient, result;
  std::size_t tape_peak = 0;

  loop_run(const std::vector<double>& w, const std::vector<double>& s, const std::vector<double>& e)
      : weights(w.begin(), w.end()), state(s.begin(), s.end()), input(e.begin(), e.end()) {}

  void run(gyre::depth_draw draw, const std::vector<double>* dy) {
    gyre::reference device;
    std::vector<std::byte> tape_memory(1 << 22), scratch_memory(1 << 20);
    gyre::arena tape(tape_memory.data(), tape_memory.size()), scratch(scratch_memory.data(), scratch_memory.size());
    gyre::record_stack records;
    const auto tokens = static_cast<gyre::index>(state.size()) / width;
    const auto layout = gyre::batch_layout::uniform(1, tokens);
    std::vector<T> rotary;
    const auto spec = gyre::sequence_attention<narrow>::rotary;
    for (int p = 0; p < spec.length; ++p)
      for (int j = 0; j < spec.width / 2; ++j) rotary.push_back(T(std::cos(p + j))), rotary.push_back(T(std::sin(p + j)));
    gyre::rotary_tables<T> tables{{{spec, rotary.data()}}};
    gyre::context<gyre::reference, P> c{device, tape, scratch, records, layout, tables};
    c.keep = dy != nullptr;
    typename L::template tape<P> t{};
    const gyre::weights<gyre::reference, P> w{weights.data(), nullptr};
    const auto out = L::forward(c, w, gyre::rows<const T, width>{input.data(), tokens},
                                gyre::rows<const T, width>{state.data(), tokens}, draw, t);
    result.assign(out.data, out.data + out.size());
    tape_peak = tape.peak();
    if (dy == nullptr) return;
    gradient.assign(weights.size(), T(0)), input_gradient.assign(input.size(), T(0));
    const std::vector<T> d(dy->begin(), dy->end());
    L::backward(c, w, gradient.data(), t, gyre::rows<const T, width>{d.data(), tokens},
                gyre::rows<T, width>{input_gradient.data(), tokens});
  }
};

std::vector<double> noise(std::size_t count, std::uint32_t row, double scale) {
  const gyre::random_stream stream(gyre::seed{4}, gyre::purpose::noise);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = scale * stream.normal({.row = row, .feature = static_cast<std::uint32_t>(i)});
  return values;
}

template <class L>
struct fixture {
  static constexpr std::size_t tokens = 5, size = tokens * static_cast<std::size_t>(L::width);
  std::vector<double> w = noise(static_cast<std::size_t>(L::parameter_count), 1, 0.4), s = noise(size, 2, 1),
                      e = noise(size, 3, 1), dy = noise(size, 4, 1);
};

}  // namespace

TEST_CASE("the gradient truncated at r = 8, k = 3 is that of three steps after five free ones, bit for bit") {
  const fixture<Loop> f;
  loop_run<Loop, gyre::fp64> truncated(f.w, f.s, f.e), free(f.w, f.s, f.e);
  truncated.run({5, 3}, &f.dy);
  free.run({5, 0}, nullptr);
  loop_run<Loop, gyre::fp64> rest(f.w, free.result, f.e);
  rest.run({0, 3}, &f.dy);
  CHECK(truncated.result == rest.result);
  CHECK(truncated.gradient == rest.gradient);
  CHECK(truncated.input_gradient == rest.input_gradient);
  loop_run<Loop, gyre::fp64> full(f.w, f.s, f.e);
  full.run({0, 8}, &f.dy);
  CHECK(full.result == truncated.result);
  CHECK(full.gradient != truncated.gradient);
}

TEST_CASE("tape memory does not grow with steps without gradient") {
  const fixture<Loop> f;
  loop_run<Loop, gyre::fp64> short_run(f.w, f.s, f.e), long_run(f.w, f.s, f.e);
  short_run.run({0, 8}, &f.dy);
  long_run.run({56, 8}, &f.dy);
  CHECK(static_cast<double>(long_run.tape_peak) <= 1.02 * static_cast<double>(short_run.tape_peak));
}

TEST_CASE("a carry across steps has exact gradients, and slots of free steps are constants") {
  const fixture<Remembering> f;
  const auto derivative = [&](gyre::depth_draw draw, const loop_run<Remembering, gyre::fp64>& run) {
    // Complex step over all weights at once, along a random direction. Only steps with gradient may see the perturbation, so the
    // free steps are run apart with the unperturbed weights where there are any.
    const auto direction = noise(f.w.size(), 9, 1);
    double dot = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) dot += run.gradient[i] * direction[i];
    loop_run<Remembering, gyre::complex_step> stepped(f.w, f.s, f.e);
    for (std::size_t i = 0; i < direction.size(); ++i) stepped.weights[i] += std::complex<double>(0, 1e-50 * direction[i]);
    stepped.run(draw, nullptr);
    std::complex<double> value = 0;
    for (std::size_t i = 0; i < f.dy.size(); ++i) value += stepped.result[i] * f.dy[i];
    return std::pair(dot, value.imag() / 1e-50);
  };
  loop_run<Remembering, gyre::fp64> run(f.w, f.s, f.e);
  run.run({0, 6}, &f.dy);
  const auto [dot, exact] = derivative({0, 6}, run);
  CHECK(std::abs(dot - exact) <= 1e-12 * std::abs(exact));

  // Free steps write slots that later steps read: dropping them must change the result, and backward must run through.
  loop_run<Remembering, gyre::fp64> truncated(f.w, f.s, f.e);
  truncated.run({3, 3}, &f.dy);
  CHECK(truncated.result == run.result);
  CHECK(truncated.gradient != run.gradient);
}

TEST_CASE("no steps at all is refused with the number") {
  const fixture<Loop> f;
  loop_run<Loop, gyre::fp64> run(f.w, f.s, f.e);
  CHECK_THROWS_WITH(run.run({0, 0}, nullptr), Catch::Contains("recurrent: 0 steps"));
}
