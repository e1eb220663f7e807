// Nothing is allocated once the largest step in bf16_mixed has run: float copies lie in scratch that is kept. [no_sanitizer]
#include "training.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 61, .width = 24, .heads = 3, .kv_heads = 1, .mlp = 20, .context = 40};
struct Dreamer
    : gyre::mixture_model<
          sizes, gyre::mixture<gyre::sequential, gyre::depth_attention<sizes>, gyre::sequence_attention<sizes>,
                               gyre::expert_attention<sizes, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

}  // namespace

TEST_CASE("steps of a mixture in bf16_mixed allocate nothing after the largest one", "[bf16]") {
  gyre_test::check_training<Dreamer, gyre::bf16_mixed>(gyre::adamw{});
}
