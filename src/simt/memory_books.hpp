// The table of what kernels may touch in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <gyre/simt/memory.hpp>

#include "mapping.hpp"

namespace gyre_simt::detail {

// A piece of memory whose accesses are watched as one: an allocation, or an arena with many objects inside.
struct region {
  std::uintptr_t begin, end;
  mapping shadow;  // the race detector's cells, made when first needed
};

struct object {
  std::uintptr_t begin, end;
  region* home;
  std::string name;
  bool freed, guarded;  // guarded: its gaps hold the pattern, and so does a freed one
};

struct memory_books {
  std::map<std::uintptr_t, std::unique_ptr<region>> regions;  // by their beginnings
  std::map<std::uintptr_t, object> objects;
  std::uint64_t version = 0;  // changes whenever regions or objects change

  std::map<std::uintptr_t, object>::iterator first_that_ends_after(std::uintptr_t address) {
    auto i = objects.upper_bound(address);
    if (i != objects.begin() && std::prev(i)->second.end > address) --i;
    return i;
  }
  // The object that holds `address`, freed or not, or null.
  object* find(std::uintptr_t address) {
    const auto i = first_that_ends_after(address);
    return i != objects.end() && i->second.begin <= address ? &i->second : nullptr;
  }
  // The last object that begins at or before `address`, if it lies in that object's region or just behind; or null.
  const object* before(std::uintptr_t address) const {
    auto i = objects.upper_bound(address);
    if (i == objects.begin()) return nullptr;
    --i;
    return address < i->second.home->end + gap_bytes ? &i->second : nullptr;
  }
  region* region_of(std::uintptr_t address) const {
    auto i = regions.upper_bound(address);
    if (i == regions.begin()) return nullptr;
    --i;
    return address < i->second->end ? i->second.get() : nullptr;
  }
};

}  // namespace gyre_simt::detail
