// Trained weights without the training: from a checkpoint, or from a safetensors file that another program wrote.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gyre/model/network.hpp>
#include <gyre/policy/depth.hpp>
#include <gyre/train/checkpoint_files.hpp>

GYRE_BEGIN

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
