// Sequence attention forward, stored and cached, against the reference in long double, and against itself bit by bit.
#include "attention_checks.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cache_lane;

constexpr heads_case head_cases[] = {{1, 1, 2}, {4, 4, 64}, {5, 1, 40}, {6, 2, 16}, {2, 1, 256}, {130, 1, 4}, {3, 3, 33}};

/// A lane's memory of one layer: `capacity` keys, then as many values, NaN where nothing was written.
template <class T>
struct lane_memory {
  std::vector<T> values;
  cache_lane<T> lane;
  lane_memory(index capacity, index cursor, index kv_width)
      : values(static_cast<std::size_t>(capacity * (cursor + 2 * kv_width)), std::numeric_limits<T>::quiet_NaN()) {
    lane.base = values.data(), lane.capacity = capacity;
  }
};

template <class T>
grid<T> slice(const grid<T>& x, index first, index count) {
  grid<T> part(count, x.read().cols);
  for (index i = 0; i < count; ++i) std::copy_n(x[first + i], x.read().cols, part[i]);
  return part;
}

}  // namespace

TEMPLATE_TEST_CASE("attention agrees with the reference for ragged batches, grouped queries, odd widths", "", float, double) {
  // The reference of long sequences takes minutes under a sanitizer.
  const batch_layout layout = sanitized ? ragged({7, 0, 1, 129, 1}) : ragged({7, 0, 1, 129, 1, 260, 96, 128, 0});
  for (const heads_case h : head_cases)
    for (const double spread : {1.0, 4.0}) check_attention<TestType>(h, layout, spread);
}

TEMPLATE_TEST_CASE("decoding token by token, prefill in pieces and training give the same bits", "", float, double) {
  using T = TestType;
  for (const heads_case h : head_cases) {
    CAPTURE(h.heads, h.kv_heads, h.width);
    cpu b(2);
    constexpr index length = 270, cursor = 5;
    const index kv_width = h.kv_heads * h.width;
    const batch_layout whole = ragged({length});
    const operands<T> x(length, h, 11);
    grid<T> trained(length, h.heads * h.width), lse(length, h.heads, 0);
    b.attention(x.q.read(), x.k.read(), x.v.read(), whole, shape_of(h), trained.view(), lse.data());

    for (const index piece : {1, 3, 8, 100, 270}) {
      CAPTURE(piece);
      lane_memory<T> memory(length, cursor, kv_width);
      const cache_lane<T> lanes[] = {memory.lane};
      grid<T> read(length, h.heads * h.width);
      for (index past = 0; past < length; past += piece) {
        const index count = std::min(piece, length - past);
        batch_layout layout;
        layout.add(count, past, 0);
        b.cache_append(x.k.read().slice(past, count), x.v.read().slice(past, count), layout,
                       std::span<const cache_lane<T>>(lanes), cursor);
        b.cached_attention(x.q.read().slice(past, count), layout, std::span<const cache_lane<T>>(lanes), cursor, shape_of(h), 0,
                           read.view().slice(past, count));
      }
      CHECK(bit_differences(read.view(), trained.view()) == "");
      CHECK(read.margins_intact());
    }
  }
}

TEMPLATE_TEST_CASE("a sequence's result does not depend on the rows around it", "", float, double) {
  using T = TestType;
  for (const heads_case h : head_cases) {
    CAPTURE(h.heads, h.kv_heads, h.width);
    cpu b(2);
    const batch_layout layout = ragged({3, 130, 1, 200});
    const operands<T> x(layout.rows(), h, 21);
    grid<T> together(layout.rows(), h.heads * h.width), lse(layout.rows(), h.heads, 0);
    b.attention(x.q.read(), x.k.read(), x.v.read(), layout, shape_of(h), together.view(), lse.data());
    for (const sequence_span& s : layout.sequences()) {
      const batch_layout alone = ragged({s.count});
      const auto q = slice(x.q, s.begin, s.count), k = slice(x.k, s.begin, s.count), v = slice(x.v, s.begin, s.count);
      grid<T> o(s.count, h.heads * h.width);
      b.attention(q.read(), k.read(), v.read(), alone, shape_of(h), o.view(), static_cast<T*>(nullptr));
      CHECK(bit_differences(o.view(), together.view().slice(s.begin, s.count)) == "");
    }
  }
}

