// One pass of a model over a batch: planned by the dry backend, run in memory that is allocated once.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include <gyre/backend/dry.hpp>
#include <gyre/model/network.hpp>

GYRE_BEGIN

/// What a pass will take, exactly.
struct pass_plan {
  std::size_t tape_bytes = 0, scratch_bytes = 0;
  std::array<operation_cost, static_cast<std::size_t>(operation::count)> costs{};
  operation_cost total() const {
    operation_cost sum;
    for (const operation_cost& c : costs) sum += c;
    return sum;
  }
};

/// The arenas of one stream of passes. Grows to the largest plan it has seen; a pass within that allocates nothing.
template <class B>
class pass_memory {
 public:
  explicit pass_memory(B device) : device_(std::move(device)) {}

  /// Empties the arenas and makes them large enough for `plan`.
  void prepare(const pass_plan& plan) {
    grow(tape_memory_, tape_, plan.tape_bytes);
    grow(scratch_memory_, scratch_, plan.scratch_bytes);
    tape_.reset(), scratch_.reset(), records_.release({});
  }
  arena& tape() { return tape_; }
  arena& scratch() { return scratch_; }
  record_stack& records() { return records_; }

 private:
  void grow(std::unique_ptr<device_buffer<B>>& memory, arena& a, std::size_t bytes) {
    if (memory != nullptr && bytes <= memory->size()) return;
    memory.reset();  // before the new one exists: both need not fit
    memory = std::make_unique<device_buffer<B>>(device_, bytes);
    a = arena(memory->data(), memory->size());
  }

  B device_;
  std::unique_ptr<device_buffer<B>> tape_memory_, scratch_memory_;
  arena tape_, scratch_;
  record_stack records_;
};

/// What a pass leaves: losses of every row and the views of its tape. Valid until the memory is prepared again.
template <class A, class P>
struct pass_result {
  std::span<statistic_t<P>> losses;  // (tokens) unscaled cross-entropies
  std::span<statistic_t<P>> sums;    // (2) of the losses, and of what layers add: losses of routers
  statistic_t<P> loss_sum{};         // sums[0], and
  statistic_t<P> auxiliary_loss{};   // sums[1]; 0 after launch_pass, which does not wait for them
  typename A::template tape<P> tape;
};

namespace detail {

/// The one sequence of calls behind plans and passes. With `dw`, backward follows and all gradients of
/// scale * (loss_sum + auxiliary_loss) accumulate there.
template <class A, class B, class P>
pass_result<A, P> walk(context<B, P>& c, weights<B, P> w, gradient_t<P>* dw, std::span<const token> ids,
                       std::span<const token> targets, state_key key, depth_draw draw, statistic_t<P> scale) {
  using T = activation_t<P>;
  c.keep = dw != nullptr;
  pass_result<A, P> result{};
  const index tokens = c.layout.rows();
  using S = statistic_t<P>;
  result.losses = {c.tape.template take<S>(tokens), static_cast<std::size_t>(tokens)};
  result.sums = {c.tape.template take<S>(2), 2};
  c.auxiliary_loss = &result.sums[1];
  c.device.fill(matrix_view<S>(c.auxiliary_loss, 1, 1), S(0));
  const auto hidden = A::forward(c, w, ids, key, draw, result.tape);
  c.auxiliary_loss = nullptr;  // what backward runs once more has been counted
  c.loss_scale = scale;
  frame f(c.scratch);
  const auto d_hidden = c.scratch.template take_rows<T, A::width>(dw != nullptr ? tokens : 0);
  A::loss(c, w, dw, hidden, targets, scale, result.losses.data(), d_hidden);
  c.device.sum(static_cast<const S*>(result.losses.data()), tokens, result.sums.data());
  if (dw != nullptr) A::backward(c, w, dw, ids, result.tape, rows<const T, A::width>(d_hidden));
  return result;
}

/// Waits for what has been called, and reads the sums of a pass.
template <class A, class B, class P>
void read_sums(B& device, pass_result<A, P>& result) {
  device.finish();
  result.loss_sum = result.sums[0], result.auxiliary_loss = result.sums[1];
}

/// Throws unless the tokens of a ragged batch suit the model.
template <class A>
void check_rows(const char* call, const batch_layout& layout, std::span<const token> ids) {
  require(static_cast<index>(ids.size()) == layout.rows(), call, ": ", ids.size(), " tokens for ", layout.rows(), " rows");
  for (const token id : ids)
    require(id >= 0 && id < A::shape.vocab, call, ": token ", id, " is outside the vocabulary of ", A::shape.vocab);
  for (const sequence_span& s : layout.sequences())
    require(s.past + s.count <= A::shape.context, call, ": a sequence of ", s.past + s.count, " tokens exceeds the context of ",
            A::shape.context);
}

}  // namespace detail

