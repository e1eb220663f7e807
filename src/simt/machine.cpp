#include <gyre/simt/machine.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "checker.hpp"
#include "clocks.hpp"
#include "launch_state.hpp"
#include "report.hpp"
#include "scheduler.hpp"
#include "shared_memory.hpp"
#include "sites.hpp"

namespace gyre_simt {
namespace detail {

struct machine_state {
  const options* settings = nullptr;
  memory_table memory;
  statistics counts;
  launch_state state;
  site_table sites;
  clocks order;
  memory_checker checker;
  std::vector<fault> faults;
  std::map<std::pair<const void*, std::uint64_t>, cost_counter::total> costs;  // by kernel and the counter's key

  bool within_limits(dim3 grid, dim3 block, std::size_t dynamic_bytes, std::size_t parameter_bytes);
  void run(dim3 grid, dim3 block, std::size_t dynamic_bytes, std::size_t parameter_bytes, void (*body)(const void*),
           const void* arguments);
  void run_blocks();
  void run_block(std::uint64_t linear);
  void check_gaps();
  std::vector<fault> finish(const void* kernel);
  std::vector<access_cost> take_costs();
};

namespace {

// Whichever way a launch ends, its thread is not in a launch any more.
class launch_scope {
 public:
  launch_scope(launch_state& state, dim3 grid, dim3 block) : grid_(gridDim), block_(blockDim) {
    if (current_launch != nullptr) throw std::logic_error("simt: a kernel cannot launch another one");
    current_launch = &state;
    gridDim = grid;
    blockDim = block;
  }
  ~launch_scope() {
    current_launch = nullptr;
    gyre_simt_hook::current = nullptr;
    gridDim = grid_;
    blockDim = block_;
    threadIdx = blockIdx = {0, 0, 0};
  }
  launch_scope(const launch_scope&) = delete;

