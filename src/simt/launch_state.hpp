// What a running launch consists of, and how a fault ends it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "clocks.hpp"
#include "fiber.hpp"
#include "memory_books.hpp"
#include "sites.hpp"
#include <gyre/simt/fault.hpp>
#include <gyre/simt/hook.hpp>
#include <gyre/simt/machine.hpp>
#include <gyre/simt/options.hpp>
#include <gyre/simt/position.hpp>
#include <gyre/simt/runtime.hpp>
#include <gyre/simt/vector_types.hpp>

namespace gyre_simt {
namespace detail {

struct launch_state;
struct gpu_thread;

// An operation that lanes of a warp do together. `finish` computes every lane's result once all of `mask` have come.
struct warp_operation {
  const char* name;
  void (*finish)(launch_state& launch, gpu_thread* lanes, unsigned mask);
  bool orders_memory;
};

// What a lane brings to a warp operation and takes from it.
struct warp_request {
  const warp_operation* operation;
  unsigned mask;
  int argument;  // source lane, distance or predicate
  int width;
  unsigned bytes;
  alignas(16) unsigned char given[64];
  alignas(16) unsigned char result[64];
};

// A copy from global to shared memory that lands when it is waited for.
struct async_copy {
  unsigned char* to;
  const unsigned char* from;
  unsigned bytes, zeroed;  // `bytes` in all, the last `zeroed` of them zeros
  position at;
};

enum class thread_state : unsigned char { ready, at_barrier, at_warp, exited };

struct gpu_thread {
  fiber context;
  uint3 index;
  unsigned number;  // in the block; lane and warp follow from it
  thread_state state;
  int predicate;  // of __syncthreads_count and its like
  position at;
  warp_request request;
  std::vector<async_copy> copies;
  std::vector<std::size_t> groups;  // copies that belong to each committed group and those before it
};

struct shared_piece {
  const void* key;
  const char* name;
  std::uintptr_t begin;
  std::size_t bytes;
};

// A fault as it is found; source lines are looked up when the launch is over.
struct raw_fault {
  fault_kind kind{};
  site place, other_place;
  coordinates block, thread, other_block, other_thread;
  std::uintptr_t address = 0;
  bool has_thread = false, has_other = false;
  std::string text;
};

class memory_checker;
// Threads of a warp have synchronised; tells the counter of costs.
void warp_synchronised(launch_state& launch, unsigned warp);

struct launch_state {
  const options* settings = nullptr;
  memory_books* memory = nullptr;
  memory_checker* checker = nullptr;  // of instrumented accesses, or null
  clocks* order = nullptr;            // null unless races are looked for
  statistics* counts = nullptr;
  site_table* sites = nullptr;

  dim3 grid, block;
  uint3 block_index{};
  std::vector<uint3> block_indices;  // of the blocks run so far, for reports of races between blocks; by clocks::block() - 1

  std::vector<gpu_thread> threads;
  std::vector<unsigned> queue;  // threads that run next, in their order
  std::size_t queue_position = 0, queue_length = 0;
  unsigned alive = 0;
  unsigned at_warp[32] = {};  // threads of each warp that wait at a warp operation
  votes predicates{};         // of the last barrier
  std::uint64_t random = 1;

  stack_set stacks;
  fiber outside;  // the thread that launched
  const void* outside_bottom = nullptr;
  std::size_t outside_bytes = 0;
  bool entered = false;
  gpu_thread* running = nullptr;
  gyre_simt_hook::observer observer{};
  bool observed = false;

  mapping shared_pages;  // a gap, then objects with gaps between them
  mapping shared_shadow;
  std::size_t shared_top = 0, shared_bytes = 0, dynamic_bytes = 0;
  unsigned char* dynamic = nullptr;
  std::vector<shared_piece> shared;
  std::uint64_t shared_generation = 0, launch_generation = 0;

  void (*body)(const void*) = nullptr;
  const void* arguments = nullptr;
  std::size_t parameter_bytes = 0;
  std::exception_ptr thrown;
  std::vector<raw_fault> faults;
  bool stopped = false;
};

inline thread_local constinit launch_state* current_launch = nullptr;

// A kernel is inside the interpreter: what happens here is not an access of the kernel.
class inside {
 public:
  GYRE_SIMT_ENGINE inside() : observer_(gyre_simt_hook::current) { gyre_simt_hook::current = nullptr; }
  GYRE_SIMT_ENGINE ~inside() { gyre_simt_hook::current = observer_; }
  inside(const inside&) = delete;

 private:
  gyre_simt_hook::observer* observer_;
};

inline launch_state& launch_in_progress(const char* call) {
  if (current_launch == nullptr || current_launch->running == nullptr)
    throw std::logic_error(std::string("simt: ") + call + " was called outside of a kernel; use gyre::simt::launch to run one");
  return *current_launch;
}

inline coordinates coordinates_of(const uint3& i) { return {i.x, i.y, i.z}; }
inline site site_of(const position& at) { return {nullptr, at.file, at.line, at.column}; }
inline coordinates thread_at(const launch_state& launch, unsigned number) {
  const unsigned x = launch.block.x, y = launch.block.y;
  return {number % x, number / x % y, number / (x * y)};
}

// Remembers a fault of the running thread. The launch goes on, unless there are too many.
void record(launch_state& launch, raw_fault f);
// Remembers it and ends the launch: the fibers are left behind.
[[noreturn]] GYRE_SIMT_ENGINE inline void stop(launch_state& launch) {
  launch.stopped = true;
  gpu_thread* const from = launch.running;
  launch.running = nullptr;
  gyre_simt_hook::current = nullptr;
  change(from->context, launch.outside, launch.outside_bottom, launch.outside_bytes, true);
  __builtin_unreachable();
}
inline void record(launch_state& launch, raw_fault f) {
  const gpu_thread& t = *launch.running;
  f.block = coordinates_of(launch.block_index);
  f.thread = coordinates_of(t.index);
  f.has_thread = true;
  launch.faults.push_back(std::move(f));
  if (launch.faults.size() >= launch.settings->most_faults) stop(launch);
}
[[noreturn]] inline void stop_with(launch_state& launch, fault_kind kind, const position& at, std::string text,
                                   std::uintptr_t address = 0) {
  raw_fault f;
  f.kind = kind;
  f.place = site_of(at);
  f.address = address;
  f.text = std::move(text);
  record(launch, std::move(f));
  stop(launch);
}

}  // namespace detail
}  // namespace gyre_simt
