// Operands of the choice of tokens.
#pragma once

#include <span>
#include <tuple>

#include <gyre/ops/sampling.hpp>
#include <gyre/parity/signature.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct signature<operation::sample> {
  template <class V, class S>
  static auto map(V& v, matrix_view<const S> logits, std::span<const sampling_row> rows, std::span<const token> histories,
                  token* chosen, double* log_probabilities) {
    return std::tuple{v.input("logits", logits), v.host("rows", rows), v.host("histories", histories),
                      v.output("chosen", chosen, logits.rows), v.output("log_probabilities", log_probabilities, logits.rows)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.sample(a...);
  }
};

}  // namespace parity
GYRE_END
