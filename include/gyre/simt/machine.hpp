// A simulated GPU: its memory, how it runs launches, and what it found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gyre/simt/cost.hpp>
#include <gyre/simt/fault.hpp>
#include <gyre/simt/memory.hpp>
#include <gyre/simt/options.hpp>
#include <gyre/simt/vector_types.hpp>

namespace gyre_simt {

/// Counts of what ran.
struct statistics {
  std::uint64_t blocks = 0, threads = 0, switches = 0, barriers = 0, warp_operations = 0;
  std::uint64_t accesses = 0;  // of instrumented kernels
};

namespace detail {
struct machine_state;
}

/// Runs kernels on the thread that launches them. A pointer to it is the stream of its launches; they are complete when launch
/// returns. One thread at a time may use a machine; different machines are independent.
class machine {
 public:
  explicit machine(const options& o = {});
  ~machine();
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;

  options settings;  // may be changed between launches

  /// Device memory for `count` elements, filled with garbage.
  template <class T>
  device_array<T> allocate(std::size_t count, std::string name = "array") {
    return device_array<T>(memory(), count, std::move(name));
  }
  /// What kernels may touch. While no object is registered, addresses outside of shared memory are not checked.
  memory_table& memory();

  /// All faults of the launches so far.
  const std::vector<fault>& faults() const;
  void clear_faults();
  const statistics& counts() const;
  /// What accesses cost, by kernel and source line, if options::count_accesses was set. Empties the counters.
  std::vector<access_cost> take_costs();
  /// Whether this program's kernels can be watched access by access: it was linked with gyre::simt_race.
  static bool watches_accesses();

  /// Runs body(arguments) once per thread of the window of the grid, and returns the faults. `kernel` names it in reports.
  std::vector<fault> run(const void* kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes, std::size_t parameter_bytes,
                         void (*body)(const void*), const void* arguments);

 private:
  std::unique_ptr<detail::machine_state> state_;
};

}  // namespace gyre_simt
