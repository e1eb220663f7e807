#include "scheduler.hpp"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

namespace gyre_simt::detail {

std::uint64_t next_random(std::uint64_t& state) {  // xorshift64
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

// The queue: threads first, ..., first + count - 1 in the order of the settings.
void enqueue(launch_state& launch, unsigned first, unsigned count) {
  unsigned* const queue = launch.queue.data();
  const thread_order order = launch.settings->order;
  launch.queue_position = 0;
  launch.queue_length = count;
  for (unsigned i = 0; i < count; ++i) queue[i] = first + (order == thread_order::reverse ? count - 1 - i : i);
  if (order != thread_order::random) return;
  for (unsigned i = count; i > 1; --i) std::swap(queue[i - 1], queue[next_random(launch.random) % i]);
}

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

// Who waits where: one line for each run of threads that do the same.
std::string waiting_threads(const launch_state& launch) {
  std::ostringstream text;
  const auto same = [](const gpu_thread& a, const gpu_thread& b) {
    if (a.state != b.state) return false;
    if (a.state == thread_state::exited) return true;
    return a.at == b.at && (a.state != thread_state::at_warp || a.request.mask == b.request.mask);
  };
  int shown = 0;
  for (std::size_t i = 0, end = 0; i < launch.threads.size() && shown < 6; i = end, ++shown) {
    const gpu_thread& t = launch.threads[i];
    for (end = i + 1; end < launch.threads.size() && same(t, launch.threads[end]); ++end) {
    }
    text << (shown == 0 ? "" : "; ") << "threads " << i << " to " << end - 1;
    if (t.state == thread_state::exited) {
      text << " have ended";
    } else {
      text << (t.state == thread_state::at_barrier ? " wait at the barrier of line " : " wait at ");
      if (t.state == thread_state::at_warp)
        text << t.request.operation->name << " with mask " << hexadecimal(t.request.mask) << " of line ";
      text << t.at.line << " column " << t.at.column;
    }
  }
  return text.str();
}

// Blames the thread `number`, which waits.
[[noreturn]] void stop_waiting(launch_state& launch, unsigned number, fault_kind kind, std::string what) {
  gpu_thread* const running = launch.running;
  gpu_thread& blamed = launch.threads[number];
  raw_fault f;
  f.kind = kind;
  f.place = site_of(blamed.at);
  f.text = std::move(what);
  f.text += ": " + waiting_threads(launch);
  launch.running = &blamed;
  record(launch, std::move(f));
  launch.running = running;
  stop(launch);
}

// Completes one operation of a warp, if all of some mask have come.
bool complete_warp(launch_state& launch, unsigned warp) {
  if (launch.at_warp[warp] == 0) return false;
  const unsigned first = warp * 32, size = static_cast<unsigned>(launch.threads.size());
  gpu_thread* const lanes = launch.threads.data() + first;
  const unsigned count = (std::min)(32u, size - first);
  bool any = false;
  for (unsigned i = 0; i < count; ++i) {
    if (lanes[i].state != thread_state::at_warp) continue;
    const warp_request& wanted = lanes[i].request;
    unsigned present = 0;
    bool ready = true;
    for (unsigned l = 0; l < count; ++l) {
      if ((wanted.mask >> l & 1u) == 0) continue;
      present |= 1u << l;
      if (lanes[l].state == thread_state::exited)
        stop_waiting(launch, first + i, fault_kind::exited_barrier,
                     std::string(wanted.operation->name) + " names lane " + std::to_string(l) + ", which has ended");
      ready = ready && lanes[l].state == thread_state::at_warp && lanes[l].request.mask == wanted.mask &&
              lanes[l].request.operation == wanted.operation;
    }
    if (!ready) continue;
    for (unsigned l = 0; l < count; ++l)
      if ((present >> l & 1u) != 0 && (lanes[l].request.width != wanted.width || lanes[l].request.bytes != wanted.bytes))
        stop_waiting(launch, first + l, fault_kind::wrong_mask,
                     std::string(wanted.operation->name) + ": lanes of one mask give different widths or types");
    ++launch.counts->warp_operations;
    if (wanted.operation->finish != nullptr) wanted.operation->finish(launch, lanes, present);
    if (launch.settings->count_accesses) warp_synchronised(launch, warp);
    if (wanted.operation->orders_memory && launch.order != nullptr) launch.order->meet(warp, present);
    for (unsigned l = 0; l < count; ++l)
      if ((present >> l & 1u) != 0) lanes[l].state = thread_state::ready, --launch.at_warp[warp];
    any = true;
  }
  return any;
}

// All threads wait at one barrier of the block, or that is a fault.
void complete_barrier(launch_state& launch) {
  const gpu_thread* first = nullptr;
  for (const gpu_thread& t : launch.threads) {
    if (t.state == thread_state::exited) continue;
    if (t.state == thread_state::at_warp)
      stop_waiting(launch, t.number, fault_kind::deadlock,
                   std::string(t.request.operation->name) + " waits for lanes that wait elsewhere");
    if (first == nullptr) first = &t;
    if (!(first->at == t.at))
      stop_waiting(launch, t.number, fault_kind::divergent_barrier, "threads of a block wait at different barriers");
  }
  if (launch.alive != launch.threads.size())
    stop_waiting(launch, first->number, fault_kind::exited_barrier,
                 "a barrier of the block, which all of its threads must reach, is reached after some have ended");
  launch.predicates = {0, static_cast<int>(launch.threads.size())};
  for (gpu_thread& t : launch.threads) {
    launch.predicates.held += t.predicate != 0;
    t.state = thread_state::ready;
  }
  ++launch.counts->barriers;
  if (launch.settings->count_accesses)
    for (unsigned w = 0; w * 32 < launch.threads.size(); ++w) warp_synchronised(launch, w);
  if (launch.order != nullptr) launch.order->barrier();
  enqueue(launch, 0, static_cast<unsigned>(launch.threads.size()));
}

// The thread to run now, or null when all have ended.
gpu_thread* next_thread(launch_state& launch) {
  for (;;) {
    gpu_thread* const threads = launch.threads.data();
    const unsigned* const queue = launch.queue.data();
    while (launch.queue_position < launch.queue_length) {
      gpu_thread* const t = threads + queue[launch.queue_position];
      if (t->state == thread_state::ready) return t;
      ++launch.queue_position;
    }
    if (launch.alive == 0) return nullptr;
    // One warp at a time runs ahead until it blocks again: the largest distance between warps that barriers allow.
    const unsigned size = static_cast<unsigned>(launch.threads.size()), warps = (size + 31) / 32;
    const thread_order order = launch.settings->order;
    const unsigned start = order == thread_order::random ? static_cast<unsigned>(next_random(launch.random) % warps) : 0;
    bool any = false;
    for (unsigned k = 0; k < warps && !any; ++k) {
      const unsigned warp = order == thread_order::reverse ? warps - 1 - k : (start + k) % warps;
      any = complete_warp(launch, warp);
      if (any) enqueue(launch, warp * 32, (std::min)(32u, size - warp * 32));
    }
    if (!any) complete_barrier(launch);
  }
}

void resume(launch_state& launch, gpu_thread& to) {
  launch.running = &to;
  threadIdx = to.index;
}

// The running thread waits; returns when it may go on.
void wait(launch_state& launch, thread_state state, const position& at) {
  gpu_thread& me = *launch.running;
  me.state = state;
  me.at = at;
  if (state == thread_state::at_warp) ++launch.at_warp[me.number / 32];
  gpu_thread* const next = next_thread(launch);
  if (next != &me) {
    ++launch.counts->switches;
    resume(launch, *next);
    change(me.context, next->context, next->context.stack, launch.stacks.stack_bytes(), false);
  }
}

// Where every fiber starts.
GYRE_SIMT_ENGINE void run_thread() {
  launch_state& launch = *current_launch;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  if (__sanitizer_finish_switch_fiber != nullptr) __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (!launch.entered) launch.outside_bottom = bottom, launch.outside_bytes = bytes;
  launch.entered = true;
  gyre_simt_hook::current = launch.observed ? &launch.observer : nullptr;
  try {
    launch.body(launch.arguments);
  } catch (...) {
    gyre_simt_hook::current = nullptr;
    launch.thrown = std::current_exception();
    launch.stopped = true;
  }
  gyre_simt_hook::current = nullptr;
  gpu_thread& me = *launch.running;
  me.state = thread_state::exited;
  --launch.alive;
  gpu_thread* const next = launch.stopped ? nullptr : next_thread(launch);
  if (next != nullptr) {
    ++launch.counts->switches;
    resume(launch, *next);
    change(me.context, next->context, next->context.stack, launch.stacks.stack_bytes(), true);
  } else {
    launch.running = nullptr;
    change(me.context, launch.outside, launch.outside_bottom, launch.outside_bytes, true);
  }
  __builtin_trap();
}

}  // namespace gyre_simt::detail
