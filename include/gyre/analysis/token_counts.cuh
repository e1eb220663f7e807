// How often tokens occur in a text, by Thrust: on a GPU, or on one of Thrust's host systems. Needs the headers of CCCL, which are part
// of CUDA's toolkit.
#pragma once

#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/extrema.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/sort.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// (vocabulary) how often each token occurs. `tokens` is a vector of Thrust's, which says where the work is done: device_vector<token>
/// on the device, host_vector<token> on the host. It is sorted. Texts of 2^31 tokens or more come in pieces, whose counts add up.
template <class Tokens>
std::vector<std::int64_t> count_tokens(Tokens& tokens, int vocabulary) {
  static_assert(std::is_same_v<typename Tokens::value_type, token>);
  require(vocabulary > 0, "count_tokens: a vocabulary of ", vocabulary, " tokens");
  require(tokens.size() <= static_cast<std::size_t>((std::numeric_limits<token>::max)()), "count_tokens: ", tokens.size(),
          " tokens at once; count pieces of less than 2^31 and add them up");
  if (tokens.empty()) return std::vector<std::int64_t>(static_cast<std::size_t>(vocabulary));
  const auto extremes = thrust::minmax_element(tokens.begin(), tokens.end());
  const token least = *extremes.first, most = *extremes.second;
  require(least >= 0 && most < vocabulary, "count_tokens: tokens from ", least, " to ", most, "; the vocabulary has ",
          vocabulary);
  thrust::sort(tokens.begin(), tokens.end());
  Tokens ends(static_cast<std::size_t>(vocabulary) + 1);  // [t]: tokens below t
  const thrust::counting_iterator<token> first(0);
  thrust::lower_bound(tokens.begin(), tokens.end(), first, first + vocabulary + 1, ends.begin());
  std::vector<token> below(ends.size());
  thrust::copy(ends.begin(), ends.end(), below.begin());
  std::vector<std::int64_t> counts;
  for (std::size_t t = 0; t + 1 < below.size(); ++t) counts.push_back(std::int64_t{below[t + 1]} - below[t]);
  return counts;
}

/// Mean loss in nats of who knows how often tokens occur, but nothing of what came before: a model that is not better has learned
/// nothing from its context. 0 without tokens.
inline double unigram_loss(std::span<const std::int64_t> counts) {
  double total = 0, loss = 0;
  for (const std::int64_t n : counts) total += static_cast<double>(n);
  for (const std::int64_t n : counts)
    if (n > 0) loss -= static_cast<double>(n) / total * std::log(static_cast<double>(n) / total);
  return loss;
}

GYRE_END
