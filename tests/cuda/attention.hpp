// Trials of attention with sizes that cross tiles, parts and kernels, which the drawn ones are too small for.
#pragma once

#include <initializer_list>
#include <string>

#include "suite.hpp"

namespace gyre_test {

struct attention_sizes {
  gyre::index sequences, length, kv_heads, sharing, width, gap = 0, offset = 0, special = 0, past = 0, skip = 0, seed = 1;
};

template <class T, gyre::operation Op>
void check_sizes(std::initializer_list<attention_sizes> all) {
  namespace parity = gyre::parity;
  gyre::reference left;
  shuffled_cuda right;
  for (const attention_sizes& s : all) {
    parity::trial t{Op, std::string(parity::type_name<T>()), static_cast<std::uint64_t>(s.seed), {}};
    t.sizes = {
        {"sequences", s.sequences}, {"length", s.length}, {"past", s.past}, {"kv_heads", s.kv_heads}, {"sharing", s.sharing},
        {"width", s.width},         {"cursor", 3},        {"skip", s.skip}, {"gap", s.gap},           {"offset", s.offset},
        {"special", s.special}};
    const parity::report r = parity::run_trial<Op, T>(left, right, t);
    INFO(t.text());
    INFO(r);
    CHECK(r.passed());
    CHECK(r.elements > 0);
  }
}

/// What the tests of one scalar type try, each in a unit of its own for the compiler's sake.
/// Columns: sequences, length, kv_heads, sharing, width, gap, offset, special, past, skip.
template <class T>
void check_attention_across_tiles() {
  check_sizes<T, gyre::operation::attention>({{1, 131, 1, 1, 64},
                                              {2, 35, 1, 1, 128, 3, 1},
                                              {1, 35, 1, 2, 65, 0, 1, 1},
                                              {1, 19, 1, 3, 200},
                                              {1, 35, 1, 1, 256},
                                              {1, 67, 1, 3, 8, 0, 0, 2},
                                              {1, 66, 1, 1, 12, 4, 0, 3}});
}
template <class T>
void check_attention_gradients_across_tiles() {
  check_sizes<T, gyre::operation::attention_backward>({{1, 67, 1, 1, 64},
                                                       {2, 35, 1, 1, 128, 3, 1},
                                                       {1, 35, 1, 2, 65, 0, 1, 1},
                                                       {1, 19, 1, 3, 200},
                                                       {1, 18, 1, 1, 256},
                                                       {1, 35, 1, 3, 8, 0, 0, 2},
                                                       {1, 66, 1, 1, 12, 4, 0, 3}});
}
template <class T>
void check_cached_attention_across_tiles() {
  check_sizes<T, gyre::operation::cached_attention>({{1, 70, 1, 1, 8, 0, 0, 0, 100, 1},
                                                     {2, 1, 2, 5, 64, 0, 0, 0, 131, 1},
                                                     {1, 2, 1, 3, 65, 3, 1, 0, 90, 1},
                                                     {1, 3, 1, 20, 8, 0, 0, 2, 70},
                                                     {1, 1, 1, 1, 200, 0, 0, 0, 40}});
}

}  // namespace gyre_test
