// What the race detector remembers of a word of memory, or of one of its bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "clocks.hpp"

namespace gyre_simt {
namespace detail {

// Lanes of a warp that accessed a word in the same epoch.
struct lane_group {
  std::uint32_t clock, mask, site;
  std::uint16_t warp;
  bool atomic;
};

// Many accesses to a word, none of which may be forgotten: those of one block since its last barrier one by one, and what
// remains of the blocks before it.
struct access_set {
  std::uint32_t block = 0, floor = 0;
  std::vector<lane_group> groups;
  access_stamp unreleased;             // of an earlier block, and in nothing that was released: it cannot be ordered any more
  std::vector<access_stamp> released;  // the last one of each earlier block whose accesses were all released
  std::uint32_t next_free = 0;
};

// Reads, or atomic accesses, since the last plain write: one, or a set (its number; 0 is none).
struct history {
  access_stamp one;
  std::uint32_t set = 0;
};

// `generation` tells cells of this launch (shared memory: of this block) from older ones, which count as fresh.
struct cell {
  std::uint64_t generation = 0;
  access_stamp write;
  history reads, atomics;
  std::uint32_t split = 0;  // the number of four cells for the bytes, 0 as long as all accesses covered the whole word
  bool written = false, pending = false;
};

class access_sets {
 public:
  void clear() {
    sets_.assign(1, access_set{});
    free_ = 0;
  }
  access_set& operator[](std::uint32_t i) { return sets_[i]; }
  const access_set& operator[](std::uint32_t i) const { return sets_[i]; }
  std::uint32_t make() {
    if (free_ != 0) {
      const std::uint32_t i = free_;
      free_ = sets_[i].next_free;
      return i;
    }
    sets_.emplace_back();
    return static_cast<std::uint32_t>(sets_.size() - 1);
  }
  std::uint32_t copy(std::uint32_t from) {
    if (from == 0) return 0;
    const std::uint32_t i = make();
    sets_[i] = access_set(sets_[from]);
    return i;
  }
  void release(std::uint32_t i) {
    if (i == 0) return;
    access_set& s = sets_[i];
    s.groups.clear();
    s.released.clear();
    s.unreleased = {};
    s.block = 0;
    s.next_free = free_;
    free_ = i;
  }

 private:
  std::vector<access_set> sets_ = std::vector<access_set>(1);
  std::uint32_t free_ = 0;
};

inline access_stamp stamp_of(const lane_group& g, std::uint32_t block, unsigned lane) {
  return {block, g.clock, g.site, static_cast<std::uint16_t>(g.warp * 32u + lane), true, g.atomic};
}

// The block of `s` has ended: what is left of it for later blocks to meet.
inline void retire(access_set& s, const clocks& order) {
  if (s.groups.empty()) return;
  bool all_released = order.anything_released();
  access_stamp last;
  for (const lane_group& g : s.groups)
    for (unsigned l = 0; l < 32; ++l) {
      if ((g.mask >> l & 1u) == 0) continue;
      const access_stamp a = stamp_of(g, s.block, l);
      if (all_released && !order.released(a)) all_released = false, last = a;
      if (!last.valid || (all_released && a.clock > last.clock)) last = a;
    }
  if (all_released)
    s.released.push_back(last);
  else
    s.unreleased = last;
  s.groups.clear();
}

// Adds `a`, by the block that runs now.
inline void remember(history& h, const access_stamp& a, access_sets& sets, const clocks& order) {
  if (h.set == 0) {
    const bool superseded = h.one.block == a.block && (h.one.thread == a.thread || h.one.clock < order.floor());
    if (!h.one.valid || superseded) {
      h.one = a;
      return;
    }
    h.set = sets.make();
    access_set& s = sets[h.set];
    s.block = h.one.block;
    s.floor = h.one.block == a.block ? order.floor() : 0;
    s.groups.push_back(
        {h.one.clock, 1u << h.one.thread % 32u, h.one.site, static_cast<std::uint16_t>(h.one.thread / 32u), h.one.atomic});
  }
  access_set& s = sets[h.set];
  if (s.block != a.block) {
    retire(s, order);
    s.block = a.block;
    s.floor = order.floor();
  } else if (s.floor != order.floor()) {
    // All of them lie before the last barrier, so whatever is ordered after `a` is ordered after them too.
    s.groups.clear();
    s.floor = order.floor();
  }
  const std::uint32_t bit = 1u << a.thread % 32u;
  const std::uint16_t warp = static_cast<std::uint16_t>(a.thread / 32u);
  bool placed = false;
  for (lane_group& g : s.groups) {
    if (g.warp != warp) continue;
    if (g.clock == a.clock)
      g.mask |= bit, placed = true;
    else
      g.mask &= ~bit;
  }
  if (!placed) s.groups.push_back({a.clock, bit, a.site, warp, a.atomic});
}

// The first access of `h` that does not lie before what thread `number` does now, or an invalid one.
inline access_stamp conflict(const history& h, unsigned number, const access_sets& sets, const clocks& order) {
  if (h.set == 0) return h.one.valid && !order.ordered(h.one, number) ? h.one : access_stamp{};
  const access_set& s = sets[h.set];
  if (s.block != order.block() || s.floor == order.floor())
    for (const lane_group& g : s.groups)
      for (unsigned l = 0; l < 32; ++l)
        if ((g.mask >> l & 1u) != 0)
          if (const access_stamp a = stamp_of(g, s.block, l); !order.ordered(a, number)) return a;
  if (s.unreleased.valid) return s.unreleased;
  for (const access_stamp& a : s.released)
    if (!order.ordered(a, number)) return a;
  return {};
}

}  // namespace detail
}  // namespace gyre_simt
