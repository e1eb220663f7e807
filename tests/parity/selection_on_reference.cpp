#include <vector>

#include "selection_sides.hpp"

namespace gyre_test {

replayed_pass mixture_replaying(const step_input<float>& input, const gyre::parity::selections& choices, float moved) {
  namespace parity = gyre::parity;
  auto biased = parity::replace<gyre::operation::route>(
      gyre::reference(), [moved](gyre::reference& device, gyre::matrix_view<const float> scores, const float* bias,
                                 double scale, gyre::index active, std::int32_t* chosen, float* logits, float* gates) {
        // Only the pass's own choice is disturbed, not a replayed row, whose bias leaves none.
        std::vector<float> other(static_cast<std::size_t>(scores.cols), 0);
        for (std::size_t e = 0; e < other.size(); ++e) other[e] = (bias != nullptr ? bias[e] : 0) + (e % 2 == 0 ? moved : 0);
        device.route(scores, other.data(), scale, active, chosen, logits, gates);
      });
  parity::replaying device(biased, choices);
  recording calls = parity::record_steps<Dreamer, gyre::fp32>(device, input, gyre::adamw{});
  return {std::move(calls), device.counts()};
}

}  // namespace gyre_test
