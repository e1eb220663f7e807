// A cache whose lanes are longer than 2^32 scalars, and counts of which there are more than 2^31.
#include "window.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr gyre::index cursor = 16, copies = 2, past = 5, tokens = 33;  // `tokens` more than one tile of keys

template <class T>
T number(gyre::index n) {
  return static_cast<T>(std::sin(0.37f * static_cast<float>(n)));
}

/// One stream's lane, and what is done with it: rows are appended and attended to, and repeated into later steps.
template <class T>
struct lane {
  gyre::simt::device_array<T> memory;
  std::array<gyre::cache_lane<T>, 1> at;
  gyre::index cols;

  lane(gyre_test::shuffled_cuda& device, gyre::index capacity, gyre::index cols_)
      : memory(device.device().machine().template allocate<T>(
            static_cast<std::size_t>((cursor + 2 * cols_ * (copies + 1)) * capacity), "lane")),
        at{{{memory.data(), capacity, nullptr}}},
        cols(cols_) {}

  void fill(gyre_test::shuffled_cuda& device, gyre::matrix_view<const T> x) {
    gyre::batch_layout first, then;
    first.add(past, 0, 0), then.add(tokens - past, past, 0);
    const gyre::matrix_view<const T> begin(x.data, past, cols), rest(x[past], tokens - past, cols);
    const gyre::matrix_view<const T> values(x[1], past, cols), more_values(x[past + 1], tokens - past, cols);
    device.cache_append(begin, values, first, std::span<const gyre::cache_lane<T>>(at), cursor);
    device.cache_append(rest, more_values, then, std::span<const gyre::cache_lane<T>>(at), cursor);
  }
  /// The rows of copy `n` of the keys (0) or values (1); copy 0 is where they were appended.
  std::span<const T> rows(gyre::index n, gyre::index which) const {
    return {memory.data() + (cursor + (2 * n + which) * cols) * at[0].capacity, static_cast<std::size_t>(tokens * cols)};
  }
};
template <class T>
bool same(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

template <class T>
void check_lanes(gyre::index cols) {
  INFO(gyre::parity::type_name<T>() << ", heads of " << cols);
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  lane<T> near(device, 40, cols), far(device, (gyre::index{1} << 28) + 40, cols);  // cursor * capacity is beyond 2^32
  REQUIRE(far.rows(0, 0).data() - far.memory.data() > gyre_test::beyond);
  const auto x = machine.template allocate<T>(static_cast<std::size_t>((tokens + 1) * cols));
  for (gyre::index n = 0; n < (tokens + 1) * cols; ++n) x[static_cast<std::size_t>(n)] = number<T>(n);
  gyre::batch_layout last;
  last.add(tokens - past, past, 0);
  const auto attend = [&](lane<T>& to) {
    to.fill(device, {x.data(), tokens + 1, cols});
    const auto o = machine.template allocate<T>(static_cast<std::size_t>((tokens - past) * 2 * cols));
    const auto q = machine.template allocate<T>(o.size());
    for (std::size_t n = 0; n < q.size(); ++n) q[n] = number<T>(static_cast<gyre::index>(n) + 11);
    device.cached_attention(gyre::matrix_view<const T>(q.data(), tokens - past, 2 * cols), last,
                            std::span<const gyre::cache_lane<T>>(to.at), cursor, gyre::attention_shape{2, 1, cols, 0.125}, 0,
                            gyre::matrix_view<T>(o.data(), tokens - past, 2 * cols));
    return std::vector<T>(o.begin(), o.end());
  };
  const std::vector<T> expected = attend(near), found = attend(far);
  CHECK(same(std::span<const T>(found), std::span<const T>(expected)));
  CHECK(std::abs(static_cast<float>(found.front())) > 1e-3f);
  const std::array<gyre::index, 2> blocks{cols, cols};
  const std::array<std::int32_t, 1> repeated{static_cast<std::int32_t>(copies)};
  gyre::batch_layout all;
  all.add(tokens, 0, 0);
  for (lane<T>* each : {&near, &far})
    device.cache_extend(all, std::span<const gyre::cache_lane<T>>(each->at), std::span<const std::int32_t>(repeated), cursor,
                        std::span<const gyre::index>(blocks), 2 * cols);
  for (gyre::index n = 0; n <= copies; ++n)
    for (const gyre::index which : {0, 1}) {
      CHECK(same(far.rows(n, which), near.rows(n, which)));
      CHECK(same(far.rows(n, which), std::span<const T>(x.data() + which * cols, static_cast<std::size_t>(tokens * cols))));
    }
}

/// How many units of pairs there are, so that experts times units is beyond 2^32 and pairs are nearly 2^31; the last two blocks take
/// eight of them.
constexpr gyre::index unit_length = 32, unit_count = (gyre::index{1} << 26) - 4, last_units = 8, expert_count = 70;
constexpr gyre::index pair_count = unit_count * unit_length - 5;
constexpr int expert_of(gyre::index pair) { return static_cast<int>((pair * 7 + pair / 9 + 3) % expert_count); }

}  // namespace

TEST_CASE("the cache reaches rows beyond 2^32 elements", "[cuda_kernels]") {
  check_lanes<float>(8);
  check_lanes<gyre::bfloat16>(64);  // of the kernels for tensor cores
}

