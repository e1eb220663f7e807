// Choice of tokens of the `cuda` backend.
#pragma once

#include <span>
#include <vector>

#include <gyre/backend/cuda/kernels/sampling.cuh>
#include <gyre/ops/sampling.hpp>

GYRE_BEGIN

namespace detail {

template <class Backend>
struct cuda_sampling {
  template <class S>
  void sample(matrix_view<const S> logits, std::span<const sampling_row> rows, std::span<const token> histories, token* chosen,
              double* log_probabilities) {
    check_sampling(logits.rows, logits.cols, rows, histories);
    if (rows.empty()) return;
    std::vector<sampling_numbers> numbers;
    bool penalised = false;
    for (const sampling_row& row : rows) {
      const sampling& r = row.rules;
      const bool greedy = is_greedy(r), reads = is_penalised(row);
      penalised |= reads;
      numbers.push_back({greedy ? 1 : 1 / double{r.temperature}, r.top_p, r.min_p, r.repetition_penalty, row.uniform, r.top_k,
                         row.history, reads ? row.history_size : 0, greedy, row.id_only});
    }
    auto& device = static_cast<Backend&>(*this).device();
    const auto* const rules = device.stage(std::span<const sampling_numbers>(numbers));
    const token* const tokens = penalised ? device.stage(histories) : nullptr;
    double* const memory = device.template workspace<double>(logits.rows * sampling_workspace_of_row(logits.cols));
    const bool is_long = logits.cols >= sampling_long_row;
    constexpr unsigned threads = sampling_threads, more = sampling_threads_of_long_rows;
    simt::launch(is_long ? sample_rows<more, S> : sample_rows<threads, S>, blocks_for(logits.rows, 1), is_long ? more : threads,
                 0, device.stream(), logits, rules, tokens, memory, chosen, log_probabilities);
  }
};

}  // namespace detail

GYRE_END
