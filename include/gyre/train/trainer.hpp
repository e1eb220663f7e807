// The trainer: batches in, optimiser steps out.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

#include <gyre/policy/depth.hpp>
#include <gyre/train/batch_pass.hpp>
#include <gyre/train/optimizer.hpp>
#include <gyre/train/report.hpp>
#include <gyre/train/routing_loads.hpp>
#include <gyre/train/schedule.hpp>

GYRE_BEGIN

/// Numbers of a training. `total_steps` may stay 0 with a constant rate.
struct trainer_options {
  gyre::seed seed{};                   // of depths and initial states
  std::uint64_t total_steps = 0;       // T, which schedules and run() need
  double clip = 1;                     // most norm of the gradient; infinity: no clip
  double state_scale = 1;              // of random initial states (init_scale)
  load_balance balance{};              // of experts, where the model has any
  bool depth_per_micro_batch = false;  // draws r for each micro-batch; then accumulation differs from the large batch
};

/// What an observer of run() wants next.
enum class after_step { go_on, stop };

/// Trains a network, which must outlive the trainer. Copies of rules and options are kept; the network's weights change.
///
///   gyre::trainer trainer(net, gyre::adamw{.lr = 4e-4}, gyre::lognormal_poisson{.mean = 8, .backprop = 4});
///   for (const gyre::batch& rows : gyre::pack(text, 8, 128)) std::cout << trainer.step(rows) << '\n';
///
/// The loss of a step is the mean over all counted targets of its micro-batches, so accumulation equals the large batch. All
/// memory is taken at the first step of each size; see plan(). Random numbers depend on (seed, step, row) alone.
template <class Network, optimizer Rule, depth_rule Depth, learning_rate_schedule Schedule = constant_rate>
class trainer {
 public:
  using network_type = Network;
  using rule_type = Rule;
  using A = typename Network::architecture_type;
  using B = typename Network::backend_type;
  using P = typename Network::precision_type;
  using state_type = optimizer_state<Rule, Network>;

  trainer(Network& net, Rule rule, Depth depth, trainer_options options = {})
      : trainer(net, std::move(rule), std::move(depth), Schedule{}, options) {}
  trainer(Network& net, Rule rule, Depth depth, Schedule schedule, trainer_options options = {})
      : net_(&net),
        rule_(std::move(rule)),
        depth_(std::move(depth)),
        schedule_(std::move(schedule)),
        options_(options),
        device_(net.device()),
        state_(device_),
        gradient_(device_, static_cast<std::size_t>(A::parameter_count) * sizeof(gradient_t<P>)),
        squares_(device_, sizeof(double)),
        pass_(net),
        loads_(Network::table::entries) {
    state_.open(net);
    rule_.validate();
    depth_.validate();
    schedule_.validate();
    require(options_.balance.rate >= 0 && std::isfinite(options_.balance.rate), "trainer: balance.rate is ",
            options_.balance.rate, "; it must be finite and not negative");
    require(options_.clip > 0, "trainer: clip is ", options_.clip,
            "; the norm of the gradient is cut to it, so it must be positive");
    require(options_.state_scale >= 0 && std::isfinite(options_.state_scale), "trainer: state_scale is ", options_.state_scale,
            "; it must be finite and not negative");
    if constexpr (!std::is_same_v<Schedule, constant_rate>)
      require(options_.total_steps > 0, "trainer: this schedule follows the whole training; give options.total_steps");
  }

  /// One optimiser step over one batch, or over several micro-batches as if they were one batch.
  step_report step(const batch& rows) { return step(std::span<const batch>(&rows, 1)); }
  step_report step(std::span<const batch> micro_batches) {
    discard();
    for (const batch& b : micro_batches) accumulate(b);
    return update();
  }

