#include <algorithm>
#include <cstring>
#include <gyre/simt/memory.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "memory_books.hpp"

namespace gyre_simt {
namespace {

std::uintptr_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// For sparse objects, whose regions are too large to be poisoned whole.
void mark_gaps(const detail::object& o, bool poisoned) {
  if (!o.guarded || o.end - o.begin <= detail::filled_bytes) return;
  for (const std::uintptr_t gap : {o.begin - detail::gap_bytes, o.end}) {
    const void* const at = reinterpret_cast<const void*>(gap);
    poisoned ? detail::poison(at, detail::gap_bytes) : detail::unpoison(at, detail::gap_bytes);
  }
}

}  // namespace

memory_table::memory_table() : books_(std::make_unique<detail::memory_books>()) {}
memory_table::~memory_table() = default;
bool memory_table::empty() const { return books_->objects.empty(); }

void memory_table::fill_gap(void* begin, std::size_t bytes) { std::memset(begin, detail::gap_pattern, bytes); }
void memory_table::fill_garbage(void* begin, std::size_t bytes) { std::memset(begin, detail::garbage, bytes); }

void memory_table::add_region(const void* begin, std::size_t bytes) {
  const std::uintptr_t at = address_of(begin);
  if (at % 4 != 0) throw std::logic_error("simt: a region of device memory must begin at a multiple of 4 bytes");
  auto& regions = books_->regions;
  const auto after = regions.upper_bound(at);
  const bool meets_next = after != regions.end() && after->second->begin < at + bytes;
  const bool meets_previous = after != regions.begin() && std::prev(after)->second->end > at;
  if (meets_next || meets_previous) throw std::logic_error("simt: a region of device memory overlaps another one");
  regions[at] = std::make_unique<detail::region>(detail::region{at, at + bytes, {}});
  detail::poison(begin, bytes);
  ++books_->version;
}

void memory_table::remove_region(const void* begin) {
  const std::uintptr_t at = address_of(begin);
  const auto found = books_->regions.find(at);
  if (found == books_->regions.end()) return;
  const std::uintptr_t end = found->second->end;
  detail::unpoison(begin, end - at);
  for (auto i = books_->objects.lower_bound(at); i != books_->objects.end() && i->first < end; ++i) mark_gaps(i->second, false);
  books_->objects.erase(books_->objects.lower_bound(at), books_->objects.lower_bound(end));
  books_->regions.erase(found);
  ++books_->version;
}

void memory_table::add_object(const void* begin, std::size_t bytes, std::string name, bool guarded) {
  const std::uintptr_t at = address_of(begin);
  detail::region* const home = books_->region_of(at);
  if (home == nullptr || at + bytes > home->end)
    throw std::logic_error("simt: object '" + name + "' lies outside of registered device memory");
  for (auto i = books_->first_that_ends_after(at);
       i != books_->objects.end() && i->second.begin < at + (std::max)(bytes, std::size_t{1});) {
    if (!i->second.freed) throw std::logic_error("simt: object '" + name + "' overlaps '" + i->second.name + "'");
    i = books_->objects.erase(i);
  }
  detail::unpoison(begin, bytes);
  mark_gaps(books_->objects[at] = {at, at + bytes, home, std::move(name), false, guarded}, true);
  ++books_->version;
}

void memory_table::free_object(const void* begin) {
  const auto found = books_->objects.find(address_of(begin));
  if (found == books_->objects.end()) return;
  found->second.freed = true;
  detail::poison(begin, found->second.end - found->second.begin);
  ++books_->version;
}

std::byte* detail::map_guarded(std::size_t bytes) {
  std::byte* const pages = mapping(bytes + 2 * gap_bytes).release();
  memory_table::fill_gap(pages, gap_bytes);
  memory_table::fill_gap(pages + gap_bytes + bytes, gap_bytes);
  if (bytes <= filled_bytes) memory_table::fill_garbage(pages + gap_bytes, bytes);
  return pages + gap_bytes;
}
void detail::unmap_guarded(std::byte* data, std::size_t bytes) { munmap(data - gap_bytes, bytes + 2 * gap_bytes); }

guarded_arena::guarded_arena(memory_table& table, std::size_t bytes)
    : table_(&table), data_(detail::mapping(bytes).release()), bytes_(bytes) {
  memory_table::fill_gap(data_, bytes);
  table.add_region(data_, bytes);
}
guarded_arena::~guarded_arena() {
  table_->remove_region(data_);
  munmap(data_, bytes_);
}

std::byte* guarded_arena::take_bytes(std::size_t bytes, std::string name) {
  const std::size_t begin = detail::round_up(top_ + detail::gap_bytes, 256);
  if (begin + bytes + detail::gap_bytes > bytes_) {
    std::ostringstream text;
    text << "simt: '" << name << "' of " << bytes << " bytes and its gap do not fit above " << begin << " of " << bytes_
         << " bytes of the arena";
    throw std::length_error(text.str());
  }
  std::byte* const at = data_ + begin;
  table_->add_object(at, bytes, std::move(name), true);
  memory_table::fill_garbage(at, bytes);
  live_.push_back({begin, top_});
  top_ = begin + bytes;
  return at;
}

void guarded_arena::release(std::size_t mark) {
  for (; live_.size() > mark; live_.pop_back()) {
    std::byte* const at = data_ + live_.back().begin;
    memory_table::fill_gap(at, top_ - live_.back().begin);
    table_->free_object(at);
    top_ = live_.back().top_before;
  }
}

}  // namespace gyre_simt