TEMPLATE_TEST_CASE("cached attention in ragged batches leaves out past tokens that stopped early", "", float, double) {
  using T = TestType;
  for (const heads_case h : head_cases)
    for (const index count : {1, 7, 129}) {
      CAPTURE(h.heads, h.kv_heads, h.width, count);
      cpu b(2);
      constexpr index cursor = 3;
      constexpr int step = 4;
      const index kv_width = h.kv_heads * h.width, pasts[] = {0, 1, 150, 40};
      batch_layout layout;
      for (const index past : pasts) layout.add(count, past, 0);
      std::vector<lane_memory<T>> memories;
      std::vector<std::vector<std::int32_t>> steps_run;
      for (const index past : pasts) {
        memories.emplace_back(past + count, cursor, kv_width);
        std::vector<std::int32_t> ran;
        for (index j = 0; j < past + count; ++j) ran.push_back(static_cast<std::int32_t>(1 + j * 7 % 9));
        steps_run.push_back(ran);
      }
      steps_run[1][0] = 1;  // the whole past left out
      std::vector<cache_lane<T>> lanes;
      std::vector<cache_lane<exact>> exact_lanes;
      std::vector<std::vector<exact>> exact_memory;
      for (std::size_t n = 0; n < std::size(pasts); ++n) {
        lane_memory<T>& m = memories[n];
        const auto k = random_grid<T>(pasts[n], kv_width, 31 + n, 1, 0), v = random_grid<T>(pasts[n], kv_width, 41 + n, 1, 0);
        for (index j = 0; j < pasts[n]; ++j)
          if (n == 3 || steps_run[n][static_cast<std::size_t>(j)] > step) {  // others were never written
            std::copy_n(k[j], kv_width, m.lane.base + cursor * m.lane.capacity + j * kv_width);
            std::copy_n(v[j], kv_width, m.lane.base + (cursor + kv_width) * m.lane.capacity + j * kv_width);
          }
        if (n != 3) m.lane.steps_run = steps_run[n].data();  // the last lane reads everything
        lanes.push_back(m.lane);
      }
      const operands<T> x(layout.rows(), h, 51);
      b.cache_append(x.k.read(), x.v.read(), layout, std::span<const cache_lane<T>>(lanes), cursor);
      for (std::size_t n = 0; n < std::size(pasts); ++n)
        exact_memory.emplace_back(memories[n].values.begin(), memories[n].values.end());
      for (std::size_t n = 0; n < std::size(pasts); ++n)
        exact_lanes.push_back({exact_memory[n].data(), lanes[n].capacity, lanes[n].steps_run});
      grid<T> o(layout.rows(), h.heads * h.width);
      grid<exact> want(layout.rows(), h.heads * h.width);
      b.cached_attention(x.q.read(), layout, std::span<const cache_lane<T>>(lanes), cursor, shape_of(h), step, o.view());
      reference().cached_attention(x.q.template as<exact>().read(), layout, std::span<const cache_lane<exact>>(exact_lanes),
                                   cursor, shape_of(h), step, want.view());
      // Scores of these normal numbers stay below 6 sqrt(width), values below 6; the rest as for output_limit.
      const exact factor = (4 * static_cast<exact>(h.width + 2) * 6 * std::sqrt(static_cast<exact>(h.width)) + 2 * 300 + 24);
      CHECK(differences(o.read(), want.view(), factor * epsilon<T> * 6) == "");
      CHECK(o.margins_intact());
    }
}

TEMPLATE_TEST_CASE("cache_append and cache_extend write exactly their rows", "", float, double) {
  using T = TestType;
  cpu b(2);
  constexpr index width = 5, cursor = 4, stride = 17, copies_most = 3, capacity = 20;
  batch_layout layout;
  layout.add(3, 2, 0), layout.add(0, 1, 0), layout.add(1, 0, 0), layout.add(6, 14, 0);
  const auto k = random_grid<T>(layout.rows(), width, 1), v = random_grid<T>(layout.rows(), width, 2);
  const auto run = [&](auto& device) {
    std::vector<lane_memory<T>> memories;
    std::vector<cache_lane<T>> lanes;
    for (int n = 0; n < 4; ++n) {
      memories.emplace_back(capacity, cursor + copies_most * stride, width);
      std::fill(memories.back().values.begin(), memories.back().values.end(), T(-7));
    }
    for (auto& m : memories) lanes.push_back(m.lane);
    const std::int32_t copies[] = {3, 1, 0, 2};
    const index blocks[] = {width, width};
    device.cache_append(k.read(), v.read(), layout, std::span<const cache_lane<T>>(lanes), cursor);
    device.cache_extend(layout, std::span<const cache_lane<T>>(lanes), std::span<const std::int32_t>(copies), cursor,
                        std::span<const index>(blocks), stride);
    std::vector<T> all;
    for (auto& m : memories) all.insert(all.end(), m.values.begin(), m.values.end());
    return all;
  };
  reference plain;
  CHECK(run(b) == run(plain));
}

TEMPLATE_TEST_CASE("scores that are not finite end in results that are not finite", "", float, double) {
  using T = TestType;
  cpu b(2);
  const heads_case h{4, 2, 40};
  const batch_layout layout = ragged({150, 5});
  for (const T bad : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
    operands<T> x(layout.rows(), h, 61);
    x.k[100][3] = bad;
    grid<T> o(layout.rows(), h.heads * h.width), lse(layout.rows(), h.heads, 0);
    b.attention(x.q.read(), x.k.read(), x.v.read(), layout, shape_of(h), o.view(), lse.data());
    bool before = true, other = true;
    for (index c = 0; c < h.heads * h.width; ++c) {
      for (index i = 0; i < 100; ++i) before = before && std::isfinite(o[i][c]);
      for (index i = 150; i < 155; ++i) other = other && std::isfinite(o[i][c]);
    }
    CHECK(before);  // no query sees a later key
    CHECK(other);
    CHECK(!std::isfinite(static_cast<double>(lse[149][0]) + static_cast<double>(o[149][0])));
  }
}

}  // namespace gyre_test