 private:
  dim3 grid_, block_;
};

// Calls of the compiler's instrumentation end here.
void observe(void* state, const void* address, std::size_t bytes, unsigned flags, const void* code) {
  launch_state& launch = *static_cast<launch_state*>(state);
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t stack = reinterpret_cast<std::uintptr_t>(launch.running->context.stack);
  if (at - stack < launch.stacks.stack_bytes()) return;  // the thread's own, and by far the most accesses
  launch.checker->access(launch, at, bytes, flags, launch.sites->number_of(code));
}
void observe_misaligned(void* state, const void* address, std::size_t alignment, const char* file, unsigned line,
                        unsigned column) {
  launch_state& launch = *static_cast<launch_state*>(state);
  position at;
  at.file = file;
  at.line = line;
  at.column = column;
  stop_with(launch, fault_kind::misaligned, at,
            "an access needs an address that is a multiple of " + std::to_string(alignment) + ", not " +
                hexadecimal(reinterpret_cast<std::uintptr_t>(address)),
            reinterpret_cast<std::uintptr_t>(address));
}

// The blocks of a window in the order of the settings: start, start + step, ... modulo count, which meets every one.
struct block_order {
  std::uint64_t count, step, at;
  std::uint64_t next() { return std::exchange(at, (at + step) % count); }
};
block_order order_of_blocks(thread_order order, std::uint64_t count, std::uint64_t& random) {
  if (order == thread_order::forward || count == 1) return {count, 1, 0};
  if (order == thread_order::reverse) return {count, count - 1, count - 1};
  std::uint64_t step = 1 + next_random(random) % (count - 1);
  while (std::gcd(step, count) != 1) ++step;  // count + 1 at the latest
  return {count, step, next_random(random) % count};
}

}  // namespace

bool machine_state::within_limits(dim3 grid, dim3 block, std::size_t dynamic_bytes, std::size_t parameter_bytes) {
  using limits = common_limits;
  const architecture& target = settings->target;
  std::ostringstream text;
  const auto limit = [&](const char* what, std::uint64_t is, std::uint64_t most) {
    if (is > most) text << (text.tellp() == 0 ? "" : ", ") << what << " of " << is << ", at most " << most;
  };
  limit("block.x", block.x, limits::block_x);
  limit("block.y", block.y, limits::block_y);
  limit("block.z", block.z, limits::block_z);
  limit("threads a block", std::uint64_t{block.x} * block.y * block.z, limits::threads_per_block);
  limit("grid.x", grid.x, limits::grid_x);
  limit("grid.y", grid.y, limits::grid_y);
  limit("grid.z", grid.z, limits::grid_z);
  limit("bytes of dynamic shared memory", dynamic_bytes, target.shared_per_block);
  limit("bytes of parameters", parameter_bytes, limits::parameters);
  if (block.x == 0 || block.y == 0 || block.z == 0) text << (text.tellp() == 0 ? "" : ", ") << "a block without threads";
  if (text.tellp() == 0) return true;
  raw_fault f;
  f.kind = fault_kind::launch_limit;
  f.text = std::string(target.name) + " refuses the launch: " + text.str();
  state.faults.push_back(std::move(f));
  return false;
}

void machine_state::run(dim3 grid, dim3 block, std::size_t dynamic_bytes, std::size_t parameter_bytes,
                        void (*body)(const void*), const void* arguments) {
  state.faults.clear();
  state.thrown = nullptr;
  state.stopped = false;
  state.block_indices.clear();
  if (!within_limits(grid, block, dynamic_bytes, parameter_bytes)) return;
  if (std::uint64_t{grid.x} * grid.y * grid.z == 0) return;

  const launch_scope scope(state, grid, block);
  launch_state& s = state;
  const bool instrumented = gyre_simt_instrumentation != nullptr;
  s.settings = settings;
  s.memory = &memory.books();
  s.counts = &counts;
  s.sites = &sites;
  s.observed = instrumented;
  s.checker = instrumented ? &checker : nullptr;
  s.order = instrumented && settings->races ? &order : nullptr;
  s.observer = {&s, observe, observe_misaligned};
  s.grid = grid;
  s.block = block;
  s.dynamic_bytes = dynamic_bytes;
  s.body = body;
  s.arguments = arguments;
  s.parameter_bytes = parameter_bytes;
  s.random = settings->seed * 0x9e3779b97f4a7c15u | 1u;
  s.entered = false;
  s.running = nullptr;
  const unsigned threads = block.x * block.y * block.z;
  s.threads.resize(threads);
  s.queue.resize(threads);
  s.stacks.reserve(threads, settings->stack_bytes);
  if (s.shared_pages.data() == nullptr) s.shared_pages = mapping(shared_page_bytes);
  for (unsigned i = 0; i < threads; ++i) {
    s.threads[i].context.stack = s.stacks.stack(i);
    s.threads[i].number = i;
    s.threads[i].index = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
  }
  s.launch_generation = ++s.shared_generation;
  checker.start_launch();
  order.start_launch();
  run_blocks();
  if (s.stopped) s.stacks.forget_frames();
  check_gaps();
}

void machine_state::run_blocks() {
  const dim3 grid = state.grid;
  const std::uint64_t all = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint64_t first = (std::min)(settings->blocks.first, all), count = (std::min)(settings->blocks.count, all - first);
  if (count == 0) return;
  block_order blocks = order_of_blocks(settings->order, count, state.random);
  for (std::uint64_t i = 0; i < count && !state.stopped; ++i) run_block(first + blocks.next());
}

void machine_state::run_block(std::uint64_t linear) {
  launch_state& s = state;
  s.block_index = {static_cast<unsigned>(linear % s.grid.x), static_cast<unsigned>(linear / s.grid.x % s.grid.y),
                   static_cast<unsigned>(linear / s.grid.x / s.grid.y)};
  blockIdx = s.block_index;
  if (s.order != nullptr) {
    s.block_indices.push_back(s.block_index);
    order.start_block(static_cast<unsigned>(s.threads.size()));
  }
  renew_shared(s);
  for (gpu_thread& t : s.threads) {
    t.state = thread_state::ready;
    t.copies.clear();
    t.groups.clear();
    prepare(t.context, s.stacks.stack_bytes(), run_thread);
  }
  s.alive = static_cast<unsigned>(s.threads.size());
  std::fill(std::begin(s.at_warp), std::end(s.at_warp), 0u);
  enqueue(s, 0, s.alive);
  ++counts.blocks;
  counts.threads += s.alive;
  gpu_thread& first = *next_thread(s);
  resume(s, first);
  change(s.outside, first.context, first.context.stack, s.stacks.stack_bytes(), false);
  if (settings->count_accesses) checker.costs.end_of_block();
}

// A changed gap shows a stray write, even where accesses are not watched.
void machine_state::check_gaps() {
  if (__asan_poison_memory_region != nullptr) return;  // which reports the access itself
  // The first changed byte, or 0; each change is told once.
  const auto changed = [](std::uintptr_t begin, std::size_t bytes) -> std::uintptr_t {
    unsigned char* const at = reinterpret_cast<unsigned char*>(begin);
    const unsigned char* const found = std::find_if(at, at + bytes, [](unsigned char c) { return c != gap_pattern; });
    if (found == at + bytes) return 0;
    memory_table::fill_gap(at, bytes);
    return reinterpret_cast<std::uintptr_t>(found);
  };
  for (const auto& [begin, o] : memory.books().objects) {
    if (!o.guarded) continue;
    std::uintptr_t found = 0;
    if (o.freed) found = changed(o.begin, o.end - o.begin);
    if (found == 0) found = changed(o.end, (std::min)(gap_bytes, o.home->end - o.end));
    if (found == 0) found = changed(o.begin - gap_bytes, gap_bytes);
    if (found == 0) continue;
    raw_fault f;
    f.kind = fault_kind::out_of_bounds;
    f.address = found;
    f.text = (o.freed ? std::string("something was written into '" + o.name + "', which was freed")
                      : "something was written " + out_of(o.name.c_str(), o.begin, o.end, found)) +
             "; instrumented kernels (gyre::simt_race) name the line";
    state.faults.push_back(std::move(f));
  }
}

std::vector<fault> machine_state::finish(const void* kernel) {
  launch_state& s = state;
  for (const auto& [key, total] : checker.costs.totals) costs[{kernel, key}].add(total);
  checker.costs.totals.clear();
  if (s.faults.empty()) return {};
  symbol_book book;
  book.want(kernel);
  for (const raw_fault& f : s.faults) book.want(f.place), book.want(f.other_place);
  book.look_up();
  const std::string name = book.function_at(kernel);
  std::vector<fault> found;
  for (const raw_fault& f : s.faults) found.push_back(told(f, book, name));
  s.faults.clear();
  return found;
}

// Names are looked up once for all launches: it takes a second for a large program.
std::vector<access_cost> machine_state::take_costs() {
  symbol_book book;
  for (const auto& [at, total] : costs) book.want(at.first), book.want(sites[static_cast<std::uint32_t>(at.second >> 2)]);
  book.look_up();
  std::vector<access_cost> told;
  for (const auto& [at, total] : costs) {
    const source_place place = book.place_of(sites[static_cast<std::uint32_t>(at.second >> 2)]);
    add_cost(told, {book.function_at(at.first), place.file, place.line, total.shared, total.write, total.bytes, total.requests,
                    total.transfers, total.ideal});
  }
  costs.clear();
  return told;
}

}  // namespace detail

machine::machine(const options& o) : settings(o), state_(std::make_unique<detail::machine_state>()) {}
machine::~machine() = default;
memory_table& machine::memory() { return state_->memory; }
const std::vector<fault>& machine::faults() const { return state_->faults; }
void machine::clear_faults() { state_->faults.clear(); }
const statistics& machine::counts() const { return state_->counts; }
std::vector<access_cost> machine::take_costs() { return state_->take_costs(); }
bool machine::watches_accesses() { return gyre_simt_instrumentation != nullptr; }

std::vector<fault> machine::run(const void* kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes,
                                std::size_t parameter_bytes, void (*body)(const void*), const void* arguments) {
  detail::machine_state& s = *state_;
  s.settings = &settings;
  s.run(grid, block, dynamic_bytes, parameter_bytes, body, arguments);
  std::vector<fault> found = s.finish(kernel);
  s.faults.insert(s.faults.end(), found.begin(), found.end());
  if (s.state.thrown != nullptr) std::rethrow_exception(std::exchange(s.state.thrown, nullptr));
  return found;
}

}  // namespace gyre_simt
