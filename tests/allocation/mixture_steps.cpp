// Nothing is allocated once the largest step of a mixture has run. [no_sanitizer]
#include "training.hpp"

namespace {

constexpr gyre::dims sizes{.vocab = 61, .width = 48, .heads = 3, .mlp = 72, .context = 40};
constexpr gyre::routing maps{.count = 3, .active = 2, .router_width = 8};
struct Dreamer
    : gyre::mixture_model<
          sizes,
          gyre::mixture<gyre::sequential, gyre::depth_attention<sizes, gyre::depth_attention_options{.projections = maps}>,
                        gyre::sequence_attention<sizes, gyre::attention_options{.projections = maps}>,
                        gyre::expert_attention<sizes, gyre::experts{.count = 8, .active = 2, .router_width = 8}>>> {};

}  // namespace

TEST_CASE("steps of a mixture, whose experts get other numbers of tokens every time, allocate nothing after the largest one") {
  gyre_test::check_training<Dreamer>(gyre::adamw{});
}
