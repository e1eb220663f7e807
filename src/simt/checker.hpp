// Watches every access of instrumented kernels: bounds, alignment, order, and whether what is read was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bounds.hpp"
#include "cost_counter.hpp"
#include "launch_state.hpp"
#include "shadow.hpp"

namespace gyre_simt {
namespace detail {

class memory_checker {
 public:
  void start_launch() {
    sets_.clear();
    split_.assign(1, {});
    known_.clear();
  }

  /// An access by the running thread, before it happens.
  void access(launch_state& launch, std::uintptr_t address, std::size_t bytes, unsigned flags, std::uint32_t site) {
    if (bytes == 0) return;
    ++launch.counts->accesses;
    problem_.clear();
    const target t = locate(launch, finder_, address, bytes, problem_);
    if (!problem_.empty()) out_of_bounds(launch, address, bytes, flags, site);
    if (t.space == memory_space::local || t.space == memory_space::other) return;
    const bool shared = t.space == memory_space::shared;
    if (launch.settings->count_accesses && (flags & gyre_simt_hook::atomic) == 0)
      costs.count(launch.running->number, address, bytes, shared, (flags & gyre_simt_hook::write) != 0, site);
    if (launch.order == nullptr) return;
    const now me{launch,
                 flags,
                 site,
                 shared,
                 shared ? launch.shared_generation : launch.launch_generation,
                 {launch.order->block(), launch.order->clock(launch.running->number), site,
                  static_cast<std::uint16_t>(launch.running->number), true, (flags & gyre_simt_hook::atomic) != 0}};
    each_cell(launch, t, address, bytes, me.generation, [&](cell& c, std::uintptr_t at) { check(me, c, at, bytes, t); });
  }

  /// From now until async_landed(), these bytes of shared memory may hold the old or the new contents.
  void async_issued(launch_state& launch, std::uintptr_t address, std::size_t bytes) { mark(launch, address, bytes, true); }
  void async_landed(launch_state& launch, std::uintptr_t address, std::size_t bytes) { mark(launch, address, bytes, false); }

  cost_counter costs;

 private:
  struct now {
    launch_state& launch;
    unsigned flags;
    std::uint32_t site;
    bool shared;
    std::uint64_t generation;
    access_stamp stamp;
  };

  static cell* cells_of(launch_state& launch, const target& t, std::uintptr_t& base) {
    mapping& shadow = t.space == memory_space::shared ? launch.shared_shadow : t.home->shadow;
    base = t.space == memory_space::shared ? reinterpret_cast<std::uintptr_t>(launch.shared_pages.data()) : t.home->begin;
    const std::size_t bytes = t.space == memory_space::shared ? launch.shared_pages.size() : t.home->end - t.home->begin;
    if (shadow.data() == nullptr) shadow = mapping((bytes / 4 + 1) * sizeof(cell));
    return reinterpret_cast<cell*>(shadow.data());
  }

  template <class F>
  void each_cell(launch_state& launch, const target& t, std::uintptr_t address, std::size_t bytes, std::uint64_t generation,
                 F&& f) {
    std::uintptr_t base = 0;
    cell* const cells = cells_of(launch, t, base);
    const std::uintptr_t end = address + bytes;
    for (std::uintptr_t word = address & ~std::uintptr_t{3}; word < end; word += 4) {
      cell& c = cells[(word - base) / 4];
      if (c.generation != generation) {
        c = cell{};
        c.generation = generation;
      }
      const std::uintptr_t from = (std::max)(word, address), to = (std::min)(word + 4, end);
      if (c.split == 0 && to - from == 4) {
        f(c, word);
        continue;
      }
      if (c.split == 0) split(c);
      for (std::uintptr_t at = from; at < to; ++at) f(split_[c.split][at - word], at);
    }
  }
  void split(cell& c) {
    const std::uint32_t number = static_cast<std::uint32_t>(split_.size());
    std::array<cell, 4> four{c, c, c, c};
    for (std::size_t i = 1; i < 4; ++i) {
      four[i].reads.set = sets_.copy(c.reads.set);
      four[i].atomics.set = sets_.copy(c.atomics.set);
    }
    split_.push_back(four);
    c.split = number;
  }
  void mark(launch_state& launch, std::uintptr_t address, std::size_t bytes, bool pending) {
    problem_.clear();
    const target t = locate(launch, finder_, address, bytes, problem_);
    if (!problem_.empty() || t.space != memory_space::shared || launch.order == nullptr) return;
    each_cell(launch, t, address, bytes, launch.shared_generation, [&](cell& c, std::uintptr_t) {
      c.pending = pending;
      c.written = true;
    });
  }

