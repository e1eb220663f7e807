// Finding sizes that cost what another model costs: bivariate coordinate descent over named integers.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/random.hpp>
#include <gyre/core/random_sequence.hpp>
#include <gyre/model/cost.hpp>
#include <gyre/model/hyper_parameter.hpp>

GYRE_BEGIN

/// What two models are compared by.
struct matched_quantities {
  double parameters = 0;
  double flops = 0;   // a token
  double memory = 0;  // scalars
};
/// ln(quantity / target), each.
inline matched_quantities log_ratios(const matched_quantities& of, const matched_quantities& target) {
  return {std::log(of.parameters / target.parameters), std::log(of.flops / target.flops), std::log(of.memory / target.memory)};
}
/// The root mean square of those (ours).
inline double deviation(const matched_quantities& of, const matched_quantities& target) {
  const matched_quantities r = log_ratios(of, target);
  return std::sqrt((r.parameters * r.parameters + r.flops * r.flops + r.memory * r.memory) / 3);
}

/// Parameters, forward FLOPs a token, and the cache that one stream of inference keeps after a full sequence (ours).
struct inference_quantities {
  matched_quantities operator()(const model_sizes& sizes) const {
    const model_cost cost = cost_of(sizes);
    const cost_share total = cost.total();
    return {static_cast<double>(total.parameters), static_cast<double>(total.forward),
            static_cast<double>(cost.inference_cache())};
  }
};

/// The default objective: how far sizes are from `target` in what `measure` sees. Another memory, or FLOPs of training, is
/// another measure: a callable from sizes to matched_quantities.
template <class Measure = inference_quantities>
class distance_to {
 public:
  /// Throws gyre::error unless all targets are positive and finite.
  explicit distance_to(const matched_quantities& target, Measure measure = {}) : target_(target), measure_(std::move(measure)) {
    for (const double value : {target.parameters, target.flops, target.memory})
      require(value > 0 && std::isfinite(value), "distance_to: a target of ", value,
              "; parameters, FLOPs and memory must be positive");
  }
  template <class Sizes>
  double operator()(const Sizes& sizes) const {
    return deviation(measure_(sizes), target_);
  }

 private:
  matched_quantities target_;
  Measure measure_;
};

/// The default constraint: sizes that make a model.
struct makes_a_model {
  constexpr bool operator()(const model_sizes& sizes) const { return problem(sizes) == nullptr; }
};

/// Where a search stands.
struct matching_progress {
  int start = 0, starts = 1;              // the descent under way, from 0, of how many
  std::size_t unimproved = 0, pairs = 0;  // pairs in a row that brought nothing; a descent ends when it is all of them
  index candidates = 0;                   // looked at so far, in all descents
  index least_left = 0;                   // candidates that this descent will still look at, if nothing improves any more
  index cycle = 0;                        // candidates in one cycle through all pairs
  double best = std::numeric_limits<double>::infinity();  // of all descents
};

struct matching_options {
  int starts = 1;                                           // descents: from the sizes given, then from random ones
  gyre::seed seed{};                                        // of those draws
  double enough = 0;                                        // no further pair is tried once the objective is at most this
  std::function<bool(const matching_progress&)> observe{};  // after each pair, and within large ones; false cancels
};

template <class Sizes>
struct matching {
  Sizes sizes{};
  double objective = std::numeric_limits<double>::infinity();  // infinite: cancelled before anything allowed was found
  int start = 0;                                               // the descent that found it
  std::vector<double> of_starts{};                             // where each descent ended
  index candidates = 0;                                        // looked at in all
  bool cancelled = false;
};

namespace detail {

template <class Sizes, class Objective, class Allowed>
class matcher {
 public:
  matcher(std::span<const hyper_parameter<Sizes>> parameters, Objective& objective, Allowed& allowed,
          const matching_options& options)
      : parameters_(parameters), objective_(objective), allowed_(allowed), options_(options) {
    require(!parameters.empty(), "match_sizes: there are no hyper-parameters to choose");
    require(options.starts >= 1, "match_sizes: starts is ", options.starts, "; at least 1 is needed");
    require(options.enough >= 0, "match_sizes: enough is ", options.enough, "; it must not be negative");
    for (std::size_t i = 0; i < parameters.size(); ++i)
      for (std::size_t j = i + 1; j < parameters.size(); ++j) add_pair(i, j);
    if (pairs_.empty()) add_pair(0, 0);
    seen_.starts = options.starts, seen_.pairs = pairs_.size();
  }

  matching<Sizes> run(const Sizes& from) {
    matching<Sizes> best;
    best.sizes = from;
    for (int start = 0; start < options_.starts && !cancelled_; ++start) {
      seen_.start = start;
      Sizes sizes = start == 0 ? nearest(from) : drawn(from, start);
      const double reached = descend(sizes);
      best.of_starts.push_back(reached);
      if (reached < best.objective) best.sizes = sizes, best.objective = reached, best.start = start;
      if (best.objective <= options_.enough) break;
    }
    best.candidates = seen_.candidates, best.cancelled = cancelled_;
    require(cancelled_ || best.objective < std::numeric_limits<double>::infinity(), "match_sizes: none of ", best.candidates,
            " candidates from ", best.of_starts.size(), " starts is allowed; start from sizes that are, or allow more values");
    return best;
  }

