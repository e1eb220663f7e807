// Layers and whole training steps, recorded on a backend: forward, backward and the update of the parameters.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/core/concepts.hpp>
#include <gyre/model/pass.hpp>
#include <gyre/parity/record.hpp>
#include <gyre/train/optimizer.hpp>

GYRE_BEGIN
namespace parity {

/// What training steps start from: everything but the model and the rule.
template <class T>
struct step_input {
  std::vector<T> parameters;  // flat
  batch_layout layout;
  std::vector<token> inputs, targets;  // one for each row
  depth_draw draw;
  state_key key;
  T scale = T(1);  // of the loss, in the gradient
  int steps = 1;
};

namespace detail {
template <class X, class T>
std::vector<X> numbers_as(const std::vector<T>& from) {
  std::vector<X> all;
  all.reserve(from.size());
  for (const T& x : from) all.push_back(X(x));
  return all;
}
}  // namespace detail

/// Random parameters by the model's initialisation and random tokens; one row in five has no target.
template <architecture A, class T>
step_input<T> make_step_input(std::span<const index> lengths, depth_draw draw, seed s, int steps = 1) {
  step_input<T> input;
  network<A, reference, uniform_precision<T>> net({}, s);
  input.parameters.assign(net.values().begin(), net.values().end());
  std::uint64_t key = 3;
  for (const index n : lengths) input.layout.add(n, 0, key++);
  const random_stream stream(s, purpose::task);
  for (index i = 0; i < input.layout.rows(); ++i) {
    const auto at = static_cast<std::uint32_t>(i);
    const auto one = [&](std::uint32_t what) {
      return static_cast<token>(stream.bits({.step = what, .feature = at}) % static_cast<std::uint64_t>(A::shape.vocab));
    };
    input.inputs.push_back(one(1));
    input.targets.push_back(i % 5 == 3 ? -1 : one(2));
  }
  input.draw = draw;
  input.key = {seed{s.value + 1}, 7, 1};
  input.scale = T(1) / static_cast<T>((std::max)(input.layout.rows(), index{1}));
  input.steps = steps;
  return input;
}

/// Runs training steps and records every call, then "gradient" and "parameters" of every step: those that updates act on. P's scalars
/// are T, or bounded<T> on the reference; in bf16_mixed T is float, and `parameters` should be numbers that bf16 has.
template <architecture A, precision P, class B, class T, class Rule>
recording record_steps(B device, const step_input<T>& input, const Rule& rule) {
  using W = parameter_t<P>;
  using G = gradient_t<P>;
  recorder<B> watched(std::move(device));
  network<A, recorder<B>, P> net(watched, seed{0});
  const auto copy = [&] {
    const std::vector<W> values = detail::numbers_as<W>(input.parameters);
    transfer<B>::to_device(watched.inner(), reinterpret_cast<std::byte*>(net.values().data()),
                           reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(W));
  };
  copy();
  net.refresh();
  pass_memory<recorder<B>> memory(watched);
  optimizer_state<Rule, network<A, recorder<B>, P>> state(watched);
  state.open(net);
  device_buffer<recorder<B>> gradient(watched, static_cast<std::size_t>(A::parameter_count) * sizeof(G));
  const matrix_view<G> flat(gradient.template as<G>(), 1, A::parameter_count);
  watched.calls().clear();
  const auto result = [&](const char* name, const G* values) {
    recorded_call call;
    call.label = name;
    detail::record<B, G>(watched.inner(), call, name, {values, 1, A::parameter_count});
    watched.calls().push_back(std::move(call));
  };
  for (int n = 0; n < input.steps; ++n) {
    state_key key = input.key;
    key.step += static_cast<std::uint64_t>(n);
    watched.fill(flat, G(0));
    run_pass(net, memory, input.layout, input.inputs, input.targets, key, input.draw, statistic_t<P>(input.scale), flat.data);
    result("gradient", flat.data);
    state.apply(rule, net, flat.data, 1, 1);
    net.refresh();
    result("parameters", state.masters(net).data());
  }
  return std::move(watched.calls());
}

/// What a layer's passes start from.
template <class T>
struct layer_input {
  batch_layout layout;
  std::vector<T> parameters, x, dy;  // flat; (rows, inputs); (rows, outputs)
};
template <layer L, class T>
layer_input<T> make_layer_input(std::span<const index> lengths, seed s) {
  layer_input<T> input;
  std::uint64_t key = 3;
  for (const index n : lengths) input.layout.add(n, 0, key++);
  const auto rows = static_cast<std::size_t>(input.layout.rows());
  input.parameters.resize(static_cast<std::size_t>(L::parameter_count));
  input.x.resize(rows * static_cast<std::size_t>(L::inputs)), input.dy.resize(rows * static_cast<std::size_t>(L::outputs));
  std::uint64_t number = 0;
  for (std::vector<T>* v : {&input.parameters, &input.x, &input.dy})
    random_stream(s, purpose::task, number++).fill_normal(std::span<T>(*v), counter{}, v == &input.parameters ? 0.3 : 1.0);
  return input;
}

/// Runs a layer forward and backward and records every call, then "y", "dx" and "gradient". `arena_bytes`: of each of the two arenas.
template <layer L, precision P, class B, class T>
recording record_layer(B device, const layer_input<T>& input, std::size_t arena_bytes = std::size_t{1} << 26) {
  using X = activation_t<P>;
  using W = parameter_t<P>;
  using G = gradient_t<P>;
  using S = statistic_t<P>;
  recorder<B> watched(std::move(device));
  const index rows_ = input.layout.rows();
  const std::size_t parameters = input.parameters.size();
  device_buffer<recorder<B>> memory(watched, arena_bytes), scratch_memory(watched, arena_bytes),
      weight_memory(watched, parameters * sizeof(W));
  arena tape(memory.data(), arena_bytes), scratch(scratch_memory.data(), arena_bytes);
  const auto put = [&]<class Y>(Y* to, const std::vector<T>& from) {
    const std::vector<Y> values = detail::numbers_as<Y>(from);
    transfer<B>::to_device(watched.inner(), reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(values.data()),
                           values.size() * sizeof(Y));
  };
  put(weight_memory.template as<W>(), input.parameters);
  // Encodings that the layer reads, computed as a network does.
  rotary_tables<S> tables;
  std::vector<std::unique_ptr<device_buffer<recorder<B>>>> table_memory;
  for (const rotary_spec& spec : parameter_table<L>::rotary_specs()) {
    std::vector<T> values;
    for (int position = 0; position < spec.length; ++position)
      for (int j = 0; j < spec.width / 2; ++j) {
        const double angle = position * std::pow(spec.base, -2.0 * j / spec.width);
        values.push_back(static_cast<T>(std::cos(angle))), values.push_back(static_cast<T>(std::sin(angle)));
      }
    table_memory.push_back(std::make_unique<device_buffer<recorder<B>>>(watched, values.size() * sizeof(S)));
    put(table_memory.back()->template as<S>(), values);
    tables.all.push_back({spec, table_memory.back()->template as<S>()});
  }
  record_stack records;
  context<recorder<B>, P> c{watched, tape, scratch, records, input.layout, tables};
  const auto x = tape.template take_rows<X, L::inputs>(rows_), dx = tape.template take_rows<X, L::inputs>(rows_);
  const auto y = tape.template take_rows<X, L::outputs>(rows_), dy = tape.template take_rows<X, L::outputs>(rows_);
  G* const gradient = tape.template take<G>(L::parameter_count);
  c.auxiliary_loss = tape.template take<S>(1);
  put(x.data, input.x), put(dy.data, input.dy);
  const weights<recorder<B>, P> w{weight_memory.template as<W>(), nullptr};
  tape_t<L, P> t{};
  carry_t<L, P> carry{}, carry_gradient{};
  open_carry<L>(c, tape, rows_, 1, carry);
  open_carry<L>(c, tape, rows_, 1, carry_gradient);
  watched.calls().clear();
  c.step = 0, c.steps = 1, c.loss_scale = S(1);
  watched.fill(matrix_view<G>(gradient, 1, L::parameter_count), G(0));
  watched.fill(dx.view(), X(0));
  watched.fill(matrix_view<S>(c.auxiliary_loss, 1, 1), S(0));
  forward_through<L>(c, w, rows<const X, L::inputs>(x), y, t, carry);
  c.auxiliary_loss = nullptr;
  backward_through<L>(c, w, gradient, t, rows<const X, L::outputs>(dy), dx, carry, carry_gradient);
  recorded_call results;
  results.label = "layer";
  detail::record<B, X>(watched.inner(), results, "y", y.view());
  detail::record<B, X>(watched.inner(), results, "dx", dx.view());
  detail::record<B, G>(watched.inner(), results, "gradient", {gradient, 1, L::parameter_count});
  watched.calls().push_back(std::move(results));
  return std::move(watched.calls());
}

}  // namespace parity
GYRE_END
