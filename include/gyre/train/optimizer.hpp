// Optimisers: rules that update one tensor at a time, and the state that a rule keeps in a flat buffer beside the parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include <gyre/core/error.hpp>
#include <gyre/core/parameters.hpp>
#include <gyre/model/network.hpp>
#include <gyre/ops/contract.hpp>

GYRE_BEGIN

/// What an update knows of the training.
struct update_step {
  std::uint64_t number = 1;   // t, from 1
  double rate = 1;            // lr_t / lr, from the schedule; every learning rate of the rule is multiplied by it
  double gradient_scale = 1;  // multiplies the gradient before anything else: one over the tokens, and the norm clip
};

/// One tensor during an update.
template <class T>
struct tensor_update {
  const tensor_entry& entry;
  T* weight;
  const T* gradient;
  T* moments;    // (rule.moments(entry.kind), size)
  T* workspace;  // (rule.workspace(entry)), arbitrary contents
  double* sum;   // (1) likewise: room for what an operation adds up

  index size() const { return entry.shape.size(); }
  T* moment(int which) const { return moments + which * size(); }
};

/// A rule is an aggregate of hyper-parameters. It keeps `moments(role)` scalars, zero at first, for each scalar of a tensor.
///   name                               what checkpoints call it
///   lr                                 the learning rate that reports show
///   update(device, tensor_update<T>, update_step)     changes weight and moments
///   validate()                         throws for numbers that make no rule
template <class O>
concept optimizer = std::copyable<O> && requires(const O& rule, role kind, const tensor_entry& entry) {
  { O::name } -> std::convertible_to<std::string_view>;
  { O::moments(kind) } -> std::same_as<int>;
  { O::workspace(entry) } -> std::same_as<index>;
  { rule.lr } -> std::convertible_to<double>;
  rule.validate();
};

namespace detail {

inline void check_learning_rate(std::string_view rule, double lr) {
  require(lr >= 0 && std::isfinite(lr), rule, ": lr is ", lr, "; it must be finite and not negative");
}
inline void check_decay_factor(std::string_view rule, std::string_view field, double value) {
  require(value >= 0 && value < 1, rule, ": ", field, " is ", value, "; it lies in [0, 1)");
}
inline void check_positive(std::string_view rule, std::string_view field, double value) {
  require(value > 0 && std::isfinite(value), rule, ": ", field, " is ", value, "; it must be positive and finite");
}

/// Where each tensor's moments begin, in scalars; the last entry is the size of the buffer.
template <class Rule, class Table>
consteval auto moment_offsets() {
  std::array<index, Table::entries.size() + 1> at{};
  for (std::size_t n = 0; n < Table::entries.size(); ++n)
    at[n + 1] = at[n] + Rule::moments(Table::entries[n].kind) * Table::entries[n].shape.size();
  return at;
}
template <class Rule, class Table>
consteval index most_workspace() {
  index most = 0;
  for (const tensor_entry& entry : Table::entries) most = (std::max)(most, Rule::workspace(entry));
  return most;
}

}  // namespace detail

/// The moments of all tensors, in the order of the parameters, and how many updates they have seen. Where a network holds its
/// parameters in less than the scalar of gradients, also these parameters in full, the masters: updates act on them, and the
/// network gets them rounded.
template <optimizer Rule, class Network>
class optimizer_state {
 public:
  using parameter = typename Network::scalar;
  using scalar = gradient_t<typename Network::precision_type>;  // of masters and moments
  using backend_type = typename Network::backend_type;
  using table = typename Network::table;
  static constexpr auto offsets = detail::moment_offsets<Rule, table>();
  static constexpr bool keeps_masters = !std::is_same_v<parameter, scalar>;
  static_assert(updating_backend<backend_type, scalar>, "optimizer_state: this backend has no operations for updates");

  explicit optimizer_state(const backend_type& device)
      : device_(device),
        moments_(device, static_cast<std::size_t>(offsets.back()) * sizeof(scalar)),
        workspace_(device, static_cast<std::size_t>(detail::most_workspace<Rule, table>()) * sizeof(scalar)),
        sum_(device, sizeof(double)),
        masters_(device, keeps_masters ? static_cast<std::size_t>(table::scalars) * sizeof(scalar) : 0) {
    device_.fill(matrix_view<scalar>(moments_.template as<scalar>(), 1, offsets.back()), scalar(0));
  }

  std::uint64_t updates() const { return updates_; }
  void set_updates(std::uint64_t count) { updates_ = count; }
  /// Moment `which` of tensor number `n`, as flat as the tensor, for the host: waits for what has been called.
  std::span<scalar> moment(int n, int which) const {
    backend_type device = device_;
    device.finish();
    const std::size_t at = static_cast<std::size_t>(n);
    const index size = table::entries[at].shape.size();
    return {moments_.template as<scalar>() + offsets[at] + which * size, static_cast<std::size_t>(size)};
  }

  /// Makes masters from the network's parameters. The first update does it too.
  void open(Network& net) {
    opened_ = true;
    if constexpr (keeps_masters)
      device_.copy(matrix_view<const parameter>(net.device_values(), 1, table::scalars),
                   matrix_view<scalar>(masters_.template as<scalar>(), 1, table::scalars));
  }
  /// The parameters that updates act on, flat, for the host: waits for what has been called. Call round() after changing them.
  /// Throws where masters are kept and have not been made: see open().
  std::span<scalar> masters(Network& net) const {
    check_opened();
    backend_type device = device_;
    device.finish();
    return {device_masters(net), static_cast<std::size_t>(table::scalars)};
  }
  /// Gives the network the masters, rounded. The caller refreshes it. Throws as masters() does.
  void round(Network& net) {
    check_opened();
    if constexpr (keeps_masters)
      device_.copy(matrix_view<const scalar>(masters_.template as<scalar>(), 1, table::scalars),
                   matrix_view<parameter>(net.device_values(), 1, table::scalars));
  }

  /// One update of all parameters; `gradient` is as flat as they are. The caller refreshes the network.
  void apply(const Rule& rule, Network& net, const scalar* gradient, double rate, double gradient_scale) {
    if (!opened_) open(net);
    scalar* const weights = device_masters(net);
    const update_step step{updates_ + 1, rate, gradient_scale};
    for (std::size_t n = 0; n < table::entries.size(); ++n) {
      const tensor_entry& entry = table::entries[n];
      if (!learns(entry.kind)) continue;
      rule.update(device_,
                  tensor_update<scalar>{entry, weights + entry.offset, gradient + entry.offset,
                                        moments_.template as<scalar>() + offsets[n], workspace_.template as<scalar>(),
                                        sum_.template as<double>()},
                  step);
    }
    round(net);
    ++updates_;
  }

 private:
  void check_opened() const {
    require(opened_ || !keeps_masters, "optimizer_state: there are no masters yet; open() makes them from the network");
  }
  scalar* device_masters(Network& net) const {
    if constexpr (keeps_masters)
      return masters_.template as<scalar>();
    else
      return net.device_values();
  }

  backend_type device_;
  device_buffer<backend_type> moments_, workspace_, sum_, masters_;
  bool opened_ = false;
  std::uint64_t updates_ = 0;
};

GYRE_END
