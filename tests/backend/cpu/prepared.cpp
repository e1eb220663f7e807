// The handle, and products through weights that were packed beforehand.
#include <catch2/catch.hpp>

#include <array>
#include <cstdint>

#include <gyre/backend/cpu.hpp>
#include <gyre/backend/reference.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cpu;
using gyre::reference;
using gyre::role;
using gyre::tensor_entry;
using gyre::weight_matrix;
using exact = long double;

constexpr index width = 40, wide = 3 * 40, vocabulary = 67;

/// A small model's table: a gain, a fused projection, an adapter of two column blocks, an output projection, the embedding.
std::vector<tensor_entry> table(bool untied) {
  std::vector<tensor_entry> entries;
  index offset = 0;
  const auto add = [&](gyre::tensor_shape shape, role kind, gyre::tensor_parts parts = {}) {
    entries.push_back({offset, shape, kind, parts});
    offset += shape.size();
  };
  add({width}, role::gain);
  add({wide, width}, role::input_projection, {{width, width, width}});
  add({width, 2 * width}, role::adapter, {.columns = 2});
  add({width, wide}, role::output_projection);
  add({vocabulary, width}, role::embedding);
  if (untied) add({vocabulary, width}, role::head);
  return entries;
}

template <class T>
struct model {
  std::vector<tensor_entry> entries;
  std::vector<T> flat;
  explicit model(bool untied) : entries(table(untied)) {
    flat.resize(static_cast<std::size_t>(entries.back().offset + entries.back().shape.size()));
    draw(1);
  }
  void draw(std::uint64_t number) {
    gyre::random_stream(gyre::seed{number}, gyre::purpose::task).fill_normal(std::span<T>(flat), {});
  }
  /// Every matrix that a model multiplies, as products name it.
  std::vector<matrix_view<const T>> matrices() const {
    std::vector<matrix_view<const T>> all;
    for (std::size_t n = 1; n < entries.size(); ++n) {
      const matrix_view<const T> w(flat.data() + entries[n].offset, entries[n].shape.matrix_rows(), entries[n].shape.cols());
      for (index b = 0; b < entries[n].parts.columns; ++b)
        all.push_back(w.columns(b * w.cols / entries[n].parts.columns, w.cols / entries[n].parts.columns));
    }
    return all;
  }
};

}  // namespace

TEST_CASE("a cpu handle has as many threads as it is told", "[threads]") {
  CHECK(cpu{}.threads() == gyre::thread_pool::default_threads());
  const cpu three{3};
  const cpu copy = three;
  CHECK(three.threads() == 3);
  CHECK(copy.threads() == 3);
  CHECK(&copy.pool() == &three.pool());
  CHECK_THROWS_WITH(cpu{0}, Catch::Contains("0 threads"));
  CHECK_THROWS_WITH(cpu{-4}, Catch::Contains("-4 threads") && Catch::Contains("at least 1"));
}

TEST_CASE("memory of a cpu is aligned to cache lines") {
  cpu b(1);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{4097}}) {
    std::byte* memory = b.allocate(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
    b.deallocate(memory, bytes);
  }
}

