// What each thread knows of the others' past: the order that barriers, __syncwarp and fences with atomics make.
//
// Every thread counts its epochs. An access is stamped with its block, thread and epoch, and is ordered before another one if
// that one's thread knows the epoch:
//   - a barrier of the block tells every thread everything; epochs below `floor` lie before the last one;
//   - __syncwarp(mask) tells the lanes named what any of them knows of their warp; a shuffle or vote tells nothing;
//   - a fence makes what its thread knows ready for release; an atomic releases what is ready at its address, and learns what
//     earlier atomics released there, from this block or from one that has ended (a ticket, as in last-block reductions).
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gyre/simt/position.hpp>

namespace gyre_simt {
namespace detail {

// An access as it is remembered. Blocks are counted in the order they run.
struct access_stamp {
  std::uint32_t block = 0, clock = 0, site = 0;
  std::uint16_t thread = 0;
  bool valid = false, atomic = false;
};

// Prefixes of release logs: address of an atomic -> number of records learnt there.
using acquired_set = std::vector<std::pair<std::uintptr_t, std::size_t>>;
inline void learn(acquired_set& into, std::uintptr_t log, std::size_t records) {
  for (auto& [address, known] : into)
    if (address == log) {
      known = (std::max)(known, records);
      return;
    }
  into.emplace_back(log, records);
}
inline void learn(acquired_set& into, const acquired_set& more) {
  for (const auto& [log, records] : more) learn(into, log, records);
}

// What one warp's thread knew of its own block.
struct knowledge {
  std::uint32_t block = 0, warp = 0, floor = 0, version = 0;
  std::uint32_t known[32] = {};
  bool valid = false;
  acquired_set acquired;
  std::uint32_t released_by = 0, released_at = 0;  // the thread of the atomic that released it, and its epoch

  bool covers(const access_stamp& a) const {
    if (a.block != block) return false;
    if (a.atomic && a.thread == released_by && a.clock <= released_at) return true;  // the ticket itself
    return a.clock < floor || (a.thread / 32u == warp && a.clock <= known[a.thread % 32u]);
  }
  void join(const knowledge& other) {
    if (!valid) {
      *this = other;
      return;
    }
    floor = (std::max)(floor, other.floor);
    for (int i = 0; i < 32; ++i) known[i] = (std::max)(known[i], other.known[i]);
    learn(acquired, other.acquired);
  }
};

class clocks {
 public:
  void start_launch() {
    logs_.clear();
    anything_released_ = false;
    block_ = 0;
  }
  void start_block(unsigned threads) {
    ++block_;
    floor_ = top_ = 1;
    threads_.resize(threads);
    for (thread& t : threads_) t = thread{};
    for (thread& t : threads_) t.clock = 1;
    block_acquired_.clear();
    anything_ready_ = anything_acquired_ = false;
    block_ready_.assign((threads + 31) / 32, knowledge{});
  }

