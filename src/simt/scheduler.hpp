// Which thread of a block runs next, and when a barrier or warp operation is complete.
#pragma once

#include <cstdint>
#include <string>

#include "launch_state.hpp"

namespace gyre_simt::detail {

std::uint64_t next_random(std::uint64_t& state);
std::string hexadecimal(std::uint64_t value);

// The queue: threads first, ..., first + count - 1 in the order of the settings.
void enqueue(launch_state& launch, unsigned first, unsigned count);
// The thread to run now, or null when all have ended.
gpu_thread* next_thread(launch_state& launch);
void resume(launch_state& launch, gpu_thread& to);
// The running thread waits; returns when it may go on.
void wait(launch_state& launch, thread_state state, const position& at);
// Where every fiber starts.
void run_thread();
// Ends the launch with a fault of thread `number`, which waits.
[[noreturn]] void stop_waiting(launch_state& launch, unsigned number, fault_kind kind, std::string what);

}  // namespace gyre_simt::detail
