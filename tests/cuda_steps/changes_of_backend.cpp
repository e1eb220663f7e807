// A mixture trained in bf16_mixed goes from the cpu to the kernels of cuda and back, through checkpoints. What they hold is restored
// bit for bit on either side, and the training goes on as one that stays on the cpu does.
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "io/support.hpp"
#include "passage.hpp"

namespace gyre_test {

TEST_CASE("a mixture in bf16_mixed changes from the cpu to the kernels of cuda and back", "[cuda_kernels][bf16][early]") {
  const scratch_folder folder;
  const passage first = pass_on_cpu({}, 3, folder / "first", 3);
  CHECK(first.rounded);
  CHECK(first.moved_biases.first > 0);
  CHECK(first.moved_biases.second > 0);

  const passage second = pass_on_cuda(first.checkpoint, 2, folder / "second", 0);
  CHECK(second.same_settings);
  CHECK((second.loaded == first.saved));
  CHECK(second.rounded);
  CHECK(second.saved.steps == 5);
  CHECK((second.saved.masters != first.saved.masters));

  const passage third = pass_on_cpu(second.checkpoint, 1, folder / "third", 0);
  CHECK(third.same_settings);
  CHECK((third.loaded == second.saved));
  CHECK(third.rounded);
  CHECK(third.saved.steps == 6);

  // Backends differ by rounding, in bf16 by up to 2^-8 of what they store.
  const std::vector<double>& stays = first.beyond;
  const std::vector<double> changes{second.losses[0], second.losses[1], third.losses[0]};
  REQUIRE(stays.size() == changes.size());
  for (std::size_t n = 0; n < stays.size(); ++n) {
    CAPTURE(n, stays[n], changes[n]);
    CHECK(std::fabs(changes[n] - stays[n]) <= std::ldexp(stays[n], -8));
  }
  CHECK(changes.back() < 0.9 * first.losses.front());
}

}  // namespace gyre_test
