// A backend that compares every call of a pass with another backend's, from the same operands.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <gyre/parity/compare.hpp>
#include <gyre/parity/wrapped.hpp>

GYRE_BEGIN
namespace parity {

/// Computes on L; before every call the same call runs on copies of its operands on L and R. So rounding does not accumulate from
/// call to call, and each has the tolerance of its operation alone.
template <class L, class R>
class lockstep : public wrapped<lockstep<L, R>, L> {
 public:
  lockstep(L left, R right)
      : wrapped<lockstep, L>(std::move(left)), right_(std::move(right)), reports_(std::make_shared<std::vector<report>>()) {}

  /// One for each call, in order; copies of the backend share them.
  std::vector<report>& reports() const { return *reports_; }
  /// The first call that failed, or null.
  const report* first_failure() const {
    for (const report& r : *reports_)
      if (!r.passed()) return &r;
    return nullptr;
  }

  template <operation Op, class... A>
  void operate(const A&... arguments) {
    reports_->push_back(compare_call<Op>(this->inner(), right_, placement{}, arguments...));
    reports_->back().trial = "call " + std::to_string(reports_->size() - 1);
    signature<Op>::call(this->inner(), arguments...);
  }

 private:
  R right_;
  std::shared_ptr<std::vector<report>> reports_;
};

}  // namespace parity
GYRE_END