  void check(const now& me, cell& c, std::uintptr_t at, std::size_t bytes, const target& t) {
    const bool write = (me.flags & gyre_simt_hook::write) != 0, atomic = (me.flags & gyre_simt_hook::atomic) != 0;
    const unsigned number = me.launch.running->number;
    const clocks& order = *me.launch.order;
    if ((!write || atomic) && me.shared) {
      // Copies of whole objects may carry padding that nobody wrote.
      if (!c.written && (me.flags & gyre_simt_hook::range) == 0) unwritten(me, c, at, bytes, t);
      if (c.pending) not_awaited(me, c, at, bytes, t);
    }
    if (c.write.valid && !order.ordered(c.write, number)) race(me, c.write, true, at, bytes, t);
    if (!atomic)
      if (const access_stamp a = conflict(c.atomics, number, sets_, order); a.valid) race(me, a, true, at, bytes, t);
    if (write)
      if (const access_stamp a = conflict(c.reads, number, sets_, order); a.valid) race(me, a, false, at, bytes, t);
    if (atomic) {
      remember(c.atomics, me.stamp, sets_, order);
      c.written = true;
    } else if (write) {
      c.write = me.stamp;
      c.written = true;
      c.pending = false;
      forget(c.reads);
      forget(c.atomics);
    } else {
      remember(c.reads, me.stamp, sets_, order);
    }
  }
  void forget(history& h) {
    sets_.release(h.set);
    h = {};
  }

  bool is_new(fault_kind kind, std::uint32_t a, std::uint32_t b) {
    return known_.insert({static_cast<int>(kind), (std::min)(a, b), (std::max)(a, b)}).second;
  }
  static const char* verb(unsigned flags) {
    return (flags & gyre_simt_hook::atomic) != 0  ? "atomically changes"
           : (flags & gyre_simt_hook::write) != 0 ? "writes"
                                                  : "reads";
  }
  static std::string object_text(const target& t, std::uintptr_t at) {
    std::ostringstream text;
    text << (t.space == memory_space::shared ? "shared memory '" : "global memory '") << t.name << "' + " << at - t.begin;
    return text.str();
  }
  static raw_fault fault_at(const now& me, fault_kind kind, std::uintptr_t at) {
    raw_fault f;
    f.kind = kind;
    f.place = (*me.launch.sites)[me.site];
    f.address = at;
    return f;
  }
  void race(const now& me, const access_stamp& other, bool other_writes, std::uintptr_t at, std::size_t bytes,
            const target& t) {
    if (!is_new(fault_kind::race, me.site, other.site)) return;
    raw_fault f = fault_at(me, fault_kind::race, at);
    f.other_place = (*me.launch.sites)[other.site];
    f.other_thread = thread_at(me.launch, other.thread);
    f.other_block = coordinates_of(me.launch.block_indices[other.block - 1]);
    f.has_other = true;
    std::ostringstream text;
    text << verb(me.flags) << ' ' << bytes << " bytes of " << object_text(t, at) << ", which "
         << (other.block == me.stamp.block ? "another thread of the block" : "a thread of another block") << ' '
         << (!other_writes  ? "reads"
             : other.atomic ? "atomically changes"
                            : "writes")
         << (other.block != me.stamp.block
                 ? "; expected no such access, an atomic one, or a fence with an atomic ticket between"
             : other.thread / 32 == me.stamp.thread / 32
                 ? "; expected a barrier or a __syncwarp that names both lanes between (shuffles order nothing)"
                 : "; expected a barrier between");
    f.text = text.str();
    record(me.launch, std::move(f));
  }
  void unwritten(const now& me, cell& c, std::uintptr_t at, std::size_t bytes, const target& t) {
    c.written = true;  // once is enough
    if (!is_new(fault_kind::unwritten_shared, me.site, 0)) return;
    raw_fault f = fault_at(me, fault_kind::unwritten_shared, at);
    f.text = std::string(verb(me.flags)) + " " + std::to_string(bytes) + " bytes of " + object_text(t, at) +
             "; expected a write to it in this block before";
    record(me.launch, std::move(f));
  }
  void not_awaited(const now& me, cell& c, std::uintptr_t at, std::size_t bytes, const target& t) {
    c.pending = false;
    if (!is_new(fault_kind::missing_async_wait, me.site, 0)) return;
    raw_fault f = fault_at(me, fault_kind::missing_async_wait, at);
    f.text = std::string(verb(me.flags)) + " " + std::to_string(bytes) + " bytes of " + object_text(t, at) +
             ", to which an asynchronous copy is under way; expected __pipeline_wait_prior by the thread that copies, then a "
             "barrier";
    record(me.launch, std::move(f));
  }
  [[noreturn]] void out_of_bounds(launch_state& launch, std::uintptr_t address, std::size_t bytes, unsigned flags,
                                  std::uint32_t site) {
    raw_fault f;
    f.kind = fault_kind::out_of_bounds;
    f.place = (*launch.sites)[site];
    f.address = address;
    f.text = std::string(verb(flags)) + " " + std::to_string(bytes) + " bytes at " + problem_;
    record(launch, std::move(f));
    stop(launch);
  }

  access_sets sets_;
  std::vector<std::array<cell, 4>> split_ = std::vector<std::array<cell, 4>>(1);
  std::set<std::tuple<int, std::uint32_t, std::uint32_t>> known_;
  object_finder finder_;
  std::string problem_;
};

}  // namespace detail
}  // namespace gyre_simt
