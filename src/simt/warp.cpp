#include <algorithm>
#include <array>
#include <cstring>
#include <gyre/simt/runtime.hpp>
#include <string>

#include "scheduler.hpp"
#include "tensor_core.hpp"

namespace gyre_simt::detail {
namespace {

enum class shuffle { direct, up, down, exclusive_or };

// Which lane a lane reads, as in the PTX manual's shfl.sync.
constexpr int source_of(shuffle kind, int lane, int argument, int width) {
  const int first = lane & ~(width - 1), last = first + width - 1;
  switch (kind) {
    case shuffle::direct:
      return first + (argument & (width - 1));
    case shuffle::up:
      return lane - argument < first ? lane : lane - argument;
    case shuffle::down:
      return lane + argument > last ? lane : lane + argument;
    case shuffle::exclusive_or:
      return (lane ^ argument) > last ? lane : (lane ^ argument);
  }
  return lane;
}

template <shuffle kind>
void finish_shuffle(launch_state& launch, gpu_thread* lanes, unsigned mask) {
  for (unsigned l = 0; l < 32; ++l) {
    if ((mask >> l & 1u) == 0) continue;
    warp_request& r = lanes[l].request;
    // Distances beyond a warp are clipped: their sum with a lane must not overflow.
    const int argument = kind == shuffle::up || kind == shuffle::down ? (r.argument > 32 || r.argument < 0 ? 32 : r.argument)
                                                                      : (r.argument & 31);
    const unsigned source = static_cast<unsigned>(source_of(kind, static_cast<int>(l), argument, r.width));
    if ((mask >> source & 1u) == 0)
      stop_waiting(launch, lanes[l].number, fault_kind::inactive_lane,
                   std::string(r.operation->name) + " of lane " + std::to_string(l) + " reads lane " + std::to_string(source) +
                       ", which does not take part; expected a source among the lanes of " + hexadecimal(mask));
    std::memcpy(r.result, lanes[source].request.given, r.bytes);
  }
}

enum class vote { ballot, any, all };

template <vote kind>
void finish_vote(launch_state&, gpu_thread* lanes, unsigned mask) {
  unsigned held = 0;
  for (unsigned l = 0; l < 32; ++l)
    if ((mask >> l & 1u) != 0 && lanes[l].request.argument != 0) held |= 1u << l;
  const unsigned result = kind == vote::ballot ? held : kind == vote::any ? held != 0 : held == mask;
  for (unsigned l = 0; l < 32; ++l)
    if ((mask >> l & 1u) != 0) std::memcpy(lanes[l].request.result, &result, sizeof(result));
}

void finish_match(launch_state&, gpu_thread* lanes, unsigned mask) {
  for (unsigned l = 0; l < 32; ++l) {
    if ((mask >> l & 1u) == 0) continue;
    unsigned same = 0;
    for (unsigned k = 0; k < 32; ++k)
      if ((mask >> k & 1u) != 0 && std::memcmp(lanes[l].request.given, lanes[k].request.given, lanes[l].request.bytes) == 0)
        same |= 1u << k;
    std::memcpy(lanes[l].request.result, &same, sizeof(same));
  }
}

enum class reduction { add, min, max, bit_and, bit_or, bit_xor };

template <reduction kind, class T>
void finish_reduction(launch_state&, gpu_thread* lanes, unsigned mask) {
  T total{};
  bool first = true;
  for (unsigned l = 0; l < 32; ++l) {
    if ((mask >> l & 1u) == 0) continue;
    T v;
    std::memcpy(&v, lanes[l].request.given, sizeof(T));
    if (first)
      total = v;
    else if constexpr (kind == reduction::add)
      total = static_cast<T>(static_cast<unsigned>(total) + static_cast<unsigned>(v));
    else if constexpr (kind == reduction::min)
      total = v < total ? v : total;
    else if constexpr (kind == reduction::max)
      total = v > total ? v : total;
    else if constexpr (kind == reduction::bit_and)
      total = total & v;
    else if constexpr (kind == reduction::bit_or)
      total = total | v;
    else
      total = total ^ v;
    first = false;
  }
  for (unsigned l = 0; l < 32; ++l)
    if ((mask >> l & 1u) != 0) std::memcpy(lanes[l].request.result, &total, sizeof(T));
}

// In the order of warp_call.
constexpr std::array<warp_operation, static_cast<std::size_t>(warp_call::count)> operations{{
    {"__syncwarp", nullptr, true},
    {"__shfl_sync", finish_shuffle<shuffle::direct>, false},
    {"__shfl_up_sync", finish_shuffle<shuffle::up>, false},
    {"__shfl_down_sync", finish_shuffle<shuffle::down>, false},
    {"__shfl_xor_sync", finish_shuffle<shuffle::exclusive_or>, false},
    {"__ballot_sync", finish_vote<vote::ballot>, false},
    {"__any_sync", finish_vote<vote::any>, false},
    {"__all_sync", finish_vote<vote::all>, false},
    {"__match_any_sync", finish_match, false},
    {"__reduce_add_sync", finish_reduction<reduction::add, unsigned>, false},
    {"__reduce_min_sync", finish_reduction<reduction::min, int>, false},
    {"__reduce_min_sync", finish_reduction<reduction::min, unsigned>, false},
    {"__reduce_max_sync", finish_reduction<reduction::max, int>, false},
    {"__reduce_max_sync", finish_reduction<reduction::max, unsigned>, false},
    {"__reduce_and_sync", finish_reduction<reduction::bit_and, unsigned>, false},
    {"__reduce_or_sync", finish_reduction<reduction::bit_or, unsigned>, false},
    {"__reduce_xor_sync", finish_reduction<reduction::bit_xor, unsigned>, false},
    {"load_matrix", finish_load_matrix<false>, false},
    {"load_matrix_transposed", finish_load_matrix<true>, false},
    {"multiply_bf16", finish_multiply_bf16, false},
}};

}  // namespace

void with_warp(warp_call call, unsigned mask, const void* given, unsigned bytes, void* result, unsigned result_bytes,
               int argument, int width, const position& at) {
  const inside in;
  const warp_operation& operation = operations[static_cast<std::size_t>(call)];
  launch_state& launch = launch_in_progress(operation.name);
  gpu_thread& me = *launch.running;
  const unsigned lane = me.number % 32;
  if ((mask >> lane & 1u) == 0)
    stop_with(launch, fault_kind::wrong_mask, at,
              std::string(operation.name) + " is called by lane " + std::to_string(lane) + " with mask " + hexadecimal(mask) +
                  ", which leaves that lane out");
  if (width <= 0 || width > 32 || (width & (width - 1)) != 0)
    stop_with(launch, fault_kind::wrong_mask, at,
              std::string(operation.name) + ": the width must be 1, 2, 4, 8, 16 or 32, not " + std::to_string(width));
  warp_request& r = me.request;
  r.operation = &operation;
  r.mask = mask;
  r.argument = argument;
  r.width = width;
  r.bytes = bytes;
  std::memcpy(r.given, given, bytes);
  wait(launch, thread_state::at_warp, at);
  std::memcpy(result, r.result, result_bytes);
}

votes block_barrier(const char* name, int predicate, const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress(name);
  launch.running->predicate = predicate;
  wait(launch, thread_state::at_barrier, at);
  return launch.predicates;
}

}  // namespace gyre_simt::detail
