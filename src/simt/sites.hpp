// Small numbers for the places of accesses, so that a shadow cell can remember them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <gyre/simt/position.hpp>

namespace gyre_simt {
namespace detail {

// An instrumented access is known by its code address, a call of the interpreter by its position.
struct site {
  const void* code = nullptr;
  const char* file = nullptr;
  unsigned line = 0, column = 0;
};

class site_table {
 public:
  std::uint32_t number_of(const void* code) {
    cached& slot = cache_[(reinterpret_cast<std::uintptr_t>(code) >> 1) % cache_size];
    if (slot.code == code) return slot.number;
    const auto [found, fresh] = by_code_.try_emplace(code, static_cast<std::uint32_t>(sites_.size()));
    if (fresh) sites_.push_back({code, nullptr, 0, 0});
    slot = {code, found->second};
    return found->second;
  }
  std::uint32_t number_of(const position& at) {
    for (const std::uint32_t i : called_)
      if (sites_[i].file == at.file && sites_[i].line == at.line && sites_[i].column == at.column) return i;
    called_.push_back(static_cast<std::uint32_t>(sites_.size()));
    sites_.push_back({nullptr, at.file, at.line, at.column});
    return called_.back();
  }
  const site& operator[](std::uint32_t i) const { return sites_[i]; }
  std::size_t size() const { return sites_.size(); }

 private:
  static constexpr std::size_t cache_size = 1024;
  struct cached {
    const void* code = nullptr;
    std::uint32_t number = 0;
  };
  cached cache_[cache_size];
  std::unordered_map<const void*, std::uint32_t> by_code_;
  std::vector<std::uint32_t> called_;
  std::vector<site> sites_;
};

}  // namespace detail
}  // namespace gyre_simt
