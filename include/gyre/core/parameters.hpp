// The parameter table: one constexpr list of every tensor's shape, place and role, in the order of the flat buffers.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/core/types.hpp>

GYRE_BEGIN

/// What a tensor does. Initialisation, weight decay and the choice of optimiser follow from the role.
enum class role : std::uint8_t {
  embedding,          // token table, also the head when tied
  head,               // untied output projection
  input_projection,   // from the residual stream: fused q/k/v, gate and up
  output_projection,  // back into the residual stream: attention and MLP output
  adapter,            // the injection's matrix
  gain,               // norm weights, and other factors that start at 1
  bias,
  expert_key,     // fixed keys of a router, one for each expert: a table of vectors like the embedding
  selection_bias  // of a router: state that the training's load balance moves; no gradient reaches it
};
constexpr bool is_matrix(role r) { return r == role::input_projection || r == role::output_projection || r == role::adapter; }
/// Weight decay applies to matrices and the embedding, never to gains, biases and the keys of experts.
constexpr bool decays(role r) { return is_matrix(r) || r == role::embedding || r == role::head; }
/// Whether a gradient moves it: what "parameters" of a model are counted by.
constexpr bool learns(role r) { return r != role::selection_bias; }

struct tensor_shape {
  std::array<index, 4> extent{};
  int rank = 0;

  constexpr tensor_shape() = default;
  constexpr tensor_shape(std::initializer_list<index> list) {
    for (index n : list) extent[static_cast<std::size_t>(rank++)] = n;
  }
  constexpr index size() const {
    index n = 1;
    for (int i = 0; i < rank; ++i) n *= extent[static_cast<std::size_t>(i)];
    return n;
  }
  /// As a matrix: the last extent is the input width, all before it are rows.
  constexpr index cols() const { return rank == 0 ? 1 : extent[static_cast<std::size_t>(rank - 1)]; }
  constexpr index matrix_rows() const { return cols() == 0 ? 0 : size() / cols(); }
  constexpr bool operator==(const tensor_shape&) const = default;
};

/// Parts of a fused matrix: `rows` (q | k | v, gate | up) are orthogonalised one by one, `columns` (state | input of an adapter)
/// are multiplied one by one. Zero rows end the list; no part listed: the matrix is one part.
struct tensor_parts {
  std::array<index, 4> rows{};
  index columns = 1;  // equal column blocks
  constexpr bool operator==(const tensor_parts&) const = default;
};

/// A tensor's place in the tree of layers; rendered to a dotted name only when somebody asks.
struct path {
  const path* parent = nullptr;
  std::string_view name;
  int number = -1;  // for members of a stack

  std::string text() const {
    const std::string own = number >= 0 ? std::to_string(number) : std::string(name);
    const std::string above = parent != nullptr ? parent->text() : std::string();
    return above.empty() ? own : own.empty() ? above : above + "." + own;
  }
};

struct tensor_entry {
  index offset = 0;  // in scalars, from the start of each flat buffer
  tensor_shape shape;
  role kind = role::bias;
  tensor_parts parts;
};

/// Cosines and sines that some layer reads: (length, width / 2, 2). Not parameters: the network fills them.
struct rotary_spec {
  double base = 0;
  int width = 0;   // of one head
  int length = 0;  // positions
  constexpr bool operator==(const rotary_spec&) const = default;
};

namespace detail {

struct count_visitor {
  int tensors = 0;
  index scalars = 0;
  constexpr void tensor(const path&, tensor_shape shape, role, tensor_parts = {}) { ++tensors, scalars += shape.size(); }
  constexpr void rotary(rotary_spec) {}
};
template <int Count>
struct table_visitor {
  std::array<tensor_entry, Count> entries{};
  int used = 0;
  index offset = 0;
  constexpr void tensor(const path&, tensor_shape shape, role kind, tensor_parts parts = {}) {
    entries[static_cast<std::size_t>(used++)] = {offset, shape, kind, parts};
    offset += shape.size();
  }
  constexpr void rotary(rotary_spec) {}
};
struct name_visitor {
  std::vector<std::string> names;
  void tensor(const path& at, tensor_shape, role, tensor_parts = {}) { names.push_back(at.text()); }
  void rotary(rotary_spec) {}
};
struct rotary_visitor {
  std::vector<rotary_spec> specs;
  void tensor(const path&, tensor_shape, role, tensor_parts = {}) {}
  void rotary(rotary_spec spec) {
    for (const rotary_spec& known : specs)
      if (known == spec) return;
    specs.push_back(spec);
  }
};
template <class Visited>
consteval count_visitor count_tensors() {
  count_visitor v;
  Visited::visit(v, path{});
  return v;
}
template <class Visited>
consteval auto make_table() {
  table_visitor<count_tensors<Visited>().tensors> v;
  Visited::visit(v, path{});
  return v.entries;
}

}  // namespace detail

/// The table of anything that can be visited (a layer, a model): `entries` at compile time, `names()` at run time.
template <class Visited>
struct parameter_table {
  static constexpr auto entries = detail::make_table<Visited>();
  static constexpr int count = static_cast<int>(entries.size());
  static constexpr index scalars = detail::count_tensors<Visited>().scalars;

  static std::vector<std::string> names() {
    detail::name_visitor v;
    Visited::visit(v, path{});
    return v.names;
  }
  static std::vector<rotary_spec> rotary_specs() {
    detail::rotary_visitor v;
    Visited::visit(v, path{});
    return v.specs;
  }
};

GYRE_END
