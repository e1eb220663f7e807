// Training and examining a model of the hops task, exactly as docs/mathematics.md describes the task.
#pragma once

#include <algorithm>
#include <vector>

#include "models.hpp"

namespace examples {

inline constexpr int hops_rows = 64;  // of a training batch
inline constexpr std::uint64_t hops_steps = 2000;

/// A model that learns to hop: two thousand steps of AdamW, k = r drawn from 1..6.
class hops_training {
 public:
  using network = gyre::network<hops_model, gyre::cpu, gyre::fp32>;

  hops_training(gyre::cpu device, gyre::seed seed)
      : net_(device, seed),
        trainer_(net_, gyre::adamw{.lr = 1.5e-3, .beta1 = 0.9, .beta2 = 0.95, .decay = 0.01},
                 gyre::uniform_depth{.low = 1, .high = 6},
                 gyre::warmup_constant_cooldown{.warm_up = 100, .cooldown_start = 0.7, .floor = 0.05},
                 gyre::trainer_options{.seed = seed, .total_steps = hops_steps, .clip = 1}),
        task_(seed, gyre::purpose::task),
        held_out_(seed, gyre::purpose::task, 1),
        inputs_(hops_rows * gyre::hops_task::length),
        targets_(inputs_.size()) {}

  gyre::step_report step() {
    gyre::hops_task::fill(task_, trainer_.steps() + 1, 0, trainer_.next_depth().total(), inputs_, targets_);
    return trainer_.step(gyre::batch{inputs_, targets_, hops_rows, gyre::hops_task::length});
  }
  bool finished() const { return trainer_.finished(); }
  const network& net() const { return net_; }
  network& net() { return net_; }

  /// Share of right answers after `steps` steps to questions of `hops` hops on `rows` fresh permutations, 8 answers each.
  double accuracy(int hops, int steps, int rows = 512) const {
    const auto tokens = static_cast<std::size_t>(rows) * gyre::hops_task::length;
    std::vector<gyre::token> ids(tokens), answers(tokens);
    gyre::hops_task::fill(held_out_, static_cast<std::uint64_t>(hops), 0, hops, ids, answers);
    gyre::device_buffer<gyre::cpu> memory_of_logits(net_.device(), tokens * gyre::hops_task::vocabulary * sizeof(float));
    float* const logits = memory_of_logits.as<float>();
    gyre::pass_memory<gyre::cpu> memory(net_.device());
    gyre::run_logits(net_, memory, gyre::batch_layout::uniform(rows, gyre::hops_task::length), ids, {}, steps,
                     gyre::matrix_view<float>(logits, static_cast<gyre::index>(tokens), gyre::hops_task::vocabulary));
    int right = 0, asked = 0;
    for (std::size_t i = 0; i < tokens; ++i) {
      if (answers[i] < 0) continue;
      const auto row = logits + static_cast<std::ptrdiff_t>(i * gyre::hops_task::vocabulary);
      right += std::max_element(row, row + gyre::hops_task::vocabulary) - row == answers[i];
      ++asked;
    }
    return static_cast<double>(right) / asked;
  }

 private:
  network net_;
  gyre::trainer<network, gyre::adamw, gyre::uniform_depth, gyre::warmup_constant_cooldown> trainer_;
  gyre::random_stream task_, held_out_;
  std::vector<gyre::token> inputs_, targets_;
};

}  // namespace examples
