// The programs' --backend simulated_cuda: the kernels of `cuda` on the interpreter. One model, for each takes long to compile.
#include <gyre/backend/cuda.hpp>

#include "catalogue_training.hpp"
#include "speaking.hpp"

namespace examples {

namespace {
void check_simulated(std::string_view model) {
  gyre::require(model == "huginn-prose", "--backend simulated_cuda: this program has huginn-prose for it, not ", model);
}
}  // namespace

std::unique_ptr<training> make_simulated_training(const settings& s, std::uint64_t total) {
  check_simulated(s.model);
  gyre::require(s.precision == "fp32" && s.optimizer == "adamw",
                "--backend simulated_cuda: only --precision fp32 with --optimizer adamw, not ", s.precision, " with ",
                s.optimizer);
  return make_training_of<prose_model, gyre::fp32>(make_adamw(s), s, gyre::simulated_cuda(), total);
}

void speak_on_simulated_cuda(const found_checkpoint& found, const speaking_options& o, std::ostream& out, std::ostream& notes) {
  check_simulated(found.model);
  speak_as<prose_model, gyre::fp32>(gyre::simulated_cuda(), found, o, out, notes);
}

}  // namespace examples
