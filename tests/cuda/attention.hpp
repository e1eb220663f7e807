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

}  // namespace gyre_test
