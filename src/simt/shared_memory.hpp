// Shared memory of the running block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "launch_state.hpp"

namespace gyre_simt::detail {

// Objects lie far enough apart that one overrun does not reach the next. What counts against the limits is their bytes alone.
inline constexpr std::size_t shared_gap = gap_bytes, most_shared_objects = 64;
inline constexpr std::size_t shared_page_bytes = 256 * 1024 + most_shared_objects * 2 * shared_gap;

// Reserves `bytes` bytes; the first thread of a block to come does it for all.
inline unsigned char* reserve_shared(launch_state& launch, const void* key, const char* name, std::size_t bytes,
                                     std::size_t alignment) {
  const std::size_t begin = round_up(launch.shared_top + shared_gap, (std::max)(alignment, std::size_t{128}));
  unsigned char* const at = reinterpret_cast<unsigned char*>(launch.shared_pages.data()) + begin;
  unpoison(at, bytes);
  std::memset(at, garbage, bytes);
  launch.shared_top = begin + bytes;
  launch.shared_bytes = round_up(launch.shared_bytes, alignment) + bytes;
  launch.shared.push_back({key, name, reinterpret_cast<std::uintptr_t>(at), bytes});
  return at;
}

// A new block: nothing is declared but its dynamic shared memory.
inline void renew_shared(launch_state& launch) {
  poison(launch.shared_pages.data(), launch.shared_pages.size());
  launch.shared.clear();
  launch.shared_top = launch.shared_bytes = 0;
  launch.dynamic = nullptr;
  if (launch.dynamic_bytes != 0)
    launch.dynamic = reserve_shared(launch, &launch.dynamic, "dynamic shared memory", launch.dynamic_bytes, 16);
  ++launch.shared_generation;
}

}  // namespace gyre_simt::detail