/// Plans a pass over `layout` with `draw` steps, with or without gradients: exact arena peaks, FLOPs, bytes, calls. No memory of
/// the model's size is touched. `observer` hears of a pass whose events have sizes but no memory.
template <architecture A, class B, precision P>
GYRE_COLD pass_plan plan_pass(const batch_layout& layout, depth_draw draw, bool gradients,
                              pass_observer<P>* observer = nullptr) {
  dry<B> counter;
  arena tape = arena::counting(), scratch = arena::counting();
  record_stack records;
  rotary_tables<statistic_t<P>> tables;
  for (const rotary_spec& spec : parameter_table<A>::rotary_specs()) tables.all.push_back({spec, nullptr});
  context<dry<B>, P> c{counter, tape, scratch, records, layout, tables};
  c.observer = observer;
  // Addresses that keep the books and are never read.
  auto* numbers = arena::counting().template take<parameter_t<P>>(1);
  auto* gradient = reinterpret_cast<gradient_t<P>*>(numbers);
  const std::span<const token> ids(reinterpret_cast<const token*>(numbers), static_cast<std::size_t>(layout.rows()));
  detail::walk<A>(c, weights<dry<B>, P>{numbers, nullptr}, gradients ? gradient : nullptr, ids, ids, state_key{}, draw,
                  statistic_t<P>(1));
  return {tape.peak(), scratch.peak(), counter.costs};
}

/// Calls a pass over `ids` (one token a row of `layout`) and does not wait for it: losses, their sums and the gradient are there after
/// the device's finish(). `targets` are the tokens to predict, negative for rows that do not count. With `gradient`
/// (parameter_count scalars) the gradient of scale * sum(losses) is added to it.
///
/// Memory grows in the first pass of a size. The next one neither allocates nor waits, so a device can capture it into a graph.
///
/// Throws gyre::error for tokens outside the vocabulary, positions outside the context, and sizes that do not agree.
template <architecture A, class B, precision P>
pass_result<A, P> launch_pass(const network<A, B, P>& net, pass_memory<B>& memory, const batch_layout& layout,
                              std::span<const token> ids, std::span<const token> targets, state_key key, depth_draw draw,
                              std::type_identity_t<statistic_t<P>> scale, std::type_identity_t<gradient_t<P>>* gradient) {
  require(static_cast<index>(ids.size()) == layout.rows() && ids.size() == targets.size(), "run_pass: ", ids.size(),
          " tokens and ", targets.size(), " targets for ", layout.rows(), " rows");
  detail::check_rows<A>("run_pass", layout, ids);
  for (const token id : targets)
    require(id < A::shape.vocab, "run_pass: target ", id, " is outside the vocabulary of ", A::shape.vocab);
  memory.prepare(plan_pass<A, B, P>(layout, draw, gradient != nullptr));
  B device = net.device();
  context<B, P> c{device, memory.tape(), memory.scratch(), memory.records(), layout, net.tables()};
  return detail::walk<A>(c, net.parameters(), gradient, ids, targets, key, draw, scale);
}
/// launch_pass, waited for, with the sum of its losses.
template <architecture A, class B, precision P>
pass_result<A, P> run_pass(const network<A, B, P>& net, pass_memory<B>& memory, const batch_layout& layout,
                           std::span<const token> ids, std::span<const token> targets, state_key key, depth_draw draw,
                           std::type_identity_t<statistic_t<P>> scale, std::type_identity_t<gradient_t<P>>* gradient) {
  pass_result<A, P> result = launch_pass(net, memory, layout, ids, targets, key, draw, scale, gradient);
  B device = net.device();
  detail::read_sums(device, result);
  return result;
}

/// The logits of every row after `steps` steps, (tokens, vocab), into memory of the device that the caller gives. Throws as
/// run_pass does. Everything has been done when it returns.
template <architecture A, class B, precision P>
void run_logits(const network<A, B, P>& net, pass_memory<B>& memory, const batch_layout& layout, std::span<const token> ids,
                state_key key, int steps, matrix_view<statistic_t<P>> out) {
  detail::check_rows<A>("run_logits", layout, ids);
  require(out.rows == layout.rows() && out.cols == A::shape.vocab, "run_logits: room for ", out.rows, " x ", out.cols,
          " logits, not ", layout.rows(), " x ", A::shape.vocab);
  memory.prepare(plan_pass<A, B, P>(layout, {steps, 0}, false));
  B device = net.device();
  context<B, P> c{device, memory.tape(), memory.scratch(), memory.records(), layout, net.tables()};
  c.keep = false;
  typename A::template tape<P> t{};
  A::logits(c, net.parameters(), A::forward(c, net.parameters(), ids, key, {steps, 0}, t), out);
  device.finish();
}

GYRE_END
