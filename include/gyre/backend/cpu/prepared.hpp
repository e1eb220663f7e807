// Packed copies of a model's weights, made at the first use after the weights changed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <gyre/backend/cpu/packed.hpp>
#include <gyre/backend/cpu/pool.hpp>
#include <gyre/core/parameters.hpp>

GYRE_BEGIN

namespace detail {

/// One packed copy, and of which state of the weights it is. Panels are what kernels read: float where the weights are bf16.
template <class T>
struct packed_copy {
  using panels = packed_matrix<compute_t<T>>;
  matrix_view<const T> raw;  // (out, in)
  bool transposed = false;   // raw^T is packed
  panels matrix;
  std::atomic<std::uint64_t> version{0};  // never packed: 0

  void pack(index task) {
    if (transposed)
      matrix.pack_transposed(raw, task);
    else
      matrix.pack(raw, task);
  }
};

/// The packed form of every matrix of a parameter table that products multiply: w^T for y = x w^T and, for training, w for
/// dx = dy w. Fused matrices whose column blocks are multiplied one by one are packed block by block.
///
/// A copy is made when a product asks for it, so what no product asks for (an expert without tokens) costs nothing; its memory
/// is not even touched. Any number of threads may ask at the same time, as long as nobody refreshes meanwhile.
template <class T>
class packed_weights {
 public:
  using copy = packed_copy<T>;
  using C = compute_t<T>;
  using panels = packed_matrix<C>;

  /// `flat`: where the table's tensors lie, for as long as this object is used. Packs nothing.
  template <class B>
  GYRE_COLD packed_weights(B&, const T* flat, std::span<const tensor_entry> table, bool backward)
      : all_(std::make_unique<state>()) {
    const bool untied = std::any_of(table.begin(), table.end(), [](const tensor_entry& e) { return e.kind == role::head; });
    std::vector<place> places;
    index scalars = 0;
    for (const tensor_entry& e : table) {
      // An embedding is multiplied only where it is the head too.
      if (!is_matrix(e.kind) && e.kind != role::head && e.kind != role::expert_key && (e.kind != role::embedding || untied))
        continue;
      const index out = e.shape.matrix_rows(), in = e.shape.cols(), blocks = (std::max)(index{1}, e.parts.columns);
      for (index b = 0; b < blocks; ++b) {
        place w{e.offset + b * (in / blocks), out, in / blocks, in, scalars, 0};
        scalars += round_up_to_line(panels::size(w.in, w.out));
        w.backward_at = scalars;
        if (backward) scalars += round_up_to_line(panels::size(w.out, w.in));
        places.push_back(w);
      }
    }
    std::sort(places.begin(), places.end(), [](const place& a, const place& b) { return a.offset < b.offset; });
    all_->memory = allocate_aligned(sizeof(C) * static_cast<std::size_t>(scalars));
    all_->weights = std::vector<weight>(places.size());
    C* const memory = reinterpret_cast<C*>(all_->memory.get());
    for (std::size_t n = 0; n < places.size(); ++n) {
      const place& at = places[n];
      weight& w = all_->weights[n];
      w.forward.raw = w.backward.raw = {flat + at.offset, at.out, at.in, at.stride};
      w.forward.transposed = true;
      w.forward.matrix = panels(memory + at.forward_at, at.in, at.out);
      if (backward) w.backward.matrix = panels(memory + at.backward_at, at.out, at.in);
    }
    backward_ = backward;
  }

  /// The weights have changed: every copy is out of date.
  template <class B>
  void refresh(B&) {
    ++all_->version;
  }

  /// The right factor of y = x w^T, packed now if it was not, or null where `w` is not in the table.
  const panels* forward(thread_pool& pool, matrix_view<const T> w) const { return packed(pool, find(w, false)); }
  /// The right factor of dx = dy w, likewise.
  const panels* backward(thread_pool& pool, matrix_view<const T> w) const { return packed(pool, find(w, true)); }

  /// The copy for products forward or backward, as old as it may be, or null where `w` is not in the table.
  copy* find(matrix_view<const T> w, bool backward) const {
    if (backward && !backward_) return nullptr;
    std::vector<weight>& weights = all_->weights;
    const auto at = std::lower_bound(weights.begin(), weights.end(), w.data, [](const weight& x, const T* wanted) {
      return std::less<const T*>()(x.forward.raw.data, wanted);
    });
    if (at == weights.end()) return nullptr;
    const matrix_view<const T>& known = at->forward.raw;
    if (known.data != w.data || known.rows != w.rows || known.cols != w.cols) return nullptr;
    return backward ? &at->backward : &at->forward;
  }
  bool up_to_date(const copy& c) const { return c.version.load(std::memory_order_acquire) == all_->version; }

  /// Brings the copies of(0) .. of(count - 1) up to date, together. They are of one size, and each is named once.
  template <class Of>
  void pack(thread_pool& pool, index count, Of of) const {
    index current = 0;
    while (current < count && up_to_date(of(current))) ++current;
    if (current == count) return;
    // The pool's turn first: whoever holds the lock never waits for the pool.
    thread_pool::exclusive turn(pool);
    const std::lock_guard lock(all_->packing);
    const index parts = of(0).matrix.pack_tasks();
    pool.run(count * parts, [&](index task, int) {
      copy& c = of(task / parts);
      if (!up_to_date(c)) c.pack(task % parts);
    });
    for (index i = 0; i < count; ++i) of(i).version.store(all_->version, std::memory_order_release);
  }

 private:
  struct place {
    index offset, out, in, stride;
    index forward_at, backward_at;  // in the packed memory
  };
  struct weight {
    copy forward, backward;
  };
  // Atomic numbers and locks do not move, but networks do.
  struct state {
    std::vector<weight> weights;  // by address
    aligned_memory memory;
    std::uint64_t version = 1;
    std::mutex packing;
  };

  static constexpr index round_up_to_line(index scalars) {
    constexpr index line = static_cast<index>(cache_line / sizeof(C));
    return (scalars + line - 1) / line * line;
  }

  const panels* packed(thread_pool& pool, copy* c) const {
    if (c == nullptr) return nullptr;
    if (!up_to_date(*c)) pack(pool, 1, [c](index) -> copy& { return *c; });
    return &c->matrix;
  }

  std::unique_ptr<state> all_;
  bool backward_ = false;
};

}  // namespace detail

GYRE_END
