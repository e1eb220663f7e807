// Muon: momentum whose matrices are orthogonalised (Jordan et al. 2024), for runs that retrofit a trained model.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <gyre/train/adamw.hpp>

GYRE_BEGIN

/// recurrent_depth, section 2. Matrices: m = momentum m + g;  u = g + momentum m (Nesterov);  five Newton-Schulz steps
/// X <- a X + (b A + c A^2) X, A = X X^T, (a, b, c) = (3.4445, -4.7750, 2.0315), on X = u / ||u||_F;
/// w = (1 - lr_t decay) w - lr_t 0.2 sqrt(max(rows, columns)) X. The parts of a fused matrix (q | k | v,
/// gate | up) are matrices of their own. Embedding, head, gains and biases are left to `others`, which has a learning rate of
/// its own.
struct muon {
  static constexpr std::string_view name = "muon";
  double lr = 1e-3;
  double momentum = 0.95;
  double decay = 0;  // times the learning rate of the step
  adamw others{.lr = 5e-5};

  static constexpr int moments(role kind) { return is_matrix(kind) ? 1 : adamw::moments(kind); }
  static constexpr index workspace(const tensor_entry& entry) {
    if (!is_matrix(entry.kind)) return adamw::workspace(entry);
    index least = 0;  // the most that min(rows, columns) of a part can be
    for (const index rows : part_rows(entry)) least = (std::max)(least, (std::min)(rows, entry.shape.cols()));
    return 2 * entry.shape.size() + 2 * least * least;
  }

  void validate() const {
    detail::check_learning_rate(name, lr);
    detail::check_decay_factor(name, "momentum", momentum);
    require(decay >= 0 && std::isfinite(decay), name, ": decay is ", decay, "; it must be finite and not negative");
    others.validate();
  }

  template <class B, class T>
  void update(B& device, const tensor_update<T>& tensor, const update_step& step) const {
    if (!is_matrix(tensor.entry.kind)) return others.update(device, tensor, step);
    T *m = tensor.moment(0), *u = tensor.workspace, *spare = u + tensor.size();
    const T scale(static_cast<T>(step.gradient_scale)), mu(static_cast<T>(momentum));
    device.combine(scale, tensor.gradient, mu, m, tensor.size());
    device.combine(scale, tensor.gradient, T(0), u, tensor.size());
    device.combine(mu, m, T(1), u, tensor.size());
    const double rate = step.rate * lr;
    const index cols = tensor.entry.shape.cols();
    index at = 0;  // scalars before this part
    for (const index rows : part_rows(tensor.entry)) {
      if (rows == 0) break;
      const index size = rows * cols;
      const double shrink = decays(tensor.entry.kind) ? rate * decay : 0;
      const double factor = -rate * 0.2 * std::sqrt(static_cast<double>((std::max)(rows, cols)));
      const T* direction = orthogonalise(device, u + at, spare + at, rows, cols, spare + tensor.size(), tensor.sum);
      if (shrink != 0) device.combine(static_cast<T>(-shrink), tensor.weight + at, T(1), tensor.weight + at, size);
      device.combine(static_cast<T>(factor), direction, T(1), tensor.weight + at, size);
      at += size;
    }
  }

 private:
  static constexpr std::array<double, 3> polynomial{3.4445, -4.7750, 2.0315};
  static constexpr int iterations = 5;

  /// Rows of each part; zeros stand for no part.
  static constexpr std::array<index, 4> part_rows(const tensor_entry& entry) {
    if (entry.parts.rows[0] > 0) return entry.parts.rows;
    return {entry.shape.matrix_rows()};
  }

  /// Brings the singular values of x (rows, cols) near 1; x = 0 has no direction and stays 0. Returns x or y, whichever holds the
  /// result. `products` holds two square matrices of the smaller size.
  template <class B, class T>
  static const T* orthogonalise(B& device, T* x, T* y, index rows, index cols, T* products, double* squares) {
    using matrix = weight_matrix<T, typename B::template prepared<T>>;
    const index size = rows * cols, least = (std::min)(rows, cols);
    const auto [a, b, c] = polynomial;
    device.squared_norm(static_cast<const T*>(x), size, squares);
    device.unit(static_cast<const T*>(x), static_cast<const double*>(squares), y, size);
    const matrix_view<T> gram(products, least, least), sum(products + least * least, least, least);
    const matrix_view<const T> gram_read = gram, sum_read = sum;
    std::swap(x, y);
    for (int i = 0; i < iterations; ++i) {
      const matrix_view<T> next(y, rows, cols);
      const matrix_view<const T> now(x, rows, cols);
      if (rows <= cols) {
        device.product(now, matrix{now}, gram, false);  // X X^T
      } else {
        device.fill(gram, T(0));
        device.product_weight_gradient(now, now, gram);  // X^T X, the smaller of the two
      }
      device.product(gram_read, matrix{gram_read}, sum, false);  // A A^T = A^2
      device.combine(static_cast<T>(b), gram_read.data, static_cast<T>(c), sum.data, gram.size());
      device.combine(static_cast<T>(a), now.data, T(0), next.data, size);
      if (rows <= cols)
        device.product_input_gradient(sum_read, matrix{now}, next, true);  // (b A + c A^2) X
      else
        device.product(now, matrix{sum_read}, next, true);  // X (b A + c A^2), which is symmetric
      std::swap(x, y);
    }
    return x;
  }
};

GYRE_END