 private:
  struct pair {
    std::size_t first, second;
    index candidates;
  };
  void add_pair(std::size_t first, std::size_t second) {
    const auto count = [&](std::size_t i) { return static_cast<index>(parameters_[i].values().size()); };
    pairs_.push_back({first, second, first == second ? count(first) : count(first) * count(second)});
    seen_.cycle += pairs_.back().candidates;
  }

  /// The listed values nearest to those of `sizes`, of equally near ones the lower.
  Sizes nearest(Sizes sizes) const {
    for (const auto& p : parameters_) {
      const index value = p.get(sizes);
      const auto distance = [&](index a) {
        const auto from = static_cast<std::uint64_t>(a), to = static_cast<std::uint64_t>(value);
        return a < value ? to - from : from - to;
      };
      const auto above = std::lower_bound(p.values().begin(), p.values().end(), value);
      const bool lower = above == p.values().end() || (above != p.values().begin() && distance(above[-1]) <= distance(*above));
      p.set(sizes, lower ? above[-1] : *above);
    }
    return sizes;
  }
  /// Values at random; other draws where they are not allowed, and after some the last of them: a pair may repair it.
  Sizes drawn(Sizes sizes, int start) {
    random_sequence numbers(random_stream(options_.seed, purpose::task), static_cast<std::uint64_t>(start));
    for (int attempt = 0; attempt < 100; ++attempt) {
      for (const auto& p : parameters_) p.set(sizes, p.values()[static_cast<std::size_t>(numbers.below(p.values().size()))]);
      if (allowed_(std::as_const(sizes))) break;
    }
    return sizes;
  }

  double value_of(const Sizes& sizes) {
    ++seen_.candidates;
    if (!allowed_(sizes)) return std::numeric_limits<double>::infinity();
    const double value = objective_(sizes);
    if (std::isnan(value)) {
      std::string where;
      for (const auto& p : parameters_) where += (where.empty() ? "" : ", ") + p.name() + " " + std::to_string(p.get(sizes));
      fail("match_sizes: the objective is not a number at ", where);
    }
    return value;
  }

  double descend(Sizes& sizes) {
    double best = value_of(sizes);
    seen_.least_left = seen_.cycle;
    std::size_t at = 0;
    for (seen_.unimproved = 0; seen_.unimproved < pairs_.size() && best > options_.enough; at = (at + 1) % pairs_.size()) {
      const bool improved = search(pairs_[at], sizes, best);
      seen_.unimproved = improved ? 1 : seen_.unimproved + 1;  // a grid just searched holds nothing better
      seen_.least_left = improved ? seen_.cycle - pairs_[at].candidates : seen_.least_left - pairs_[at].candidates;
      if (!tell(best)) break;
    }
    return best;
  }

  /// The best of one grid goes into `sizes`, if it is better than what is there; of equals the first.
  bool search(const pair& p, Sizes& sizes, double& best) {
    const auto &first = parameters_[p.first], &second = parameters_[p.second];
    bool improved = false;
    Sizes candidate = sizes;
    const auto look = [&] {
      const double value = value_of(candidate);
      if (value < best) sizes = candidate, best = value, improved = true;
      return seen_.candidates % 65536 != 0 || tell(best);
    };
    for (const index a : first.values()) {
      first.set(candidate, a);
      if (p.first == p.second) {
        if (!look()) return improved;
      } else {
        for (const index b : second.values()) {
          second.set(candidate, b);
          if (!look()) return improved;
        }
      }
    }
    return improved;
  }

  bool tell(double best) {
    seen_.best = (std::min)(seen_.best, best);
    if (!cancelled_ && options_.observe) cancelled_ = !options_.observe(seen_);
    return !cancelled_;
  }

  std::span<const hyper_parameter<Sizes>> parameters_;
  Objective& objective_;
  Allowed& allowed_;
  const matching_options& options_;
  std::vector<pair> pairs_;
  matching_progress seen_;
  bool cancelled_ = false;
};

}  // namespace detail

/// Bivariate coordinate descent (attention_mixtures, section 6): two hyper-parameters at a time, their whole grid is searched
/// and the best kept; through all pairs until nothing improves. One at a time stalls, for each moves parameters and FLOPs
/// together.
///
/// `objective(sizes)` is a double to make small, `allowed(sizes)` tells which candidates count. The search begins at the listed
/// values nearest to those of `from`; what is no hyper-parameter stays. The result depends on the arguments alone; of equal
/// candidates the one met first is kept. Throws gyre::error if no candidate is allowed, or if the objective is not a number.
template <class Sizes, class Objective, class Allowed = makes_a_model>
requires std::invocable<Objective&, const Sizes&> && std::predicate<Allowed&, const Sizes&> matching<Sizes> match_sizes(
    const Sizes& from, std::span<const hyper_parameter<Sizes>> parameters, Objective objective, Allowed allowed = {},
    const matching_options& options = {}) {
  return detail::matcher<Sizes, Objective, Allowed>(parameters, objective, allowed, options).run(from);
}
template <class Sizes, class Objective, class Allowed = makes_a_model>
matching<Sizes> match_sizes(const Sizes& from, const std::vector<hyper_parameter<Sizes>>& parameters, Objective objective,
                            Allowed allowed = {}, const matching_options& options = {}) {
  return match_sizes(from, std::span<const hyper_parameter<Sizes>>(parameters), std::move(objective), std::move(allowed),
                     options);
}

GYRE_END
