// From what was found while a kernel ran to what is told: lines, names, sentences.
#pragma once

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "launch_state.hpp"
#include "symbols.hpp"
#include <gyre/simt/cost.hpp>
#include <gyre/simt/fault.hpp>

namespace gyre_simt {
namespace detail {

// The instruction before the address that a call returns to.
inline const void* call_of(const void* code) { return static_cast<const char*>(code) - 1; }

class symbol_book {
 public:
  void want(const void* code) {
    if (code != nullptr) wanted_.push_back(code);
  }
  void want(const site& s) {
    if (s.code != nullptr) want(call_of(s.code));
  }
  void look_up() { found_ = symbols_of(wanted_); }
  source_place place_of(const site& s) const {
    if (s.file != nullptr) return {s.file, s.line, s.column, 0};
    source_place place;
    place.code = reinterpret_cast<std::uintptr_t>(s.code);
    if (s.code == nullptr) return place;
    if (const auto i = found_.find(call_of(s.code)); i != found_.end())
      place.file = i->second.file, place.line = i->second.line;
    return place;
  }
  std::string function_at(const void* code) const {
    const auto i = found_.find(code);
    if (i != found_.end() && !i->second.function.empty()) return i->second.function;
    std::ostringstream text;
    text << "at " << code;
    return text.str();
  }

 private:
  std::vector<const void*> wanted_;
  std::map<const void*, symbol> found_;
};

inline std::string text_of(const coordinates& c) {
  return "(" + std::to_string(c.x) + ", " + std::to_string(c.y) + ", " + std::to_string(c.z) + ")";
}
inline std::string text_of(const source_place& p) {
  std::ostringstream text;
  if (!p.file.empty())
    text << p.file << ':' << p.line;
  else
    text << "code at 0x" << std::hex << p.code;
  if (p.column != 0) text << ':' << p.column;
  return text.str();
}

inline fault told(const raw_fault& raw, const symbol_book& book, const std::string& kernel) {
  fault f;
  f.kind = raw.kind;
  f.kernel = kernel;
  f.place = book.place_of(raw.place);
  f.block = raw.block;
  f.thread = raw.thread;
  f.address = raw.address;
  std::ostringstream text;
  text << "simt: " << name_of(raw.kind) << " in kernel " << kernel;
  if (raw.has_thread) text << " at " << text_of(f.place) << ", block " << text_of(f.block) << ", thread " << text_of(f.thread);
  text << ": " << raw.text;
  if (raw.address != 0) text << " [address 0x" << std::hex << raw.address << std::dec << "]";
  if (raw.has_other) {
    f.other_place = book.place_of(raw.other_place);
    f.other_block = raw.other_block;
    f.other_thread = raw.other_thread;
    text << "; the other: block " << text_of(f.other_block) << ", thread " << text_of(f.other_thread) << " at "
         << text_of(f.other_place);
  }
  f.text = text.str();
  return f;
}

// Adds `more` to costs of the same kernel, line and kind.
inline void add_cost(std::vector<access_cost>& costs, const access_cost& more) {
  for (access_cost& c : costs)
    if (std::tie(c.kernel, c.file, c.line, c.shared, c.write) ==
        std::tie(more.kernel, more.file, more.line, more.shared, more.write)) {
      c.bytes = (std::max)(c.bytes, more.bytes);
      c.requests += more.requests;
      c.transfers += more.transfers;
      c.ideal += more.ideal;
      return;
    }
  costs.push_back(more);
}

}  // namespace detail
}  // namespace gyre_simt
