// One call on two backends: twice on each, from the same inputs, and once in the reference's bounded numbers.
#pragma once

#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gyre/parity/exact.hpp>
#include <gyre/parity/placement.hpp>
#include <gyre/parity/report.hpp>
#include <gyre/parity/signatures.hpp>

GYRE_BEGIN
namespace parity {
namespace detail {

/// What one run of a call left.
struct run {
  std::vector<tensor> outputs;
  std::vector<finding> findings;
};

template <operation Op, class B, class... A>
run run_once(B& device, const placement& where, const A&... arguments) {
  run r;
  placed<B> memory(device, where);
  try {
    auto call = signature<Op>::map(memory, arguments...);
    std::apply([&](const auto&... a) { signature<Op>::call(device, a...); }, call);
    transfer<B>::finish(device);
  } catch (const std::exception& problem) {
    r.findings.push_back({fault::thrown, side::left, problem.what()});
  }
  for (auto& operand : memory.operands()) {
    const bool input = operand.contents().how == access::input;
    const std::string wrong = operand.read_back();
    if (!wrong.empty()) r.findings.push_back({input ? fault::input : fault::outside, side::left, wrong});
    if (!input && operand.contents().name != "workspace") r.outputs.push_back(operand.contents());
  }
  return r;
}

/// Runs of one side: the first's outputs are what is compared.
template <operation Op, class B, class... A>
std::vector<tensor> run_side(report& r, side whose, B& device, placement where, const A&... arguments) {
  where.again = false;
  run first = run_once<Op>(device, where, arguments...);
  where.again = true;
  run second = run_once<Op>(device, where, arguments...);
  for (finding& f : first.findings.empty() ? second.findings : first.findings) {
    f.whose = whose;
    r.findings.push_back(std::move(f));
  }
  std::string difference = first_difference(first.outputs, second.outputs);
  if (!difference.empty()) {
    // Other bits with other garbage: is it the garbage?
    where.again = false;
    fault what = fault::old_content;
    for (int n = 0; n < 3 && what == fault::old_content; ++n)
      if (const std::string changed = first_difference(first.outputs, run_once<Op>(device, where, arguments...).outputs);
          !changed.empty())
        what = fault::not_repeatable, difference = changed;
    r.findings.push_back({what, whose, difference});
    (whose == side::left ? r.repeatable_left : r.repeatable_right) = false;
  }
  return std::move(first.outputs);
}

template <operation Op, class... A>
std::vector<expectation> expect(const A&... arguments) {
  in_bounded_numbers memory;
  auto call = signature<Op>::map(memory, arguments...);
  reference device;
  std::apply([&](const auto&... a) { signature<Op>::call(device, a...); }, call);
  return memory.outputs();
}

}  // namespace detail

/// Runs an operation of the contract with these arguments, in host memory, on both backends. What the arguments point to is not
/// changed. `where`: how operands lie in the backends' memory.
template <operation Op, class L, class R, class... A>
report compare_call(L& left, R& right, const placement& where, const A&... arguments) {
  report r;
  r.subject = operation_names[static_cast<std::size_t>(Op)];
  const std::vector<tensor> of_left = detail::run_side<Op>(r, side::left, left, where, arguments...);
  const std::vector<tensor> of_right = detail::run_side<Op>(r, side::right, right, where, arguments...);
  for (const finding& f : r.findings)
    if (f.what == fault::thrown) return r;
  detail::compare_values(r, of_left, of_right, detail::expect<Op>(arguments...));
  return r;
}

}  // namespace parity
GYRE_END