  /// The two halves of step(), for micro-batches that come one by one: adds a batch to the gradient of the step under way...
  void accumulate(const batch& b) {
    const std::uint64_t number = steps() + 1;
    const index counted = detail::check_batch<A>("trainer", b);
    if (pending_.micro_batches == 0 || options_.depth_per_micro_batch)
      pending_.depth = depth_.draw(options_.seed, number, options_.depth_per_micro_batch ? pending_.micro_batches : 0);
    if (!pass_.planned(b.rows, b.length, pending_.depth, true)) plan(b.rows, b.length, pending_.depth);
    if (pending_.micro_batches == 0) device_.fill(gradient_view(), gradient_t<P>(0)), loads_.clear();
    loads_.begin(b);
    double auxiliary = 0;
    const double sum =
        pass_.run(b, static_cast<std::uint64_t>(pending_.rows), state_key{options_.seed, number, options_.state_scale},
                  pending_.depth, gradient(), &pending_.seen, &loads_, &auxiliary);
    if (!std::isfinite(sum + auxiliary)) {
      const pending at = std::exchange(pending_, {});
      fail("trainer: the loss is ", sum + auxiliary, " at step ", number, ", micro-batch ", at.micro_batches,
           ", r = ", at.depth.total(), ", learning rate ", learning_rate(number), "; the weights are those of step ", steps(),
           ". Go back to a checkpoint, and lower the learning rate or lengthen the warm-up");
    }
    pending_.loss += sum, pending_.auxiliary += auxiliary;
    pending_.rows += b.rows;
    pending_.counted += counted;
    ++pending_.micro_batches;
  }
  /// ... and makes the step. When it throws, no weight has changed and the step is discarded.
  step_report update() {
    const pending at = std::exchange(pending_, {});
    require(at.counted > 0, "trainer: step ", steps() + 1, " has no target that counts");
    const double count = static_cast<double>(at.counted);
    device_.squared_norm(gradient(), A::parameter_count, squares_.template as<double>());
    device_.finish();
    const double norm = std::sqrt(*squares_.template as<double>()) / count;
    if (!std::isfinite(norm))
      fail("trainer: the norm of the gradient is ", norm, " at step ", steps() + 1, ", loss ", at.loss / count,
           ", r = ", at.depth.total(), ", learning rate ", learning_rate(steps() + 1), "; the weights are those of step ",
           steps(), ". Go back to a checkpoint, and lower the learning rate or lengthen the warm-up");
    const double factor = schedule_factor(steps() + 1);
    state_.apply(rule_, *net_, gradient(), factor, 1 / (std::max)(1.0, norm / options_.clip) / count);
    balance();
    net_->refresh();
    rows_ += static_cast<std::uint64_t>(at.rows);
    tokens_ += static_cast<std::uint64_t>(at.counted);
    return {steps(),
            at.loss / count,
            at.depth,
            norm,
            factor * rule_.lr,
            at.rows,
            at.counted,
            at.seen.means(),
            loads_.largest_share(),
            at.auxiliary / count};
  }
  /// Forgets what accumulate() has added since the last step.
  void discard() { pending_ = {}; }

  /// Steps over batches, `micro_batches` of them to a step, until they end, `total_steps` are done or the observer stops.
  /// `observer(const step_report&)` is called after every step; it returns nothing, or after_step. Batches that do not fill a
  /// last step are dropped. Returns the number of steps made.
  template <std::ranges::input_range Batches, std::invocable<const step_report&> Observer>
  std::uint64_t run(Batches&& batches, Observer&& observer, index micro_batches = 1) {
    require(micro_batches > 0, "trainer: ", micro_batches, " micro-batches to a step; at least 1 is needed");
    const std::uint64_t before = steps();
    discard();
    if (finished()) return 0;
    for (const batch& b : batches) {
      accumulate(b);
      if (pending_.micro_batches < static_cast<std::uint32_t>(micro_batches)) continue;
      const step_report report = update();
      if constexpr (std::is_void_v<std::invoke_result_t<Observer&, const step_report&>>)
        observer(report);
      else if (observer(report) == after_step::stop)
        break;
      if (finished()) break;
    }
    discard();
    return steps() - before;
  }

  /// Takes all memory that steps over batches of this size will need: for the rule's most_draw(), and for `at_least`.
  const pass_plan& plan(index rows, index length, depth_draw at_least = {}) {
    return pass_.plan(rows, length, depth_draw::larger(depth_.most_draw(), at_least), true);
  }

