// Counts what the memory system would do for each warp: bank conflicts of shared memory, sectors of global memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace gyre_simt {

namespace detail {

// Lanes of a warp that come to the same access the same time since their last synchronisation are taken for one request.
class cost_counter {
 public:
  struct total {
    bool shared = false, write = false;
    unsigned bytes = 0;
    std::uint64_t requests = 0, transfers = 0, ideal = 0;
    void add(const total& more) {
      shared = more.shared, write = more.write, bytes = (std::max)(bytes, more.bytes);
      requests += more.requests, transfers += more.transfers, ideal += more.ideal;
    }
  };

  void count(unsigned thread, std::uintptr_t address, std::size_t bytes, bool shared, bool write, std::uint32_t site) {
    if (thread / 32 >= warps_.size()) warps_.resize(thread / 32 + 1);
    warp_requests& w = warps_[thread / 32];
    const std::uint64_t key = std::uint64_t{site} << 2 | (write ? 2u : 0u) | (shared ? 1u : 0u);
    const std::uint32_t turn = w.turns[key << 5 | thread % 32]++;
    request& r = w.requests[key << 24 | (turn & 0xffffffu)];
    r.mask |= 1u << thread % 32;
    r.bytes = (std::max)(r.bytes, static_cast<unsigned>(bytes));
    r.addresses[thread % 32] = address;
  }
  /// Threads of `warp` have synchronised: what they do next does not belong to what they did before.
  void synchronised(unsigned warp) {
    if (warp < warps_.size()) flush(warps_[warp]);
  }
  void end_of_block() {
    for (warp_requests& w : warps_) flush(w);
  }
  std::unordered_map<std::uint64_t, total> totals;  // by site << 2 | write << 1 | shared

 private:
  struct request {
    std::uint32_t mask = 0;
    unsigned bytes = 0;
    std::array<std::uintptr_t, 32> addresses{};
  };
  struct warp_requests {
    std::unordered_map<std::uint64_t, std::uint32_t> turns;  // site and kind << 5 | lane -> accesses so far
    std::unordered_map<std::uint64_t, request> requests;     // site and kind << 24 | turn
  };

  void flush(warp_requests& w) {
    for (const auto& [key, r] : w.requests) {
      total& t = totals[key >> 24];
      t.shared = (key >> 24 & 1u) != 0;
      t.write = (key >> 24 & 2u) != 0;
      t.bytes = (std::max)(t.bytes, r.bytes);
      ++t.requests;
      t.shared ? banks(r, t) : sectors(r, t);
    }
    w.requests.clear();
    w.turns.clear();
  }
  // 32 banks of 4 bytes; accesses of 8 bytes are served by half warps, of 16 bytes by quarters.
  void banks(const request& r, total& t) {
    const unsigned lanes = r.bytes <= 4 ? 32 : r.bytes <= 8 ? 16 : 8;
    for (unsigned first = 0; first < 32; first += lanes) {
      units_.clear();
      for (unsigned l = first; l < first + lanes; ++l)
        if ((r.mask >> l & 1u) != 0)
          for (std::uintptr_t w = r.addresses[l] / 4; w <= (r.addresses[l] + r.bytes - 1) / 4; ++w) units_.push_back(w);
      if (units_.empty()) continue;
      make_unique();
      unsigned per_bank[32] = {}, most = 0;
      for (const std::uintptr_t w : units_) most = (std::max)(most, ++per_bank[w % 32]);
      t.transfers += most;
      t.ideal += (units_.size() + 31) / 32;
    }
  }
  void sectors(const request& r, total& t) {
    units_.clear();
    for (unsigned l = 0; l < 32; ++l)
      if ((r.mask >> l & 1u) != 0)
        for (std::uintptr_t b = r.addresses[l]; b < r.addresses[l] + r.bytes; ++b) units_.push_back(b);
    make_unique();
    t.ideal += (units_.size() + 31) / 32;
    for (std::uintptr_t& b : units_) b /= 32;
    make_unique();
    t.transfers += units_.size();
  }
  void make_unique() {
    std::sort(units_.begin(), units_.end());
    units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
  }

  std::vector<warp_requests> warps_;
  std::vector<std::uintptr_t> units_;
};

}  // namespace detail
}  // namespace gyre_simt
