// Packed copies of a model's weights, made once for many products.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <gyre/backend/cpu/packed.hpp>
#include <gyre/core/parameters.hpp>

GYRE_BEGIN

namespace detail {

/// The packed form of every matrix of a parameter table that products multiply: w^T for y = x w^T and, for training, w for
/// dx = dy w. Fused matrices whose column blocks are multiplied one by one are packed block by block.
template <class T>
class packed_weights {
 public:
  /// `flat`: where the table's tensors lie, for as long as this object is used. Packs nothing yet: refresh does.
  template <class B>
  packed_weights(B&, const T* flat, std::span<const tensor_entry> table, bool backward) : flat_(flat) {
    const bool untied = std::any_of(table.begin(), table.end(), [](const tensor_entry& e) { return e.kind == role::head; });
    index scalars = 0;
    for (const tensor_entry& e : table) {
      // An embedding is multiplied only where it is the head too.
      if (!is_matrix(e.kind) && e.kind != role::head && e.kind != role::expert_key && (e.kind != role::embedding || untied))
        continue;
      const index out = e.shape.matrix_rows(), in = e.shape.cols(), blocks = (std::max)(index{1}, e.parts.columns);
      for (index b = 0; b < blocks; ++b) {
        weight w{e.offset + b * (in / blocks), out, in / blocks, in};
        w.forward_at = scalars;
        scalars += round_up_to_line(packed_matrix<T>::size(w.in, w.out));
        w.backward_at = scalars;
        if (backward) scalars += round_up_to_line(packed_matrix<T>::size(w.out, w.in));
        weights_.push_back(std::move(w));
      }
    }
    std::sort(weights_.begin(), weights_.end(), [](const weight& a, const weight& b) { return a.offset < b.offset; });
    memory_ = allocate_aligned(sizeof(T) * static_cast<std::size_t>(scalars));
    T* const memory = reinterpret_cast<T*>(memory_.get());
    for (weight& w : weights_) {
      w.forward = packed_matrix<T>(memory + w.forward_at, w.in, w.out);
      if (backward) w.backward = packed_matrix<T>(memory + w.backward_at, w.out, w.in);
    }
    backward_ = backward;
  }

  /// Packs every matrix anew.
  template <class B>
  void refresh(B& device) {
    for (weight& w : weights_) {
      const matrix_view<const T> raw(flat_ + w.offset, w.out, w.in, w.stride);
      w.forward.pack_transposed(device.pool(), raw);
      if (backward_) w.backward.pack(device.pool(), raw);
    }
  }

  /// The right factor of y = x w^T, or null where `w` is not in the table.
  const packed_matrix<T>* forward(matrix_view<const T> w) const {
    const weight* found = find(w);
    return found == nullptr ? nullptr : &found->forward;
  }
  /// The right factor of dx = dy w, or null.
  const packed_matrix<T>* backward(matrix_view<const T> w) const {
    const weight* found = backward_ ? find(w) : nullptr;
    return found == nullptr ? nullptr : &found->backward;
  }

 private:
  struct weight {
    index offset, out, in, stride;
    index forward_at = 0, backward_at = 0;  // in the packed memory
    packed_matrix<T> forward{}, backward{};
  };

  static constexpr index round_up_to_line(index scalars) {
    constexpr index line = static_cast<index>(cache_line / sizeof(T));
    return (scalars + line - 1) / line * line;
  }

  const weight* find(matrix_view<const T> w) const {
    const index offset = w.data - flat_;
    const auto at = std::lower_bound(weights_.begin(), weights_.end(), offset,
                                     [](const weight& x, index wanted) { return x.offset < wanted; });
    if (at == weights_.end() || at->offset != offset || at->out != w.rows || at->in != w.cols) return nullptr;
    return &*at;
  }

  const T* flat_;
  bool backward_ = false;
  std::vector<weight> weights_;  // by offset
  aligned_memory memory_;
};

}  // namespace detail

GYRE_END
