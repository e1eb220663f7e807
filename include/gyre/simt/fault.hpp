// What the interpreter finds wrong.
#pragma once

#include <cstdint>
#include <string>

namespace gyre_simt {

enum class fault_kind {
  out_of_bounds,       // an address in no object of the device, or in freed memory
  misaligned,          // an address that does not suit the access
  race,                // two accesses without an order between them, at least one of them a plain write
  unwritten_shared,    // a read of shared memory that nothing wrote
  missing_async_wait,  // a read of memory that an asynchronous copy may not have reached
  divergent_barrier,   // threads of a block wait at different barriers
  exited_barrier,      // a barrier or warp operation waits for threads that have ended
  deadlock,            // lanes of a warp wait for each other at different operations
  wrong_mask,          // a lane calls a warp operation whose mask leaves it out, or lanes give different arguments
  inactive_lane,       // a shuffle reads a lane that does not take part
  launch_limit,        // a launch that the architecture refuses
  exception            // a kernel threw
};

constexpr const char* name_of(fault_kind kind) {
  constexpr const char* names[] = {"out of bounds",      "misaligned",        "race",           "unwritten shared memory",
                                   "missing async wait", "divergent barrier", "exited barrier", "deadlock",
                                   "wrong mask",         "inactive lane",     "launch limit",   "exception"};
  return names[static_cast<int>(kind)];
}

/// A place in a kernel's source. Without debug information the file is empty and `code` says where in the program.
struct source_place {
  std::string file;
  unsigned line = 0, column = 0;
  std::uintptr_t code = 0;
};

struct coordinates {
  unsigned x = 0, y = 0, z = 0;
};

/// One thing found. `other` parts belong to the other access of a race and are empty otherwise.
struct fault {
  fault_kind kind{};
  std::string kernel;
  source_place place, other_place;
  coordinates block, thread, other_block, other_thread;
  std::uintptr_t address = 0;
  std::string text;  // all of it in words, with what was expected
};

}  // namespace gyre_simt
