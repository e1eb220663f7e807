// Operands of the operations on rows: copies, embedding, norms, gates, rotary encoding, loss, initial states.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <type_traits>

#include <gyre/parity/signature.hpp>

GYRE_BEGIN
namespace parity {

template <>
struct signature<operation::fill> {
  template <class V, class T>
  static auto map(V& v, matrix_view<T> y, std::type_identity_t<T> value) {
    return std::tuple{v.output("y", y), v.scalar(value)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.fill(a...);
  }
};

template <>
struct signature<operation::copy> {
  template <class V, class X, class T>
  static auto map(V& v, matrix_view<const X> x, matrix_view<T> y) {
    return std::tuple{v.input("x", x), v.output("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.copy(a...);
  }
};

template <>
struct signature<operation::add> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> x, matrix_view<T> y) {
    return std::tuple{v.input("x", x), v.updated("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.add(a...);
  }
};

template <>
struct signature<operation::add_scaled> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> x, const T* factor, matrix_view<T> y) {
    return std::tuple{v.input("x", x), v.input("factor", factor, 1), v.updated("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.add_scaled(a...);
  }
};

template <>
struct signature<operation::add_scaled_backward> {
  template <class V, class T, class G>
  static auto map(V& v, matrix_view<const T> x, const T* factor, matrix_view<const T> dy, matrix_view<T> dx, G* dfactor,
                  G* workspace) {
    return std::tuple{v.input("x", x),
                      v.input("factor", factor, 1),
                      v.input("dy", dy),
                      v.updated("dx", dx),
                      v.updated("dfactor", dfactor, 1),
                      v.workspace(workspace, V::backend::add_scaled_backward_workspace(x.rows))};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.add_scaled_backward(a...);
  }
};

template <>
struct signature<operation::gather> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> x, std::span<const index> from, matrix_view<T> y) {
    return std::tuple{v.input("x", x), v.host("from", from), v.output("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.gather(a...);
  }
};

template <>
struct signature<operation::embed> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> table, std::span<const token> ids, double scale, matrix_view<T> y) {
    return std::tuple{v.input("table", table), v.host("ids", ids), scale, v.output("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.embed(a...);
  }
};

template <>
struct signature<operation::embed_backward> {
  template <class V, class T, class G>
  static auto map(V& v, matrix_view<const T> dy, std::span<const token> ids, double scale, matrix_view<G> dtable) {
    return std::tuple{v.input("dy", dy), v.host("ids", ids), scale, v.updated("dtable", dtable)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.embed_backward(a...);
  }
};

template <>
struct signature<operation::rms_norm> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> x, const T* gain, double eps, matrix_view<T> y, S* rstd) {
    return std::tuple{v.input("x", x), v.input("gain", gain, x.cols), eps, v.output("y", y), v.output("rstd", rstd, x.rows)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.rms_norm(a...);
  }
};

template <>
struct signature<operation::add_rms_norm> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> x, matrix_view<const T> f, const T* gain, double eps, matrix_view<T> sum,
                  matrix_view<T> y, S* rstd) {
    return std::tuple{v.input("x", x),      v.input("f", f),  v.input("gain", gain, x.cols), eps,
                      v.output("sum", sum), v.output("y", y), v.output("rstd", rstd, x.rows)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.add_rms_norm(a...);
  }
};

template <>
struct signature<operation::rms_norm_backward> {
  template <class V, class T, class S, class G>
  static auto map(V& v, matrix_view<const T> x, const T* gain, const S* rstd, matrix_view<const T> dy, matrix_view<T> dx,
                  G* dgain, G* workspace) {
    return std::tuple{v.input("x", x),
                      v.input("gain", gain, x.cols),
                      v.input("rstd", rstd, x.rows),
                      v.input("dy", dy),
                      v.updated("dx", dx),
                      v.updated("dgain", dgain, x.cols),
                      v.workspace(workspace, dgain != nullptr ? V::backend::rms_norm_backward_workspace(x.rows, x.cols) : 0)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.rms_norm_backward(a...);
  }
};

template <>
struct signature<operation::gated_silu> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> h, matrix_view<T> a) {
    return std::tuple{v.input("h", h), v.output("a", a)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.gated_silu(a...);
  }
};

template <>
struct signature<operation::gated_silu_backward> {
  template <class V, class T>
  static auto map(V& v, matrix_view<const T> h, matrix_view<const T> da, matrix_view<T> dh) {
    return std::tuple{v.input("h", h), v.input("da", da), v.output("dh", dh)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.gated_silu_backward(a...);
  }
};

template <>
struct signature<operation::rotary> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<T> x, const std::type_identity_t<T>* bias, std::span<const std::int32_t> positions,
                  const S* table, rotary_shape shape) {
    return std::tuple{v.updated("x", x), v.input("bias", bias, x.cols), v.host("positions", positions),
                      v.input("table", table, detail::table_size(positions, shape)), shape};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.rotary(a...);
  }
};

template <>
struct signature<operation::rotary_backward> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<T> dx, std::span<const std::int32_t> positions, const S* table, rotary_shape shape) {
    return std::tuple{v.updated("dx", dx), v.host("positions", positions),
                      v.input("table", table, detail::table_size(positions, shape)), shape};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.rotary_backward(a...);
  }
};

template <>
struct signature<operation::column_sum> {
  template <class V, class T, class G>
  static auto map(V& v, matrix_view<const T> x, G* sum, G* workspace) {
    return std::tuple{v.input("x", x), v.updated("sum", sum, x.cols),
                      v.workspace(workspace, V::backend::column_sum_workspace(x.rows, x.cols))};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.column_sum(a...);
  }
};

template <>
struct signature<operation::row_change> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<const T> x, matrix_view<const T> before, S* change) {
    return std::tuple{v.input("x", x), v.input("before", before), v.output("change", change, 2 * x.rows)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.row_change(a...);
  }
};

template <>
struct signature<operation::cross_entropy> {
  template <class V, class T, class S>
  static auto map(V& v, matrix_view<T> logits, std::span<const token> targets, std::type_identity_t<S> scale, S* losses,
                  bool gradient) {
    return std::tuple{v.updated("logits", logits), v.host("targets", targets), v.scalar(scale),
                      v.output("losses", losses, logits.rows), gradient};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.cross_entropy(a...);
  }
};

template <>
struct signature<operation::sum> {
  template <class V, class S>
  static auto map(V& v, const S* x, index count, S* total) {
    return std::tuple{v.input("x", x, count), count, v.output("total", total, 1)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.sum(a...);
  }
};

template <>
struct signature<operation::random_normal> {
  template <class V, class T>
  static auto map(V& v, matrix_view<T> y, const batch_layout& rows, state_key key, double sigma, bool truncated) {
    return std::tuple{v.output("y", y), std::cref(rows), key, sigma, truncated};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.random_normal(a...);
  }
};

template <>
struct signature<operation::standardise> {
  template <class V, class T>
  static auto map(V& v, matrix_view<T> y) {
    return std::tuple{v.updated("y", y)};
  }
  template <class B, class... A>
  static auto call(B& b, const A&... a) {
    return b.standardise(a...);
  }
};

}  // namespace parity
GYRE_END
