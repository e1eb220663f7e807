#include <catch2/catch.hpp>
#include <set>

#include <gyre/core/layout.hpp>
#include <gyre/core/parameters.hpp>

#include "support/variants.hpp"

using namespace gyre_test::variants;

TEST_CASE("the parameter table lists every tensor once, without gaps, with distinct names") {
  using table = gyre::parameter_table<SandwichGrouped>;
  gyre::index next = 0;
  for (const gyre::tensor_entry& entry : table::entries) {
    CHECK(entry.offset == next);
    next += entry.shape.size();
    gyre::index parts = 0;
    for (gyre::index r : entry.parts.rows) parts += r;
    CHECK((parts == 0 || parts == entry.shape.matrix_rows()));
    CHECK(entry.shape.cols() % entry.parts.columns == 0);
  }
  CHECK(next == SandwichGrouped::parameter_count);
  const auto names = table::names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == static_cast<std::size_t>(table::count));
}

TEST_CASE("tensors have the published names and shapes") {
  const auto shape_of = []<class Model>(std::string_view wanted) {
    const auto names = gyre::parameter_table<Model>::names();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == wanted) return gyre::parameter_table<Model>::entries[i].shape;
    return gyre::tensor_shape{};
  };
  const auto grouped_shape = [&](std::string_view name) { return shape_of.operator()<SandwichGrouped>(name); };
  const auto bare_shape = [&](std::string_view name) { return shape_of.operator()<PreNorm>(name); };
  // width 8, 4 heads of 2, 2 key/value heads, mlp 6, vocabulary 7
  CHECK(grouped_shape("transformer.wte.weight") == gyre::tensor_shape{7, 8});
  CHECK(grouped_shape("transformer.prelude.0.norm_1.weight") == gyre::tensor_shape{8});
  CHECK(grouped_shape("transformer.core_block.1.norm_4.weight") == gyre::tensor_shape{8});
  CHECK(grouped_shape("transformer.coda.0.attn.Wqkv.weight") == gyre::tensor_shape{16, 8});
  CHECK(grouped_shape("transformer.coda.0.attn.qk_bias") == gyre::tensor_shape{6, 2});
  CHECK(grouped_shape("transformer.coda.0.attn.proj.weight") == gyre::tensor_shape{8, 8});
  CHECK(grouped_shape("transformer.coda.0.mlp.fc.weight") == gyre::tensor_shape{12, 8});
  CHECK(grouped_shape("transformer.coda.0.mlp.proj.weight") == gyre::tensor_shape{8, 6});
  CHECK(grouped_shape("transformer.adapter.weight") == gyre::tensor_shape{8, 16});
  CHECK(grouped_shape("transformer.ln_f.weight") == gyre::tensor_shape{8});
  CHECK(shape_of.operator()<SandwichBare>("transformer.prelude.0.attn.qk_bias") == gyre::tensor_shape{2, 1, 4, 2});
  CHECK(bare_shape("lm_head.weight") == gyre::tensor_shape{7, 8});
  CHECK(bare_shape("transformer.prelude.0.norm_2.weight") == gyre::tensor_shape{8});
  CHECK(bare_shape("transformer.prelude.0.norm_3.weight").rank == 0);
  CHECK(bare_shape("transformer.prelude.0.attn.qk_bias").rank == 0);
}

TEST_CASE("decay is for matrices and the embedding alone") {
  for (gyre::role r : {gyre::role::embedding, gyre::role::head, gyre::role::input_projection, gyre::role::output_projection,
                       gyre::role::adapter})
    CHECK(gyre::decays(r));
  CHECK_FALSE(gyre::decays(gyre::role::gain));
  CHECK_FALSE(gyre::decays(gyre::role::bias));
}

TEST_CASE("a ragged layout knows each row's sequence and position") {
  gyre::batch_layout layout;
  layout.add(2, 5, 40);
  layout.add(0, 3, 41);
  layout.add(3, 0, 42);
  CHECK(layout.rows() == 5);
  CHECK(std::vector<std::int32_t>(layout.positions().begin(), layout.positions().end()) ==
        std::vector<std::int32_t>{5, 6, 0, 1, 2});
  REQUIRE(layout.sequences().size() == 3);
  CHECK(layout.sequences()[2].begin == 2);
  CHECK(layout.sequences()[2].key == 42);
  CHECK_THROWS_WITH(layout.add(-1, 0, 0), Catch::Contains("a sequence of -1 tokens"));
}
