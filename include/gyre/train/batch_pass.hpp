// Passes over batches of rows, in memory that is planned once for each size of batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gyre/model/pass.hpp>
#include <gyre/train/batch.hpp>
#include <gyre/train/late_choices.hpp>
#include <gyre/train/monitors.hpp>

GYRE_BEGIN

namespace detail {

/// Runs batches through a network, with or without gradients. Memory grows to the largest (rows, length, steps) planned so far;
/// a pass within that allocates nothing.
template <class Network>
class batch_pass {
 public:
  using A = typename Network::architecture_type;
  using B = typename Network::backend_type;
  using P = typename Network::precision_type;
  using T = activation_t<P>;

  explicit batch_pass(const Network& net) : net_(&net), memory_(net.device()), late_(net.device()) {}

  /// Makes room for batches of this size with at most `most` steps and gradients through at most `most.gradient_steps`.
  GYRE_COLD const pass_plan& plan(index rows, index length, depth_draw most, bool gradients) {
    // Two steps without gradient take the two buffers that any larger number of them takes turns in.
    most.free_steps = (std::max)(most.free_steps, 2);
    layout_.assign_uniform(rows, length);
    typename late_choices<B, P>::counter choices;
    pass_plan needed = plan_pass<A, B, P>(layout_, most, gradients, &choices);
    late_.prepare(choices);
    dry<B> counter;
    arena scratch = arena::counting();
    const gyre::rows<const T, A::width> states{nullptr, rows * length};
    measure(counter, scratch, layout_, states, states, states, scratch.take<double>(measured_numbers(layout_)));
    largest_.tape_bytes = (std::max)(largest_.tape_bytes, needed.tape_bytes);
    largest_.scratch_bytes = (std::max)({largest_.scratch_bytes, needed.scratch_bytes, scratch.peak()});
    memory_.prepare(largest_);
    planned_.push_back({rows, length, most, gradients});
    return largest_;
  }
  bool planned(index rows, index length, depth_draw draw, bool gradients) const {
    return std::any_of(planned_.begin(), planned_.end(), [&](const size& s) {
      return s.rows == rows && s.length == length && s.gradients >= gradients && s.most.total() >= draw.total() &&
             s.most.gradient_steps >= draw.gradient_steps;
    });
  }

  /// One pass; the size must be planned. Rows are keyed from `first_row`. Adds the gradient of the sum of losses to `gradient`
  /// and the pass to `sums`, where those are given; `observer` hears of what layers do; `auxiliary` gets the sum of the layers' own losses.
  /// Returns the sum of the tokens' losses.
  double run(const batch& b, std::uint64_t first_row, state_key key, depth_draw draw, gradient_t<P>* gradient,
             monitor_sums* sums, pass_observer<P>* observer = nullptr, double* auxiliary = nullptr) {
    layout_.assign_uniform(b.rows, b.length, first_row);
    memory_.prepare(largest_);
    B device = net_->device();
    context<B, P> c{device, memory_.tape(), memory_.scratch(), memory_.records(), layout_, net_->tables()};
    const bool late = observer != nullptr && observer->hears_late();
    if (late) late_.begin(*observer);
    c.observer = late ? &late_ : observer;
    pass_result<A, P> result = walk<A>(c, net_->parameters(), gradient, b.inputs, b.targets, key, draw, statistic_t<P>(1));
    const frame measuring(memory_.scratch());
    const double* numbers = nullptr;
    if (sums != nullptr) {
      double* const measured = memory_.scratch().template take<double>(measured_numbers(layout_));
      measure(device, memory_.scratch(), layout_, result.tape.steps.previous, result.tape.steps.last, result.tape.hidden,
              measured);
      numbers = measured;
    }
    read_sums(device, result);  // waits, once
    if (late) late_.tell();
    if (sums != nullptr) add_measured(layout_, A::width, numbers, *sums);
    if (auxiliary != nullptr) *auxiliary = static_cast<double>(result.auxiliary_loss);
    return static_cast<double>(result.loss_sum);
  }

 private:
  struct size {
    index rows = 0, length = 0;
    depth_draw most;
    bool gradients = false;
  };

  const Network* net_;
  pass_memory<B> memory_;
  late_choices<B, P> late_;
  batch_layout layout_;
  pass_plan largest_;
  std::vector<size> planned_;
};

/// Checks a batch against a network's vocabulary and context; returns how many of its targets count. `call` begins the message.
template <class A>
index check_batch(const char* call, const batch& b) {
  require(b.rows > 0 && b.length > 0, call, ": a batch of ", b.rows, " rows of ", b.length, " tokens; both must be at least 1");
  require(b.length <= A::shape.context, call, ": rows of ", b.length, " tokens exceed the context of ", A::shape.context);
  const auto given = static_cast<index>(b.inputs.size());
  require(given % b.length == 0 && given / b.length == b.rows && b.inputs.size() == b.targets.size(), call, ": ",
          b.inputs.size(), " inputs and ", b.targets.size(), " targets for ", b.rows, " rows of ", b.length, " tokens");
  index counted = 0;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) {
    const token in = b.inputs[i], out = b.targets[i];
    if (in < 0 || in >= A::shape.vocab || out >= A::shape.vocab)
      fail(call, ": row ", static_cast<index>(i) / b.length, ", position ", static_cast<index>(i) % b.length, ": input ", in,
           ", target ", out, "; the vocabulary has ", A::shape.vocab, " tokens (a negative target does not count)");
    counted += out >= 0;
  }
  return counted;
}

}  // namespace detail

GYRE_END
