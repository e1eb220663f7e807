// Generation on a GPU: for nvcc.
#include <gyre/backend/cuda.hpp>

#include "speaking.hpp"

namespace examples {

void speak_on_cuda(const found_checkpoint& found, const speaking_options& o, bool mixed, std::ostream& out,
                   std::ostream& notes) {
  if (mixed)
    speak_in<gyre::bf16_mixed>(gyre::cuda(), found, o, out, notes);
  else
    speak_in<gyre::fp32>(gyre::cuda(), found, o, out, notes);
}

}  // namespace examples
