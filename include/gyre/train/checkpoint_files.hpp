// The files of a checkpoint: their names, what they say of themselves, and the tensors that they hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>
#include <gyre/model/description.hpp>

GYRE_BEGIN

// A run is a folder of checkpoints, step-00000100 and so on. A checkpoint holds
//   model.safetensors       the weights, under the names of the published files
//   optimizer.safetensors   moments of the optimiser: <tensor>.moment_1, .moment_2
//   state.json              steps, rows and tokens done, seed, rules, how the model wants to be run, the architecture in words,
//                           its fingerprint, and `data`, the caller's own state: where it stands in its data
// Random numbers are functions of seed and counters, so there is no generator to save.

namespace detail {

inline constexpr std::string_view checkpoint_prefix = "step-", weights_file = "model.safetensors",
                                  moments_file = "optimizer.safetensors", state_file = "state.json",
                                  fingerprint_key = "gyre.fingerprint", step_key = "gyre.step";
inline constexpr int checkpoint_format = 1;
inline constexpr std::size_t checkpoints_kept = 2;

inline std::vector<index> shape_of(const tensor_entry& entry) {
  return {entry.shape.extent.begin(), entry.shape.extent.begin() + entry.shape.rank};
}

/// All tensors of a table whose scalars begin at `values`: a name, a shape, and where it lies in memory.
template <class Table, class T>
std::vector<tensor_source> table_tensors(const T* values) {
  std::vector<tensor_source> all;
  const std::vector<std::string> names = Table::names();
  for (std::size_t n = 0; n < names.size(); ++n)
    all.emplace_back(names[n], shape_of(Table::entries[n]), values + Table::entries[n].offset);
  return all;
}
/// Those of a network; the weights that a trainer's updates act on; its moments.
template <class Network>
std::vector<tensor_source> weight_tensors(const Network& net) {
  return table_tensors<typename Network::table>(net.values().data());
}
template <class Trainer>
std::vector<tensor_source> master_tensors(const Trainer& trainer) {
  using scalar = typename Trainer::state_type::scalar;
  return table_tensors<typename Trainer::network_type::table>(static_cast<const scalar*>(trainer.masters().data()));
}
template <class Trainer>
std::vector<tensor_source> moment_tensors(const Trainer& trainer) {
  using table = typename Trainer::network_type::table;
  std::vector<tensor_source> all;
  const std::vector<std::string> names = table::names();
  for (std::size_t n = 0; n < names.size(); ++n)
    for (int which = 0; which < Trainer::rule_type::moments(table::entries[n].kind); ++which)
      all.emplace_back(
          names[n] + ".moment_" + std::to_string(which + 1), shape_of(table::entries[n]),
          static_cast<const typename Trainer::state_type::scalar*>(trainer.state().moment(static_cast<int>(n), which).data()));
  return all;
}

/// Throws unless the file holds exactly these tensors, with these shapes and, if `same_type`, these types.
inline void check_tensors(const safetensors_reader& file, const std::vector<tensor_source>& wanted, bool same_type) {
  for (const tensor_source& w : wanted) {
    const stored_tensor& found = file.at(w.name);
    if (found.shape != w.shape || (same_type && found.type != w.type))
      fail(file.source(), ": tensor ", in_quotes(w.name), ": expected ", shape_text(w.type, w.shape), ", found ",
           shape_text(found.type, found.shape));
  }
  if (file.tensors().size() == wanted.size()) return;
  for (const stored_tensor& t : file.tensors())
    require(std::any_of(wanted.begin(), wanted.end(), [&](const tensor_source& w) { return w.name == t.name; }), file.source(),
            ": tensor ", in_quotes(t.name), " ", shape_text(t.type, t.shape), " belongs to no part of this architecture");
}

/// Reads tensors that have been checked straight into their places.
template <class T>
void read_tensors(const safetensors_reader& file, const std::vector<tensor_source>& into) {
  for (const tensor_source& t : into) {
    const stored_tensor& stored = file.at(t.name);
    T* to = static_cast<T*>(const_cast<void*>(t.data));  // a source lists memory of ours, which the caller may change
    file.read_converted<T>(t.name, t.shape, {to, static_cast<std::size_t>(stored.count())});
  }
}

/// Throws where a tensor holds numbers that are not finite.
template <class T>
void check_finite(const std::string& what, const std::vector<tensor_source>& tensors) {
  for (const tensor_source& t : tensors) {
    index count = 1;
    for (const index extent : t.shape) count *= extent;
    const T* values = static_cast<const T*>(t.data);
    for (index i = 0; i < count; ++i)
      require(std::isfinite(values[i]), what, ": tensor ", in_quotes(t.name), " holds ", values[i], " at ", i);
  }
}

/// Throws where a file's tensor holds numbers that are not finite, before anything of it is used.
template <class T>
void check_finite(const safetensors_reader& file, const std::vector<tensor_source>& here) {
  std::vector<T> values;
  for (tensor_source t : here) {
    values.resize(static_cast<std::size_t>(file.at(t.name).count()));
    t.data = values.data();
    read_tensors<T>(file, {t});
    check_finite<T>(file.source(), {t});
  }
}

/// state.json of a checkpoint.
struct state_document {
  std::string source;
  json root;
  explicit state_document(const std::filesystem::path& folder) : source((folder / state_file).string()) {
    require(std::filesystem::is_regular_file(source), source, " is no file; a checkpoint has one of that name");
    root = parse_json(read_file(source), source);
    const json_field state = fields();
    require(state["format"].int64() == checkpoint_format, source, ": format: ", state["format"].int64(),
            " is unknown; this program reads format ", checkpoint_format);
  }
  json_field fields() const { return {root, source}; }
};

/// What both tensor files of a checkpoint say of themselves: files of different checkpoints do not go together.
template <class A>
std::map<std::string, std::string> origin(std::uint64_t step) {
  return {{"format", "pt"}, {std::string(fingerprint_key), fingerprint<A>()}, {std::string(step_key), std::to_string(step)}};
}
inline void check_origin(const safetensors_reader& file, std::string_view key, const std::string& expected) {
  for (const auto& [name, value] : file.metadata())
    require(name != key || value == expected, file.source(), ": __metadata__.", name, ": ", in_quotes(value), ", not ",
            in_quotes(expected), "; the file belongs to another checkpoint");
}

/// The first line of two descriptions that differs.
inline std::string first_difference(const json_field& there, const std::string& here) {
  std::size_t begin = 0;
  for (std::size_t i = 0;; ++i) {
    const bool ends_there = i >= there.size(), ends_here = begin >= here.size();
    const std::size_t end = here.find('\n', begin);
    const std::string a = ends_there ? "nothing" : in_quotes(there[i].string());
    const std::string b = ends_here ? "nothing" : in_quotes(std::string_view(here).substr(begin, end - begin));
    if (a != b) return a + " there, " + b + " here";
    if (ends_there || ends_here) return "nothing that its description tells";
    begin = end + 1;
  }
}

template <class A>
void check_architecture(const json_field& state) {
  const std::string found = state["fingerprint"].string();
  if (found != fingerprint<A>())
    fail(state.where(), ": fingerprint: ", in_quotes(found), " is of another architecture than this program's ",
         in_quotes(fingerprint<A>()), "; they differ in ", first_difference(state["architecture"], describe<A>()));
}

}  // namespace detail

GYRE_END