TEMPLATE_TEST_CASE("packed weights give the bits of weights as they lie, before and after they change", "", float, double) {
  using T = TestType;
  for (const bool untied : {false, true})
    for (const bool backward : {false, true})
      for (const index rows : {0, 1, 7, 129}) {
        CAPTURE(untied, backward, rows);
        cpu b(2);
        model<T> m(untied);
        cpu::prepared<T> packed(b, m.flat.data(), m.entries, backward);
        for (const std::uint64_t number : {std::uint64_t{1}, std::uint64_t{2}}) {
          m.draw(number);
          packed.refresh(b);
          for (const matrix_view<const T> w : m.matrices()) {
            CAPTURE(w.rows, w.cols, w.stride);
            const bool multiplied = !untied || w.data != m.flat.data() + m.entries[4].offset;  // not the embedding
            CHECK((packed.forward(b.pool(), w) != nullptr) == multiplied);
            CHECK((packed.backward(b.pool(), w) != nullptr) == (multiplied && backward));
            const weight_matrix<T, cpu::prepared<T>> with{w, &packed}, without{w, nullptr};
            const auto x = random_grid<T>(rows, w.cols, 1), dy = random_grid<T>(rows, w.rows, 2);
            for (const bool accumulate : {false, true}) {
              auto y = random_grid<T>(rows, w.rows, 3), y_raw = y, dx = random_grid<T>(rows, w.cols, 4), dx_raw = dx;
              auto y_want = y.template as<exact>(), dx_want = dx.template as<exact>();
              auto y_size = y.absolute().template as<exact>(), dx_size = dx.absolute().template as<exact>();
              b.product(x.read(), with, y.view(), accumulate);
              b.product(x.read(), without, y_raw.view(), accumulate);
              b.product_input_gradient(dy.read(), with, dx.view(), accumulate);
              b.product_input_gradient(dy.read(), without, dx_raw.view(), accumulate);
              CHECK(bit_differences(y.view(), y_raw.view()) == "");
              CHECK(bit_differences(dx.view(), dx_raw.view()) == "");

              grid<T> w_copy(w.rows, w.cols, 0);
              b.copy(w, w_copy.view());
              using raw = weight_matrix<exact, gyre::detail::nothing_prepared<exact>>;
              const auto w_exact = w_copy.template as<exact>(), w_size = w_copy.absolute().template as<exact>();
              reference().product(x.template as<exact>().read(), raw{w_exact.read()}, y_want.view(), accumulate);
              reference().product(x.absolute().template as<exact>().read(), raw{w_size.read()}, y_size.view(), accumulate);
              reference().product_input_gradient(dy.template as<exact>().read(), raw{w_exact.read()}, dx_want.view(),
                                                 accumulate);
              reference().product_input_gradient(dy.absolute().template as<exact>().read(), raw{w_size.read()}, dx_size.view(),
                                                 accumulate);
              const auto within = [](const grid<exact>& size, index terms) {
                return [&size, terms](index i, index j) { return 2 * static_cast<exact>(terms + 1) * epsilon<T> * size[i][j]; };
              };
              CHECK(differences(y.read(), y_want.view(), within(y_size, w.cols)) == "");
              CHECK(differences(dx.read(), dx_want.view(), within(dx_size, w.rows)) == "");
              CHECK(y.margins_intact());
              CHECK(dx.margins_intact());
            }
          }
        }
      }
}

TEMPLATE_TEST_CASE("a view that is not a whole weight is not mistaken for one", "", float, double) {
  using T = TestType;
  cpu b(1);
  model<T> m(false);
  cpu::prepared<T> packed(b, m.flat.data(), m.entries, true);
  packed.refresh(b);
  const matrix_view<const T> qkv = m.matrices()[0], adapter(m.flat.data() + m.entries[2].offset, width, 2 * width);
  CHECK(packed.forward(b.pool(), qkv.slice(0, width)) == nullptr);        // its first rows
  CHECK(packed.forward(b.pool(), qkv.slice(1, wide - 1)) == nullptr);     // another beginning
  CHECK(packed.forward(b.pool(), qkv.columns(0, width / 2)) == nullptr);  // its first columns
  CHECK(packed.forward(b.pool(), adapter) == nullptr);                    // is packed by blocks
  CHECK(packed.forward(b.pool(), adapter.columns(width, width)) != nullptr);
  CHECK(packed.forward(b.pool(), m.matrices().back().slice(vocabulary, 0)) == nullptr);
  const std::vector<T> elsewhere(m.flat.size());
  CHECK(packed.forward(b.pool(), {elsewhere.data() + m.entries[1].offset, wide, width}) == nullptr);
  CHECK(packed.backward(b.pool(), {elsewhere.data() + m.entries[1].offset, wide, width}) == nullptr);
}

}  // namespace gyre_test
