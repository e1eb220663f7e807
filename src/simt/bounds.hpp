// Whether a kernel may touch an address, and what lies there.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <gyre/simt/runtime.hpp>

#include "launch_state.hpp"

namespace gyre_simt {
namespace detail {

enum class memory_space { local, shared, global, other };

// What lies at an address. `other`: constants of the program, or host memory that no table speaks of.
struct target {
  memory_space space = memory_space::other;
  std::uintptr_t begin = 0, end = 0;  // of the object
  region* home = nullptr;             // of global memory
  const char* name = "";
};

// Constants and static data of the program and its libraries: kernels may read them.
inline bool in_program(std::uintptr_t address) {
  const auto holds = [](dl_phdr_info* info, std::size_t, void* wanted) {
    const std::uintptr_t at = *static_cast<const std::uintptr_t*>(wanted);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& segment = info->dlpi_phdr[i];
      if (segment.p_type == PT_LOAD && at - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz) return 1;
    }
    return 0;
  };
  return dl_iterate_phdr(holds, &address) != 0;
}

inline bool is_built_in(std::uintptr_t address) {
  const auto holds = [address](const void* variable, std::size_t bytes) {
    return address - reinterpret_cast<std::uintptr_t>(variable) < bytes;
  };
  return holds(&threadIdx, sizeof(threadIdx)) || holds(&blockIdx, sizeof(blockIdx)) || holds(&blockDim, sizeof(blockDim)) ||
         holds(&gridDim, sizeof(gridDim));
}

// Finds objects of a machine quickly: most accesses go to one of the last few.
class object_finder {
 public:
  GYRE_SIMT_ENGINE object* find(memory_books& table, std::uintptr_t address) {
    if (version_ != table.version) {
      for (object*& o : recent_) o = nullptr;
      version_ = table.version;
    }
    for (object* o : recent_)
      if (o != nullptr && address - o->begin < o->end - o->begin) return o;
    object* const found = table.find(address);
    if (found != nullptr && !found->freed) recent_[turn_++ % size] = found;
    return found;
  }

 private:
  static constexpr unsigned size = 6;
  object* recent_[size] = {};
  unsigned turn_ = 0;
  std::uint64_t version_ = ~std::uint64_t{0};
};

inline std::string out_of(const char* name, std::uintptr_t begin, std::uintptr_t end, std::uintptr_t address) {
  std::ostringstream text;
  if (address >= end)
    text << address - end << " bytes behind the end of '";
  else if (address < begin)
    text << begin - address << " bytes before the beginning of '";
  else
    text << end - address << " bytes before the end of '";
  text << name << "' of " << end - begin << " bytes";
  return text.str();
}

// Where `bytes` bytes at `address` lie. If the kernel may not touch them, `problem` says why.
GYRE_SIMT_ENGINE inline target locate(launch_state& launch, object_finder& finder, std::uintptr_t address, std::size_t bytes,
                                      std::string& problem) {
  target found;
  const std::uintptr_t stack = reinterpret_cast<std::uintptr_t>(launch.running->context.stack);
  if (address - stack < launch.stacks.stack_bytes()) {
    found.space = memory_space::local;
    return found;
  }
  const std::uintptr_t shared = reinterpret_cast<std::uintptr_t>(launch.shared_pages.data());
  if (address - shared < launch.shared_pages.size()) {
    found.space = memory_space::shared;
    const shared_piece* nearest = nullptr;
    for (const shared_piece& o : launch.shared) {
      if (address - o.begin < o.bytes || (nearest == nullptr || o.begin <= address)) nearest = &o;
      if (address - o.begin < o.bytes) break;
    }
    if (nearest == nullptr) {
      problem = "shared memory of which none is declared";
      return found;
    }
    found.begin = nearest->begin;
    found.end = nearest->begin + nearest->bytes;
    found.name = nearest->name;
    if (address < found.begin || address + bytes > found.end)
      problem = "shared memory " + out_of(found.name, found.begin, found.end, address);
    return found;
  }
  if (launch.memory->objects.empty()) return found;
  if (const object* o = finder.find(*launch.memory, address); o != nullptr) {
    found = {memory_space::global, o->begin, o->end, o->home, o->name.c_str()};
    if (o->freed)
      problem = "memory of '" + o->name + "', which was freed";
    else if (address + bytes > o->end)
      problem = "global memory " + out_of(found.name, found.begin, found.end, address);
    return found;
  }
  if (address - reinterpret_cast<std::uintptr_t>(launch.arguments) < launch.parameter_bytes) return found;
  if (is_built_in(address) || in_program(address)) return found;
  if (const object* o = launch.memory->before(address); o != nullptr)
    problem = "global memory " + out_of(o->name.c_str(), o->begin, o->end, address);
  else if (address - launch.stacks.begin() < launch.stacks.bytes())
    problem = "local memory of another thread";
  else if (address < 4096)
    problem = "a null pointer";
  else
    problem = "memory that is not the device's";
  return found;
}

}  // namespace detail
}  // namespace gyre_simt
