// Which experts rows go to, where rounding decides: a comparison of passes replays the reference's choice near ties, and counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/backend/reference.hpp>
#include <gyre/core/error.hpp>
#include <gyre/parity/bounded.hpp>
#include <gyre/parity/placement.hpp>
#include <gyre/parity/tensor.hpp>
#include <gyre/parity/wrapped.hpp>

GYRE_BEGIN
namespace parity {

/// The choices of one call of `route`, and how sure they are.
struct selection {
  index rows = 0, active = 0;
  std::vector<std::int32_t> chosen;  // (rows, active)
  std::vector<long double> gaps;     // (rows): between the last selection score chosen and the first left out; infinite without
  std::vector<long double> bounds;   // (rows): of the error of that difference, on a backend
  bool decided_by_rounding(index row) const {
    const auto at = static_cast<std::size_t>(row);
    return !(gaps[at] > bounds[at]);
  }
};
/// Those of a pass, in the order of its calls.
using selections = std::vector<selection>;

namespace detail {

template <class T, class S>
selection selection_of(matrix_view<const T> scores, const T* bias, double scale, index active, const std::int32_t* chosen) {
  selection s{scores.rows, active, {chosen, chosen + scores.rows * active}, {}, {}};
  std::vector<S> x(static_cast<std::size_t>(scores.cols));
  for (index i = 0; i < scores.rows; ++i) {
    const std::int32_t *first = chosen + i * active, *last = first + active;
    const S *lowest = nullptr, *highest = nullptr;  // of the chosen, and of the others
    for (index e = 0; e < scores.cols; ++e) {
      S& score = x[static_cast<std::size_t>(e)] = S(static_cast<real_t<S>>(scale)) * S(scores[i][e]);
      if (bias != nullptr) score += S(bias[e]);
      const bool kept = std::binary_search(first, last, static_cast<std::int32_t>(e));
      if (kept && (lowest == nullptr || score.value() < lowest->value())) lowest = &score;
      if (!kept && (highest == nullptr || score.value() > highest->value())) highest = &score;
    }
    const bool all = lowest == nullptr || highest == nullptr;
    const S difference = all ? S(0) : *lowest - *highest;
    s.gaps.push_back(all ? std::numeric_limits<long double>::infinity() : difference.value());
    const double likely = static_cast<double>(expectation::deviations) * std::sqrt(difference.variance());
    s.bounds.push_back((std::min)(difference.error(), likely));
  }
  return s;
}

}  // namespace detail

/// The reference in bounded numbers, writing down every choice of experts.
class choosing : public wrapped<choosing, reference> {
 public:
  explicit choosing(reference device = {}) : wrapped(std::move(device)), selections_(std::make_shared<parity::selections>()) {}

  /// Copies of the backend share them.
  parity::selections& choices() const { return *selections_; }

  template <operation Op, class... A>
  void operate(const A&... arguments) {
    if constexpr (Op == operation::route)
      choose(arguments...);
    else
      signature<Op>::call(inner(), arguments...);
  }

 private:
  template <class T, class S>
  void choose(matrix_view<const T> scores, const T* bias, double scale, index active, std::int32_t* chosen, S* logits,
              S* gates) {
    inner().route(scores, bias, scale, active, chosen, logits, gates);
    selections_->push_back(detail::selection_of<T, S>(scores, bias, scale, active, chosen));
  }
  std::shared_ptr<parity::selections> selections_;
};

/// What replaying did to a pass.
struct replay_counts {
  index rows = 0;      // routed, in all calls
  index replayed = 0;  // chosen otherwise by the backend than by the reference, within the bound: got the reference's experts
  index wrong = 0;     // chosen otherwise although the gap says that rounding cannot explain it: left as they are
  long double smallest_gap = std::numeric_limits<long double>::infinity();  // between scores of a row, in the reference
  /// Attention mixtures, section 4: at most one row in a thousand in fp32, two in a hundred in bf16.
  bool few(double share = 1e-3) const { return static_cast<double>(replayed) <= share * static_cast<double>(rows); }
};

/// A backend whose rows take the reference's experts where rounding decides, so that what follows can be compared. Logits and gates are
/// the backend's own, for those experts. Needs memory that the host can read. The pass must be the one that was written down.
template <class B>
class replaying : public wrapped<replaying<B>, B> {
 public:
  replaying(B device, selections of)
      : wrapped<replaying, B>(std::move(device)),
        selections_(std::make_shared<const selections>(std::move(of))),
        state_(std::make_shared<state>()) {}

  /// Copies of the backend share them.
  const replay_counts& counts() const { return state_->counts; }
  /// Begins the pass anew.
  void rewind() const { *state_ = {}; }

  template <operation Op, class... A>
  void operate(const A&... arguments) {
    if constexpr (Op == operation::route)
      choose(arguments...);
    else
      signature<Op>::call(this->inner(), arguments...);
  }

 private:
  struct state {
    std::size_t call = 0;
    replay_counts counts;
  };

  template <class T, class S>
  void choose(matrix_view<const T> scores, const std::type_identity_t<T>* bias, double scale, index active,
              std::int32_t* chosen, S* logits, S* gates) {
    B& device = this->inner();
    device.route(scores, bias, scale, active, chosen, logits, gates);
    transfer<B>::finish(device);
    const std::size_t call = state_->call++;
    require(call < selections_->size(), "replaying: ", call + 1, " calls of route; the reference had ", selections_->size());
    const selection& s = (*selections_)[call];
    require(s.rows == scores.rows && s.active == active, "replaying: call ", call, " of route has ", scores.rows, " rows of ",
            active, " experts; the reference's had ", s.rows, " of ", s.active);
    replay_counts& counts = state_->counts;
    counts.rows += s.rows;
    for (index i = 0; i < s.rows; ++i) {
      const std::int32_t* theirs = s.chosen.data() + i * active;
      counts.smallest_gap = (std::min)(counts.smallest_gap, s.gaps[static_cast<std::size_t>(i)]);
      if (std::equal(theirs, theirs + active, chosen + i * active)) continue;
      if (!s.decided_by_rounding(i)) {
        ++counts.wrong;
        continue;
      }
      ++counts.replayed;
      // The backend itself, with a bias that leaves it no choice.
      const auto bytes = static_cast<std::size_t>(scores.cols) * sizeof(T);
      std::vector<T> only(static_cast<std::size_t>(scores.cols), T(-std::numeric_limits<float>::max()));
      for (index k = 0; k < active; ++k) only[static_cast<std::size_t>(theirs[k])] = T(0);
      std::byte* const memory = device.allocate(bytes);
      transfer<B>::to_device(device, memory, reinterpret_cast<const std::byte*>(only.data()), bytes);
      device.route(scores.slice(i, 1), reinterpret_cast<const T*>(memory), scale, active, chosen + i * active,
                   logits + i * active, gates + i * active);
      transfer<B>::finish(device);
      device.deallocate(memory, bytes);
    }
  }

  std::shared_ptr<const selections> selections_;
  std::shared_ptr<state> state_;
};

}  // namespace parity
GYRE_END
