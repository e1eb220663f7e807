// Checkpoints: everything a training needs to go on bit for bit, in a folder that is complete or not there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gyre/io/files.hpp>
#include <gyre/io/folder_transaction.hpp>
#include <gyre/io/json.hpp>
#include <gyre/io/json_writer.hpp>
#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>
#include <gyre/model/description.hpp>
#include <gyre/train/facts.hpp>
#include <gyre/train/trainer.hpp>

GYRE_BEGIN

// A run is a folder of checkpoints, step-00000100 and so on. A checkpoint holds
//   model.safetensors       the weights, under the names of the published files
//   optimizer.safetensors   moments of the optimiser: <tensor>.moment_1, .moment_2
//   state.json              steps, rows and tokens done, seed, rules, how the model wants to be run, the architecture in words,
//                           its fingerprint, and `data`, the caller's own state: where it stands in its data
// Random numbers are functions of seed and counters, so there is no generator to save.

/// What a loaded checkpoint tells.
struct resumed {
  std::filesystem::path folder;
  std::uint64_t step = 0;
  json data;                             // as it was given to save_checkpoint()
  std::vector<std::string> differences;  // rules and options that are other ones now: the run goes on, but not bit for bit
};

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

/// Whether a checkpoint's weights are these.
template <class T>
bool holds(const std::filesystem::path& folder, const std::vector<tensor_source>& tensors) {
  const safetensors_reader file(folder / weights_file);
  for (const tensor_source& t : tensors) {
    const stored_tensor& stored = file.at(t.name);
    std::vector<T> values(static_cast<std::size_t>(stored.count()));
    file.read_converted<T>(t.name, t.shape, values);
    if (std::memcmp(values.data(), t.data, values.size() * sizeof(T)) != 0) return false;
  }
  return true;
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

/// What must be the same for a run to go on bit for bit.
template <class Trainer>
json rules_of(const Trainer& trainer) {
  json rules = object_of({{"optimizer", facts_of(trainer.rule())},
                          {"depth", facts_of(trainer.depth())},
                          {"schedule", facts_of(trainer.schedule())},
                          {"options", facts_of(trainer.options())}});
  // Where the network holds less than is saved.
  if constexpr (Trainer::state_type::keeps_masters)
    rules.set("parameters", json(name_of(dtype_of<typename Trainer::network_type::scalar>())));
  return rules;
}

template <class Trainer>
json state_of(const Trainer& trainer, const json& data) {
  using A = typename Trainer::A;
  json lines = json::array();
  const std::string text = describe<A>();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(json(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return object_of({{"format", checkpoint_format},
                    {"step", trainer.steps()},
                    {"rows", trainer.rows_seen()},
                    {"tokens", trainer.tokens_seen()},
                    {"data", data},
                    {"rules", rules_of(trainer)},
                    {"evaluation",
                     object_of({{"mean_depth", trainer.depth().mean_depth()}, {"state_scale", trainer.options().state_scale}})},
                    {"precision", name_of(dtype_of<typename Trainer::state_type::scalar>())},
                    {"fingerprint", fingerprint<A>()},
                    {"architecture", std::move(lines)}});
}

template <class A>
void check_architecture(const json_field& state) {
  const std::string found = state["fingerprint"].string();
  if (found != fingerprint<A>())
    fail(state.where(), ": fingerprint: ", in_quotes(found), " is of another architecture than this program's ",
         in_quotes(fingerprint<A>()), "; they differ in ", first_difference(state["architecture"], describe<A>()));
}

}  // namespace detail

/// Saves a checkpoint of the trainer under run/step-<steps>, and removes all but the last two. `data` is kept as it is. Returns
/// the folder. Throws when anything fails, and has then changed nothing: so where weights or moments are not finite, where a
/// checkpoint of the same step is of another state, and where the folder holds a later one, which is then of another training.
template <class Trainer>
std::filesystem::path save_checkpoint(const Trainer& trainer, const std::filesystem::path& run,
                                      const json& data = json::object(), const file_system& files = system_files) {
  std::error_code problem;
  std::filesystem::create_directories(run, problem);
  require(!problem, "save_checkpoint: cannot create the folder ", run.string(), ": ", problem.message());
  const std::string number = std::to_string(trainer.steps());
  const std::string padded = std::string(number.size() < 8 ? 8 - number.size() : 0, '0') + number;
  const std::filesystem::path folder = run / (std::string(detail::checkpoint_prefix) + padded);
  const std::string state = write_json(detail::state_of(trainer, data), 1) + "\n";
  using scalar = typename Trainer::state_type::scalar;
  const std::vector<tensor_source> weights = detail::master_tensors(trainer), moments = detail::moment_tensors(trainer);
  detail::check_finite<scalar>("save_checkpoint: not saved", weights);
  detail::check_finite<scalar>("save_checkpoint: not saved", moments);
  if (const auto found = complete_folders(run, detail::checkpoint_prefix); !found.empty())
    require(found.back().number <= trainer.steps(), "save_checkpoint: ", run.string(), " holds ",
            found.back().path.filename().string(), ", later than this training's step ", number,
            "; give every training a folder of its own, or remove what is no longer wanted");
  if (std::filesystem::exists(folder / detail::state_file) && read_file(folder / detail::state_file) == state &&
      detail::holds<scalar>(folder, weights))
    return folder;

  folder_transaction saving(folder, files);
  saving.write(detail::weights_file, [&](file_writer& file) {
    write_safetensors(file, weights, detail::origin<typename Trainer::A>(trainer.steps()));
  });
  saving.write(detail::moments_file, [&](file_writer& file) {
    write_safetensors(file, moments, detail::origin<typename Trainer::A>(trainer.steps()));
  });
  saving.write(detail::state_file, state);
  saving.commit();
  prune(run, detail::checkpoint_prefix, detail::checkpoints_kept, files);
  return folder;
}

/// The newest complete checkpoint of a run, if there is any.
inline std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& run) {
  return latest(run, detail::checkpoint_prefix);
}

/// Puts a trainer where it was when the checkpoint was saved. Everything is checked before anything changes: format,
/// architecture, precision, optimiser, each tensor's name, shape and type, and that all numbers are finite.
template <class Trainer>
resumed load_checkpoint(Trainer& trainer, const std::filesystem::path& folder) {
  using scalar = typename Trainer::state_type::scalar;
  const detail::state_document document(folder);
  const json_field state = document.fields();
  detail::check_architecture<typename Trainer::A>(state);
  const std::string_view precision = name_of(dtype_of<scalar>());
  require(state["precision"].string() == precision, state.where(), ": precision: the checkpoint is of ",
          state["precision"].string(), ", this program trains in ", precision);
  const json_field rules = state["rules"];
  const json here = detail::rules_of(trainer);
  const std::string& optimizer_there = rules["optimizer"]["name"].string();
  require(optimizer_there == Trainer::rule_type::name, state.where(), ": rules.optimizer.name: the checkpoint is of ",
          detail::in_quotes(optimizer_there), ", this training uses ", detail::in_quotes(Trainer::rule_type::name));

  const safetensors_reader weights(folder / detail::weights_file), moments(folder / detail::moments_file);
  const std::vector<tensor_source> weights_here = detail::master_tensors(trainer),
                                   moments_here = detail::moment_tensors(trainer);
  detail::check_tensors(weights, weights_here, true);
  detail::check_tensors(moments, moments_here, true);
  resumed loaded{folder, state["step"].uint64(), state["data"].value(), {}};
  for (const safetensors_reader* file : {&weights, &moments}) {
    detail::check_origin(*file, detail::fingerprint_key, fingerprint<typename Trainer::A>());
    detail::check_origin(*file, detail::step_key, std::to_string(loaded.step));
  }
  const std::uint64_t rows = state["rows"].uint64(), tokens = state["tokens"].uint64();
  detail::list_differences(rules.value(), here, "", loaded.differences);

  detail::check_finite<scalar>(weights, weights_here);
  detail::check_finite<scalar>(moments, moments_here);
  detail::read_tensors<scalar>(weights, weights_here);
  detail::read_tensors<scalar>(moments, moments_here);
  trainer.resume(loaded.step, rows, tokens);
  return loaded;
}

/// Loads the newest complete checkpoint of a run; nothing when there is none.
template <class Trainer>
std::optional<resumed> resume_latest(Trainer& trainer, const std::filesystem::path& run) {
  const std::optional<std::filesystem::path> folder = latest_checkpoint(run);
  if (!folder) return std::nullopt;
  return load_checkpoint(trainer, *folder);
}

/// How a trained model wants to be run.
struct evaluation_settings {
  int steps = 1;           // r = rbar, the mean of its training (recurrent_depth, section 2)
  double state_scale = 1;  // init_scale of its training
};
/// Throws where the checkpoint does not say, or says what cannot be.
inline evaluation_settings evaluation_of(const std::filesystem::path& checkpoint) {
  const detail::state_document document(checkpoint);
  const json_field told = document.fields()["evaluation"];
  const double mean = told["mean_depth"].real(), scale = told["state_scale"].real();
  require(mean >= 0 && mean <= detail::depth_limit, told.where(), ".mean_depth: ", mean, " is no number of steps");
  require(scale >= 0 && scale <= 1e30, told.where(), ".state_scale: ", scale, " is no scale; it lies in [0, 1e30]");
  return {(std::max)(1, static_cast<int>(std::lround(mean))), scale};
}

/// Loads weights alone: from a checkpoint, or from any safetensors file with this architecture's names and shapes. F16, BF16,
/// F32 and F64 are converted to the network's type. A weight that is not finite is refused before any has changed.
template <class Network>
void load_weights(Network& net, const std::filesystem::path& from) {
  using A = typename Network::architecture_type;
  const bool folder = std::filesystem::is_directory(from);
  const safetensors_reader file(folder ? from / detail::weights_file : from);
  if (folder && std::filesystem::exists(from / detail::state_file)) {
    const detail::state_document document(from);
    detail::check_architecture<A>(document.fields());
    detail::check_origin(file, detail::step_key, std::to_string(document.fields()["step"].uint64()));
  }
  for (const auto& [key, value] : file.metadata())
    require(key != detail::fingerprint_key || value == fingerprint<A>(), file.source(), ": __metadata__.", key, ": ",
            detail::in_quotes(value), " is of another architecture than this program's ", detail::in_quotes(fingerprint<A>()));
  const std::vector<tensor_source> here = detail::weight_tensors(net);
  detail::check_tensors(file, here, false);
  using scalar = typename Network::scalar;
  if constexpr (std::is_same_v<scalar, compute_t<scalar>>) {
    detail::check_finite<scalar>(file, here);
    detail::read_tensors<scalar>(file, here);
  } else {  // rounded once
    std::vector<double> wide(net.values().size());
    const auto there = detail::table_tensors<typename Network::table>(static_cast<const double*>(wide.data()));
    detail::check_finite<double>(file, there);
    detail::read_tensors<double>(file, there);
    for (const double x : wide)
      require(std::isfinite(static_cast<float>(scalar(x))), file.source(), ": a weight of ", x, " is infinite in bf16");
    std::transform(wide.begin(), wide.end(), net.values().begin(), [](double x) { return scalar(x); });
  }
  net.refresh();
}

GYRE_END
