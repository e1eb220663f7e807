// Weights are packed at their first use after a change, and only those that are used. [own_unit]
#include <catch2/catch.hpp>

#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include <gyre/backend/cpu.hpp>

#include "support.hpp"
#include "support/compare.hpp"

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::cpu;
using gyre::row_groups;

static_assert(std::is_nothrow_move_constructible_v<cpu::prepared<float>>);
static_assert(std::is_nothrow_move_assignable_v<cpu::prepared<float>>);

/// Experts of two matrices each, the first (out, in) and the second (in, out), expert after expert.
struct experts {
  static constexpr index out = 40, in = 70, stride = 2 * out * in;
  index count;
  std::vector<float> flat;
  explicit experts(index n) : count(n), flat(static_cast<std::size_t>(n * stride)) { draw(1); }
  void draw(std::uint64_t number) {
    gyre::random_stream(gyre::seed{number}, gyre::purpose::task).fill_normal(std::span<float>(flat), {});
  }
  std::vector<gyre::tensor_entry> table() const {
    std::vector<gyre::tensor_entry> entries;
    for (index g = 0; g < count; ++g) {
      entries.push_back({g * stride, {out, in}, gyre::role::input_projection, {}});
      entries.push_back({g * stride + out * in, {in, out}, gyre::role::output_projection, {}});
    }
    return entries;
  }
  matrix_view<const float> first(index g) const { return {flat.data() + g * stride, out, in}; }
  matrix_view<const float> second(index g) const { return {flat.data() + g * stride + out * in, in, out}; }
};

using prepared = cpu::prepared<float>;
using weight = gyre::weight_matrix<float, prepared>;

/// One letter for each expert: which copies of its first matrix are up to date (f, b, 2 for both, - for none).
std::string packed_first(const prepared& p, const experts& e) {
  std::string s;
  for (index g = 0; g < e.count; ++g) {
    const bool forward = p.up_to_date(*p.find(e.first(g), false)), backward = p.up_to_date(*p.find(e.first(g), true));
    s += forward ? backward ? '2' : 'f' : backward ? 'b' : '-';
  }
  return s;
}

}  // namespace

TEST_CASE("a matrix is packed at its first use after a change, forward and backward copies apart") {
  cpu b(2);
  experts e(3);
  prepared p(b, e.flat.data(), e.table(), true);
  const auto x = random_grid<float>(5, e.in, 1), dy = random_grid<float>(5, e.out, 2);
  grid<float> y(5, e.out), dx(5, e.in);
  CHECK(packed_first(p, e) == "---");
  b.product(x.read(), weight{e.first(1), &p}, y.view(), false);
  CHECK(packed_first(p, e) == "-f-");
  b.product_input_gradient(dy.read(), weight{e.first(1), &p}, dx.view(), false);
  b.product_input_gradient(dy.read(), weight{e.first(2), &p}, dx.view(), false);
  CHECK(packed_first(p, e) == "-2b");
  CHECK(!p.up_to_date(*p.find(e.second(1), false)));
  p.refresh(b);
  CHECK(packed_first(p, e) == "---");
  b.product_input_gradient(dy.read(), weight{e.first(0), &p}, dx.view(), false);
  CHECK(packed_first(p, e) == "b--");
}

TEST_CASE("experts without tokens are not packed, and every use sees the newest weights") {
  cpu b(2);
  experts e(6);
  prepared p(b, e.flat.data(), e.table(), true);
  const auto x = random_grid<float>(9, e.in, 1), dy = random_grid<float>(9, e.out, 2);
  const std::int32_t offsets[2][7] = {{0, 0, 4, 4, 9, 9, 9}, {0, 2, 2, 2, 8, 8, 9}};
  const auto run = [&](const std::int32_t* at, const prepared* through) {
    std::vector<grid<float>> out{dy, x};
    const row_groups groups{at, e.count, e.stride};
    b.grouped_product(x.read(), weight{e.first(0), through}, groups, out[0].view(), false);
    b.grouped_product_input_gradient(dy.read(), weight{e.first(0), through}, groups, out[1].view(), false);
    return out;
  };
  const auto check = [&](const std::int32_t* at) {
    const auto got = run(at, &p), want = run(at, nullptr);
    CHECK(bit_differences(got[0].view(), want[0].view()) == "");
    CHECK(bit_differences(got[1].view(), want[1].view()) == "");
  };
  check(offsets[0]);
  CHECK(packed_first(p, e) == "-2-2--");
  for (index g = 0; g < e.count; ++g) CHECK(!p.up_to_date(*p.find(e.second(g), false)));
  check(offsets[1]);  // some packed already, some not
  CHECK(packed_first(p, e) == "22-2-2");
  for (const std::uint64_t number : {std::uint64_t{2}, std::uint64_t{3}}) {
    e.draw(number);
    p.refresh(b);
    CHECK(packed_first(p, e) == "------");
    check(offsets[1]);
    CHECK(packed_first(p, e) == "2--2-2");
  }
}