  /// All threads of the block meet.
  GYRE_SIMT_ENGINE void barrier() {
    if (anything_acquired_)
      for (thread& t : threads_) learn(block_acquired_, t.acquired);
    if (anything_ready_)
      for (std::size_t i = 0; i < threads_.size(); ++i)
        if (threads_[i].ready.valid) block_ready_[i / 32].join(threads_[i].ready), block_ready_[i / 32].version = ++versions_;
    floor_ = ++top_;
    for (thread& t : threads_) t.clock = floor_;
  }
  /// The lanes of `mask` in `warp` meet at a __syncwarp.
  GYRE_SIMT_ENGINE void meet(unsigned warp, unsigned mask) {
    thread* const lanes = threads_.data() + warp * 32;
    std::uint32_t known[32] = {};
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1u) == 0) continue;
      for (int i = 0; i < 32; ++i) known[i] = (std::max)(known[i], lanes[l].known[i]);
      known[l] = (std::max)(known[l], lanes[l].clock);
    }
    knowledge ready;
    acquired_set acquired;
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1u) == 0) continue;
      if (anything_ready_ && lanes[l].ready.valid) ready.join(lanes[l].ready);
      if (anything_acquired_) learn(acquired, lanes[l].acquired);
    }
    for (unsigned l = 0; l < 32; ++l) {
      if ((mask >> l & 1u) == 0) continue;
      for (int i = 0; i < 32; ++i) lanes[l].known[i] = known[i];
      top_ = (std::max)(top_, ++lanes[l].clock);
      if (ready.valid) lanes[l].ready = ready, lanes[l].ready.version = versions_ + 1;
      if (anything_acquired_) lanes[l].acquired = acquired;
    }
    if (ready.valid) ++versions_;
  }
  void fence(unsigned number) {
    thread& t = threads_[number];
    knowledge& k = t.ready;
    k.block = block_;
    k.warp = number / 32;
    k.floor = floor_;
    k.valid = true;
    k.version = ++versions_;
    for (int i = 0; i < 32; ++i) k.known[i] = t.known[i];
    k.known[number % 32] = t.clock;
    k.acquired = t.acquired;
    learn(k.acquired, block_acquired_);
    anything_ready_ = true;
    top_ = (std::max)(top_, ++t.clock);
  }
  void atomic(unsigned number, std::uintptr_t address) {
    if (!anything_released_ && !anything_ready_) return;
    thread& t = threads_[number];
    log& here = logs_[address];
    if (!here.records.empty()) {
      learn(t.acquired, address, here.records.size());
      learn(t.acquired, here.acquired);
      anything_acquired_ = true;
    }
    release(here, t.ready, number);
    for (const knowledge& k : block_ready_) release(here, k, number);
  }

  /// Whether `a` lies before everything that thread `number` does from now on.
  GYRE_SIMT_ENGINE bool ordered(const access_stamp& a, unsigned number) const {
    if (a.block == block_) {
      if (a.clock < floor_ || a.thread == number) return true;
      if (a.thread / 32u == number / 32u && threads_[number].known[a.thread % 32u] >= a.clock) return true;
    }
    return anything_acquired_ && (covered(threads_[number].acquired, a) || covered(block_acquired_, a));
  }
  /// Whether anything that was released so far knows of `a`.
  bool released(const access_stamp& a) const {
    for (const auto& [address, here] : logs_)
      if (covered(here, here.records.size(), a)) return true;
    return false;
  }
  bool anything_released() const { return anything_released_; }

  std::uint32_t block() const { return block_; }
  std::uint32_t floor() const { return floor_; }
  std::uint32_t clock(unsigned number) const { return threads_[number].clock; }

 private:
  struct thread {
    std::uint32_t clock = 1;
    std::uint32_t known[32] = {};
    knowledge ready;  // to be released by atomics
    acquired_set acquired;
  };
  struct log {
    std::vector<knowledge> records;  // by block, for blocks run one after the other
    acquired_set acquired;           // by any of them
  };

  void release(log& here, const knowledge& k, unsigned number) {
    if (!k.valid) return;
    for (auto i = here.records.rbegin(); i != here.records.rend() && i->block == k.block; ++i)
      if (i->version == k.version && i->warp == k.warp && i->released_by == number) {
        i->released_at = threads_[number].clock;
        return;
      }
    here.records.push_back(k);
    here.records.back().released_by = number;
    here.records.back().released_at = threads_[number].clock;
    learn(here.acquired, k.acquired);
    anything_released_ = true;
  }
  static bool covered(const log& here, std::size_t records, const access_stamp& a) {
    const auto end = here.records.begin() + static_cast<std::ptrdiff_t>(records);
    auto i = std::lower_bound(here.records.begin(), end, a.block, [](const knowledge& k, auto b) { return k.block < b; });
    for (; i != end && i->block == a.block; ++i)
      if (i->covers(a)) return true;
    return false;
  }
  bool covered(const acquired_set& acquired, const access_stamp& a) const {
    for (const auto& [address, records] : acquired)
      if (const auto here = logs_.find(address); here != logs_.end() && covered(here->second, records, a)) return true;
    return false;
  }

  std::vector<thread> threads_;
  std::vector<knowledge> block_ready_;  // made ready before the last barrier, by warp
  acquired_set block_acquired_;
  std::unordered_map<std::uintptr_t, log> logs_;
  std::uint32_t block_ = 0, floor_ = 1, top_ = 1, versions_ = 0;
  bool anything_ready_ = false, anything_released_ = false, anything_acquired_ = false;
};

}  // namespace detail
}  // namespace gyre_simt
