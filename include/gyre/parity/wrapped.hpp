// Backends around a backend: every operation goes through one function.
#pragma once

#include <concepts>
#include <utility>

#include <gyre/ops/contract.hpp>
#include <gyre/parity/signatures.hpp>

GYRE_BEGIN
namespace parity {

/// A backend B whose operations all call `Derived::run<Op>(arguments...)`; memory, prepared weights and workspaces are B's.
template <class Derived, class B>
class wrapped : public B {
 public:
  explicit wrapped(B device) : B(std::move(device)) {}

  B& inner() { return *this; }

  template <class... A>
  void fill(A&&... a) {
    run<operation::fill>(a...);
  }
  template <class... A>
  void copy(A&&... a) {
    run<operation::copy>(a...);
  }
  template <class... A>
  void add(A&&... a) {
    run<operation::add>(a...);
  }
  template <class... A>
  void add_scaled(A&&... a) {
    run<operation::add_scaled>(a...);
  }
  template <class... A>
  void add_scaled_backward(A&&... a) {
    run<operation::add_scaled_backward>(a...);
  }
  template <class... A>
  void gather(A&&... a) {
    run<operation::gather>(a...);
  }
  template <class... A>
  void embed(A&&... a) {
    run<operation::embed>(a...);
  }
  template <class... A>
  void embed_backward(A&&... a) {
    run<operation::embed_backward>(a...);
  }
  template <class... A>
  void rms_norm(A&&... a) {
    run<operation::rms_norm>(a...);
  }
  template <class... A>
  void add_rms_norm(A&&... a) {
    run<operation::add_rms_norm>(a...);
  }
  template <class... A>
  void rms_norm_backward(A&&... a) {
    run<operation::rms_norm_backward>(a...);
  }
  template <class... A>
  void product(A&&... a) {
    run<operation::product>(a...);
  }
  template <class... A>
  void product_input_gradient(A&&... a) {
    run<operation::product_input_gradient>(a...);
  }
  template <class... A>
  void product_weight_gradient(A&&... a) {
    run<operation::product_weight_gradient>(a...);
  }
  template <class... A>
  void grouped_product(A&&... a) {
    run<operation::grouped_product>(a...);
  }
  template <class... A>
  void grouped_product_input_gradient(A&&... a) {
    run<operation::grouped_product_input_gradient>(a...);
  }
  template <class... A>
  void grouped_product_weight_gradient(A&&... a) {
    run<operation::grouped_product_weight_gradient>(a...);
  }
  template <class... A>
  void gated_silu(A&&... a) {
    run<operation::gated_silu>(a...);
  }
  template <class... A>
  void gated_silu_backward(A&&... a) {
    run<operation::gated_silu_backward>(a...);
  }
  template <class... A>
  void rotary(A&&... a) {
    run<operation::rotary>(a...);
  }
  template <class... A>
  void rotary_backward(A&&... a) {
    run<operation::rotary_backward>(a...);
  }
  template <class... A>
  void column_sum(A&&... a) {
    run<operation::column_sum>(a...);
  }
  template <class... A>
  void attention(A&&... a) {
    run<operation::attention>(a...);
  }
  template <class... A>
  void attention_backward(A&&... a) {
    run<operation::attention_backward>(a...);
  }
  template <class... A>
  void cache_append(A&&... a) {
    run<operation::cache_append>(a...);
  }
  template <class... A>
  void cached_attention(A&&... a) {
    run<operation::cached_attention>(a...);
  }
  template <class... A>
  void cache_extend(A&&... a) {
    run<operation::cache_extend>(a...);
  }
  template <class... A>
  void rotate(A&&... a) {
    run<operation::rotate>(a...);
  }
  template <class... A>
  void depth_attention(A&&... a) {
    run<operation::depth_attention>(a...);
  }
  template <class... A>
  void depth_attention_backward(A&&... a) {
    run<operation::depth_attention_backward>(a...);
  }
  template <class... A>
  void route(A&&... a) {
    run<operation::route>(a...);
  }
  template <class... A>
  void route_backward(A&&... a) {
    run<operation::route_backward>(a...);
  }
  template <class... A>
  void group_pairs(A&&... a) {
    run<operation::group_pairs>(a...);
  }
  template <class... A>
  void spread(A&&... a) {
    run<operation::spread>(a...);
  }
  template <class... A>
  void collect(A&&... a) {
    run<operation::collect>(a...);
  }
  template <class... A>
  void collect_backward(A&&... a) {
    run<operation::collect_backward>(a...);
  }
  template <class... A>
  void router_loss(A&&... a) {
    run<operation::router_loss>(a...);
  }
  template <class... A>
  void router_loss_backward(A&&... a) {
    run<operation::router_loss_backward>(a...);
  }
  template <class... A>
  void row_change(A&&... a) {
    run<operation::row_change>(a...);
  }
  template <class... A>
  void sample(A&&... a) {
    run<operation::sample>(a...);
  }
  template <class... A>
  void cross_entropy(A&&... a) {
    run<operation::cross_entropy>(a...);
  }
  template <class... A>
  void random_normal(A&&... a) {
    run<operation::random_normal>(a...);
  }
  template <class... A>
  void standardise(A&&... a) {
    run<operation::standardise>(a...);
  }
  template <class... A>
  void combine(A&&... a) {
    run<operation::combine>(a...);
  }
  template <class... A>
  void adamw_update(A&&... a) {
    run<operation::adamw_update>(a...);
  }
  template <class... A>
  void clipped_atan2_update(A&&... a) {
    run<operation::clipped_atan2_update>(a...);
  }
  template <class... A>
  void sum(A&&... a) {
    run<operation::sum>(a...);
  }
  template <class... A>
  void squared_norm(A&&... a) {
    run<operation::squared_norm>(a...);
  }
  template <class... A>
  void unit(A&&... a) {
    run<operation::unit>(a...);
  }

 private:
  template <operation Op, class... A>
  void run(const A&... a) {
    static_cast<Derived&>(*this).template operate<Op>(a...);
  }
};

/// A backend with one operation done by `Kernel`, which takes the arguments of the contract, with the backend before them if it
/// wants to have it.
template <operation Op, class B, class Kernel>
class replaced : public wrapped<replaced<Op, B, Kernel>, B> {
 public:
  replaced(B device, Kernel kernel) : wrapped<replaced, B>(std::move(device)), kernel_(std::move(kernel)) {}

  template <operation Which, class... A>
  void operate(const A&... a) {
    if constexpr (Which != Op)
      signature<Which>::call(this->inner(), a...);
    else if constexpr (std::invocable<Kernel&, B&, const A&...>)
      kernel_(this->inner(), a...);
    else
      kernel_(a...);
  }

 private:
  Kernel kernel_;
};

/// `device` with a kernel of the user's own for one operation:
///   auto mine = replace<operation::rms_norm>(cpu(), [](auto x, auto gain, double eps, auto y, auto rstd) { ... });
template <operation Op, class B, class Kernel>
replaced<Op, B, Kernel> replace(B device, Kernel kernel) {
  return {std::move(device), std::move(kernel)};
}

}  // namespace parity
GYRE_END
