// Checkpoints: everything a training needs to go on bit for bit, in a folder that is complete or not there.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gyre/io/folder_transaction.hpp>
#include <gyre/io/json_writer.hpp>
#include <gyre/train/checkpoint_files.hpp>
#include <gyre/train/facts.hpp>
#include <gyre/train/trainer.hpp>

GYRE_BEGIN

/// What a loaded checkpoint tells.
struct resumed {
  std::filesystem::path folder;
  std::uint64_t step = 0;
  json data;                             // as it was given to save_checkpoint()
  std::vector<std::string> differences;  // rules and options that are other ones now: the run goes on, but not bit for bit
};

namespace detail {

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

GYRE_END
