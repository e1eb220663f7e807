// What kernels call besides barriers and warp operations: shared memory, fences, atomics, asynchronous copies.
#include <cstring>
#include <gyre/simt/runtime.hpp>
#include <string>

#include "bounds.hpp"
#include "checker.hpp"
#include "scheduler.hpp"
#include "shared_memory.hpp"

namespace gyre_simt::detail {
namespace {

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Must be allowed and aligned, whether or not accesses are watched.
void must_be_accessible(launch_state& launch, const void* p, std::size_t bytes, std::size_t alignment, const char* what,
                        const position& at) {
  const std::uintptr_t address = address_of(p);
  if (address % alignment != 0)
    stop_with(launch, fault_kind::misaligned, at,
              std::string(what) + " of " + std::to_string(bytes) + " bytes needs an address that is a multiple of " +
                  std::to_string(alignment),
              address);
  std::string problem;
  object_finder finder;
  locate(launch, finder, address, bytes, problem);
  if (problem.empty()) return;
  problem.insert(0, std::string(what) + " of " + std::to_string(bytes) + " bytes at ");
  stop_with(launch, fault_kind::out_of_bounds, at, std::move(problem), address);  // the fiber is left: nothing may own memory
}

void watch(launch_state& launch, const void* p, std::size_t bytes, unsigned flags, const position& at) {
  if (launch.checker != nullptr) launch.checker->access(launch, address_of(p), bytes, flags, launch.sites->number_of(at));
}

}  // namespace

void warp_synchronised(launch_state& launch, unsigned warp) {
  if (launch.checker != nullptr) launch.checker->costs.synchronised(warp);
}

void fence() {
  const inside in;
  launch_state& launch = launch_in_progress("__threadfence");
  if (launch.order != nullptr) launch.order->fence(launch.running->number);
}

void before_atomic(void* address, std::size_t bytes, const char* name, const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress(name);
  must_be_accessible(launch, address, bytes, bytes, name, at);
  watch(launch, address, bytes, gyre_simt_hook::write | gyre_simt_hook::atomic, at);
  if (launch.order != nullptr) launch.order->atomic(launch.running->number, address_of(address));
}

void before_warp_read(const void* address, std::size_t bytes, std::size_t alignment, const char* name, const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress(name);
  must_be_accessible(launch, address, bytes, alignment, name, at);
  watch(launch, address, bytes, gyre_simt_hook::read, at);
}

void* shared_at(const void* key, const char* name, std::size_t bytes, std::size_t alignment, const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress("GYRE_SHARED");
  for (const shared_piece& o : launch.shared)
    if (o.key == key) return reinterpret_cast<void*>(o.begin);
  const std::size_t all = round_up(launch.shared_bytes, alignment) + bytes, most = launch.settings->target.shared_per_block;
  const std::size_t fixed = all - launch.dynamic_bytes;
  if (fixed > common_limits::static_shared || all > most || launch.shared.size() == most_shared_objects)
    stop_with(launch, fault_kind::launch_limit, at,
              "with '" + std::string(name) + "' a block declares " + std::to_string(fixed) + " bytes of static and " +
                  std::to_string(launch.dynamic_bytes) + " of dynamic shared memory in " +
                  std::to_string(launch.shared.size() + 1) + " objects; expected at most " +
                  std::to_string(common_limits::static_shared) + " static, " + std::to_string(most) + " together on " +
                  launch.settings->target.name + " and " + std::to_string(most_shared_objects) + " objects");
  return reserve_shared(launch, key, name, bytes, alignment);
}

void* dynamic_shared(const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress("GYRE_DYNAMIC_SHARED");
  if (launch.dynamic == nullptr)
    stop_with(launch, fault_kind::launch_limit, at,
              "the kernel uses dynamic shared memory, but was launched with 0 bytes of it");
  return launch.dynamic;
}

// The copy may land at any time until it is awaited: the destination holds garbage from now on, the data come with the wait.
void copy_async(void* to, const void* from, std::size_t bytes, std::size_t zeroed, const position& at) {
  const inside in;
  constexpr const char* name = "__pipeline_memcpy_async";
  launch_state& launch = launch_in_progress(name);
  if ((bytes != 4 && bytes != 8 && bytes != 16) || zeroed > bytes)
    stop_with(launch, fault_kind::misaligned, at,
              std::string(name) + " copies 4, 8 or 16 bytes, of which at most all are zeroed, not " + std::to_string(bytes) +
                  " and " + std::to_string(zeroed));
  must_be_accessible(launch, to, bytes, bytes, name, at);
  if (address_of(to) - address_of(launch.shared_pages.data()) >= launch.shared_pages.size())
    stop_with(launch, fault_kind::out_of_bounds, at, std::string(name) + " copies to shared memory only", address_of(to));
  watch(launch, to, bytes, gyre_simt_hook::write, at);
  if (zeroed < bytes) {
    must_be_accessible(launch, from, bytes - zeroed, bytes, name, at);
    watch(launch, from, bytes - zeroed, gyre_simt_hook::read, at);
  }
  if (launch.checker != nullptr) launch.checker->async_issued(launch, address_of(to), bytes);
  std::memset(to, garbage, bytes);
  launch.running->copies.push_back({static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from),
                                    static_cast<unsigned>(bytes), static_cast<unsigned>(zeroed), at});
}

void commit_async() {
  const inside in;
  launch_state& launch = launch_in_progress("__pipeline_commit");
  launch.running->groups.push_back(launch.running->copies.size());
}

// All groups but the `newest` last ones have landed.
void await_async(std::size_t newest, const position& at) {
  const inside in;
  launch_state& launch = launch_in_progress("__pipeline_wait_prior");
  gpu_thread& me = *launch.running;
  if (me.groups.size() <= newest) return;
  const std::size_t groups = me.groups.size() - newest, copies = me.groups[groups - 1];
  for (std::size_t i = 0; i < copies; ++i) {
    const async_copy& c = me.copies[i];
    if (launch.checker != nullptr) launch.checker->async_landed(launch, address_of(c.to), c.bytes);
    watch(launch, c.to, c.bytes, gyre_simt_hook::write, at);
    std::memcpy(c.to, c.from, c.bytes - c.zeroed);
    std::memset(c.to + (c.bytes - c.zeroed), 0, c.zeroed);
  }
  me.copies.erase(me.copies.begin(), me.copies.begin() + static_cast<std::ptrdiff_t>(copies));
  me.groups.erase(me.groups.begin(), me.groups.begin() + static_cast<std::ptrdiff_t>(groups));
  for (std::size_t& g : me.groups) g -= copies;
}

}  // namespace gyre_simt::detail