TEST_CASE("pairs are counted and placed where counts are more than 2^32", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  gyre::detail::pair_units units(0, expert_count);
  units.pairs = pair_count, units.length = unit_length, units.count = unit_count;
  REQUIRE(units.experts * units.count > gyre_test::beyond);
  const dim3 blocks =
      gyre::detail::blocks_for(unit_count * static_cast<gyre::index>(gyre::detail::warp_lanes), gyre::detail::group_threads);
  constexpr gyre::index first_unit = unit_count - last_units, first_pair = first_unit * unit_length;
  const auto chosen = machine.allocate<std::int32_t>(pair_count),
             counts = machine.allocate<std::int32_t>(expert_count * unit_count),
             place = machine.allocate<std::int32_t>(pair_count), source = machine.allocate<std::int32_t>(pair_count),
             offsets = machine.allocate<std::int32_t>(expert_count + 1);
  for (gyre::index p = first_pair; p < pair_count; ++p) chosen[static_cast<std::size_t>(p)] = expert_of(p);
  const auto count_at = [&](gyre::index expert, gyre::index unit) -> std::int32_t& {
    return counts[static_cast<std::size_t>(expert * unit_count + unit)];
  };
  gyre_test::run_last_blocks(device.device(), blocks.x, [&] {
    gyre::simt::launch(gyre::detail::count_pairs<>, blocks, gyre::detail::group_threads, 0, device.device().stream(),
                       static_cast<const std::int32_t*>(chosen.data()), units, counts.data());
  });
  std::vector<std::int32_t> expected(expert_count * last_units);
  const auto expected_at = [&](gyre::index expert, gyre::index unit) -> std::int32_t& {
    return expected[static_cast<std::size_t>(expert * last_units + unit - first_unit)];
  };
  for (gyre::index p = first_pair; p < pair_count; ++p) ++expected_at(expert_of(p), p / unit_length);
  gyre::index wrong = 0;
  for (gyre::index e = 0; e < expert_count; ++e)
    for (gyre::index u = first_unit; u < unit_count; ++u) wrong += count_at(e, u) != expected_at(e, u);
  CHECK(wrong == 0);

  // Where a unit's pairs of an expert begin: apart from each other's, up to the last row.
  constexpr gyre::index first_row = pair_count - expert_count * last_units * unit_length;
  for (gyre::index e = 0; e < expert_count; ++e)
    for (gyre::index u = first_unit; u < unit_count; ++u)
      count_at(e, u) = expected_at(e, u) =
          static_cast<std::int32_t>(first_row + (e * last_units + u - first_unit) * unit_length);
  gyre_test::run_last_blocks(device.device(), blocks.x, [&] {
    gyre::simt::launch(gyre::detail::place_pairs<>, blocks, gyre::detail::group_threads, 0, device.device().stream(),
                       static_cast<const std::int32_t*>(chosen.data()), units, counts.data(), offsets.data(), place.data(),
                       source.data());
  });
  for (gyre::index p = first_pair; p < pair_count; ++p) {
    const std::int32_t row = expected_at(expert_of(p), p / unit_length)++;
    wrong += place[static_cast<std::size_t>(p)] != row || source[static_cast<std::size_t>(row)] != p;
  }
  CHECK(wrong == 0);
  for (gyre::index e = 0; e < expert_count; ++e)
    for (gyre::index u = first_unit; u < unit_count; ++u) wrong += count_at(e, u) != expected_at(e, u);
  CHECK(wrong == 0);
}

TEST_CASE("sums of tiles reach counts beyond 2^32", "[cuda_kernels]") {
  using gyre::detail::scan_tile;
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  constexpr gyre::index count = gyre_test::beyond + scan_tile + 477, tiles = gyre::detail::scan_tiles(count),
                        first = count - 477 - scan_tile;
  const auto values = machine.allocate<std::int32_t>(count), sums = machine.allocate<std::int32_t>(tiles);
  const auto value = [](gyre::index i) { return static_cast<std::int32_t>(i % 7 + 1); };
  for (gyre::index i = first; i < count; ++i) values[static_cast<std::size_t>(i)] = value(i);
  const auto run = [&](auto kernel, auto... arguments) {
    gyre_test::run_last_blocks(device.device(), tiles, [&] {
      gyre::simt::launch(kernel, dim3(static_cast<unsigned>(tiles)), gyre::detail::scan_threads, 0, device.device().stream(),
                         arguments...);
    });
  };
  run(gyre::detail::sum_tiles<>, static_cast<const std::int32_t*>(values.data()), count, sums.data());
  std::int32_t of_tile = 0, of_rest = 0;
  for (gyre::index i = first; i < count; ++i) (i < first + scan_tile ? of_tile : of_rest) += value(i);
  CHECK(sums[tiles - 2] == of_tile);
  CHECK(sums[tiles - 1] == of_rest);
  sums[tiles - 2] = 1000, sums[tiles - 1] = 1000 + of_tile;
  run(gyre::detail::scan_tiles_from<>, values.data(), count, static_cast<const std::int32_t*>(sums.data()));
  std::int32_t expected = 1000;
  gyre::index wrong = 0;
  for (gyre::index i = first; i < count; ++i) {
    wrong += values[static_cast<std::size_t>(i)] != expected;
    expected += value(i);
  }
  CHECK(wrong == 0);
}
