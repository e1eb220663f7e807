// Checkpoints of trainings in bf16_mixed: they hold the masters, and are resumed bit for bit.
// [own_unit]
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include <gyre/train/adamw.hpp>
#include <gyre/train/checkpoint.hpp>
#include <gyre/train/weights.hpp>

#include "io/support.hpp"
#include "train/support.hpp"

namespace {

using gyre::bf16_mixed, gyre::fp32, gyre_test::random_rows, gyre_test::Tiny, gyre_test::bits_of, gyre_test::masters_of;
template <class P>
using network = gyre::network<Tiny, gyre::reference, P>;

template <class P>
auto trainer_of(network<P>& net) {
  return gyre::trainer(net, gyre::adamw{.lr = 3e-3}, gyre::fixed_depth{3});
}

}  // namespace

TEST_CASE("a run in bf16_mixed is resumed bit for bit, and its checkpoint loads in fp32", "[checkpoint][bf16]") {
  const gyre_test::scratch_folder folder;
  const random_rows rows(4, 8);
  network<bf16_mixed> net({}, gyre::seed{1});
  auto trainer = trainer_of(net);
  for (int i = 0; i < 3; ++i) trainer.step(rows.all());
  const auto at = gyre::save_checkpoint(trainer, folder.path());
  const auto saved = masters_of(trainer);
  for (int i = 0; i < 3; ++i) trainer.step(rows.all());

  network<bf16_mixed> other({}, gyre::seed{2});
  auto resumed = trainer_of(other);
  CHECK(gyre::load_checkpoint(resumed, at).differences.empty());
  CHECK(masters_of(resumed) == saved);
  for (int i = 0; i < 3; ++i) resumed.step(rows.all());
  CHECK(masters_of(resumed) == masters_of(trainer));
  CHECK(gyre_test::moments_of(resumed) == gyre_test::moments_of(trainer));
  CHECK(bits_of(other) == bits_of(net));

  network<fp32> wide({}, gyre::seed{3});
  gyre::load_weights(wide, at);
  CHECK(gyre_test::copy_of(wide) == saved);
  auto goes_on = trainer_of(wide);
  const auto differences = gyre::load_checkpoint(goes_on, at).differences;
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].find("parameters") != std::string::npos);
  CHECK(goes_on.steps() == 3);
  network<bf16_mixed> narrow({}, gyre::seed{4});
  gyre::load_weights(narrow, at);
  for (std::size_t i = 0; i < saved.size(); ++i) REQUIRE(narrow.values()[i].bits == gyre::bfloat16(saved[i]).bits);
}