TEST_CASE("groups that share one matrix pack it once") {
  cpu b(2);
  experts e(1);
  prepared p(b, e.flat.data(), e.table(), true);
  const auto x = random_grid<float>(9, e.in, 1);
  const std::int32_t offsets[] = {0, 4, 4, 9};
  grid<float> y(9, e.out), y_alone(9, e.out);
  b.grouped_product(x.read(), weight{e.first(0), &p}, {offsets, 3, 0}, y.view(), false);
  b.product(x.read(), weight{e.first(0), nullptr}, y_alone.view(), false);
  CHECK(bit_differences(y.view(), y_alone.view()) == "");
}

TEST_CASE("groups of which only some are in the table are multiplied all the same") {
  cpu b(2);
  experts e(3);
  const std::vector<gyre::tensor_entry> all = e.table();
  prepared p(b, e.flat.data(), std::span(all).first(4), true);
  const auto x = random_grid<float>(9, e.in, 1);
  const std::int32_t offsets[] = {0, 4, 5, 9};
  grid<float> y(9, e.out), y_raw(9, e.out);
  b.grouped_product(x.read(), weight{e.first(0), &p}, {offsets, 3, e.stride}, y.view(), false);
  b.grouped_product(x.read(), weight{e.first(0), nullptr}, {offsets, 3, e.stride}, y_raw.view(), false);
  CHECK(bit_differences(y.view(), y_raw.view()) == "");
}

TEST_CASE("packed weights may move between uses") {
  cpu b(1);
  experts e(2);
  prepared p(b, e.flat.data(), e.table(), true);
  const auto x = random_grid<float>(3, e.in, 1);
  grid<float> y(3, e.out), y_moved(3, e.out);
  b.product(x.read(), weight{e.first(0), &p}, y.view(), false);
  prepared moved(std::move(p));
  CHECK(packed_first(moved, e) == "f-");
  b.product(x.read(), weight{e.first(0), &moved}, y_moved.view(), false);
  CHECK(bit_differences(y.view(), y_moved.view()) == "");
  moved.refresh(b);
  CHECK(packed_first(moved, e) == "--");
}

TEST_CASE("several threads may be the first to use a weight, on one pool and on several", "[threads]") {
  for (const bool own_pools : {false, true}) {
    CAPTURE(own_pools);
    cpu shared(2);
    experts e(4);
    prepared p(shared, e.flat.data(), e.table(), true);
    const auto x = random_grid<float>(9, e.in, 1), dy = random_grid<float>(9, e.out, 2);
    const std::int32_t offsets[] = {0, 4, 4, 6, 9};
    for (std::uint64_t round = 1; round <= 8; ++round) {
      e.draw(round);
      p.refresh(shared);
      const auto run = [&](cpu b, const prepared* through) {
        std::vector<grid<float>> out{dy, x, dy, x};
        const weight w{e.first(0), through};
        const row_groups groups{offsets, e.count, e.stride};
        b.product(x.read(), w, out[0].view(), false);
        b.grouped_product_input_gradient(dy.read(), w, groups, out[1].view(), false);
        b.grouped_product(x.read(), w, groups, out[2].view(), false);
        b.product_input_gradient(dy.read(), w, out[3].view(), false);
        return out;
      };
      std::vector<std::vector<grid<float>>> got(3);
      std::vector<std::thread> users;
      for (auto& mine : got) users.emplace_back([&] { mine = run(own_pools ? cpu(2) : shared, &p); });
      for (std::thread& user : users) user.join();
      const auto want = run(shared, nullptr);
      for (const auto& mine : got)
        for (std::size_t n = 0; n < want.size(); ++n) CHECK(bit_differences(mine[n].view(), want[n].view()) == "");
    }
  }
}

}  // namespace gyre_test
