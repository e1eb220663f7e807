// Stands in for the CUDA runtime and cuBLAS at link time: the functions that the `cuda` backend calls, with memory of the host beneath
// them. Kernels are counted and not run. The host's side of the backend is all there, and the address sanitizer watches it: memory of
// the device is poisoned for the host, managed memory is while work is under way. Any call can be made to fail, and what CUDA forbids
// is refused and written down.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stand_in {

enum class kind { device, managed, pinned };

struct block {
  kind of = kind::device;
  std::size_t bytes = 0;
};

struct machine {
  // What it is.
  int devices = 2, capability = 90;                            // capability: ten times major, plus minor
  std::size_t total = std::size_t{1} << 30;                    // bytes of a device's memory
  bool has_driver = true, has_code = true, concurrent = true;  // concurrent: the host may touch managed memory meanwhile
  int compiled_for = 80;                                       // what the kernels were

  // Which call fails: the one of this number; none if negative.
  long fails = -1, calls = 0;
  std::string failed;  // the name of the call that did

  // What it holds.
  std::map<std::byte*, block> memory;
  std::set<void*> streams, events, blas, graphs;
  int current = 0;  // device of the one thread
  bool pending = false, capturing = false, capture_broken = false;

  std::vector<std::string> refused, kernels;
  long products = 0, copies = 0;
  long allocations = 0, waits = 0;  // waits: for a stream or a device, not for an event

  std::size_t held() const { return memory.size() + streams.size() + events.size() + blas.size() + graphs.size(); }
};

machine& now();
/// A fresh machine; it must hold nothing.
void restart();

/// Whether the call named so is the one that fails.
bool fails(const char* call);
/// Writes down what was not allowed.
void refuse(const std::string& what);
/// Work goes to the device; until it is awaited, the host keeps off managed memory.
void enqueue(const void* stream, const char* call);
/// The device of a stream.
int device_of(const void* stream);
/// Whether all of these bytes are memory that the device can use.
bool usable(const void* from, std::size_t bytes);

/// For the machine's own accesses.
class opened_memory {
 public:
  opened_memory();
  ~opened_memory();
};

}  // namespace stand_in