  /// Optimiser steps made, rows and counted targets seen, over the whole training.
  std::uint64_t steps() const { return state_.updates(); }
  std::uint64_t rows_seen() const { return rows_; }
  std::uint64_t tokens_seen() const { return tokens_; }
  bool finished() const { return options_.total_steps > 0 && steps() >= options_.total_steps; }
  /// What the next step will draw: for tasks whose data follow the depth.
  depth_draw next_depth() const { return depth_.draw(options_.seed, steps() + 1); }
  /// lr_t of a step.
  double learning_rate(std::uint64_t step) const { return schedule_factor(step) * rule_.lr; }

  /// What each expert of each router got in the step under way, or in the last one.
  const routing_loads<P>& loads() const { return loads_; }
  /// Tells `observer`, which must outlive the trainer or be taken off by null, what layers do in the passes of its steps.
  void observe_passes(pass_observer<P>* observer) { loads_.forward_to(observer); }

  Network& net() { return *net_; }
  const Network& net() const { return *net_; }
  const Rule& rule() const { return rule_; }
  const Depth& depth() const { return depth_; }
  const Schedule& schedule() const { return schedule_; }
  const trainer_options& options() const { return options_; }
  state_type& state() { return state_; }
  const state_type& state() const { return state_; }
  /// The parameters that updates act on, flat: the network's, or in bf16_mixed those in fp32 from which the network's are rounded.
  std::span<typename state_type::scalar> masters() const { return state_.masters(*net_); }
  /// Goes on where a checkpoint was made; the caller has restored masters and moments.
  void resume(std::uint64_t steps, std::uint64_t rows, std::uint64_t tokens) {
    discard();
    state_.set_updates(steps);
    rows_ = rows, tokens_ = tokens;
    state_.round(*net_);
    net_->refresh();
  }

 private:
  struct pending {
    double loss = 0, auxiliary = 0;  // sums
    depth_draw depth;
    index rows = 0, counted = 0;
    std::uint32_t micro_batches = 0;
    detail::monitor_sums seen;
  };

  gradient_t<P>* gradient() const { return gradient_.template as<gradient_t<P>>(); }
  matrix_view<gradient_t<P>> gradient_view() const { return {gradient(), 1, A::parameter_count}; }
  void balance() {
    if (loads_.empty()) return;
    const auto values = state_.masters(*net_);
    for (const auto& router : loads_.routers())
      for (index row = 0; row < router.rows; ++row) {
        const auto experts = static_cast<std::size_t>(router.experts), at = static_cast<std::size_t>(row) * experts;
        options_.balance.update(values.subspan(static_cast<std::size_t>(router.offset) + at, experts),
                                std::span<const std::int64_t>(router.load).subspan(at, experts));
      }
    state_.round(*net_);
  }
  double schedule_factor(std::uint64_t step) const {
    return schedule_(step, (std::max)(options_.total_steps, std::uint64_t{1}));
  }

  Network* net_;
  Rule rule_;
  Depth depth_;
  Schedule schedule_;
  trainer_options options_;
  B device_;
  state_type state_;
  device_buffer<B> gradient_, squares_;  // squares: (1) the gradient's
  detail::batch_pass<Network> pass_;
  routing_loads<P> loads_;
  pending pending_;
  std::uint64_t rows_ = 0, tokens_ = 0;
};

template <class Network, class Rule, class Depth>
trainer(Network&, Rule, Depth) -> trainer<Network, Rule, Depth>;
template <class Network, class Rule, class Depth>
trainer(Network&, Rule, Depth, trainer_options) -> trainer<Network, Rule, Depth>;
template <class Network, class Rule, class Depth, learning_rate_schedule Schedule>
trainer(Network&, Rule, Depth, Schedule) -> trainer<Network, Rule, Depth, Schedule>;
template <class Network, class Rule, class Depth, learning_rate_schedule Schedule>
trainer(Network&, Rule, Depth, Schedule, trainer_options) -> trainer<Network, Rule, Depth, Schedule>;

GYRE_END
