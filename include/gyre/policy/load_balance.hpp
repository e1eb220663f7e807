// The rule that balances the loads of experts through the biases of their selection (attention_mixtures, section 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// After each optimiser step b_e += rate * sign(mean load - load_e), sign(0) = 0. The biases b are added to router logits where
/// experts are chosen and nowhere else: no gradient reaches them, gates do not contain them, and they do not decay.
///
/// DeepSeek-V3's rule, which there acts on sigmoids at a rate of 1e-3. The rate 1e-2 on logits is ours: with offsets of standard
/// deviation 1 between 64 experts it balances within a few hundred steps.
struct load_balance {
  double rate = 1e-2;
  bool frozen = false;  // b stays as it is, and stays in use

  /// `loads`: the pairs that each expert received since the last update, over all tokens that count, depths and micro-batches;
  /// `b`: the experts' biases, updated in place. Compares with the mean exactly. Without any load nothing changes.
  template <class T>
  void update(std::span<T> b, std::span<const std::int64_t> loads) const {
    require(b.size() == loads.size(), "load_balance::update: ", b.size(), " biases for the loads of ", loads.size(),
            " experts");
    if (frozen || loads.empty()) return;
    std::int64_t total = 0;
    for (const std::int64_t load : loads) total += load;
    // The mean is whole + rest / experts: above a load that is whole only if something is left over.
    const auto experts = static_cast<std::int64_t>(loads.size());
    const std::int64_t whole = total / experts, rest = total % experts;
    const T step = static_cast<T>(rate);
    for (std::size_t e = 0; e < b.size(); ++e)
      if (loads[e] > whole)
        b[e] -= step;
      else if (loads[e] < whole || rest > 0)
        b[e] += step;
  }
};

GYRE_END
