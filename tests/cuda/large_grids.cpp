// The last blocks of the largest grids there are: kernels of attention and routing that find their work by the number of their block.
#include "window.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

using gyre::operation;

namespace {

constexpr gyre::index most_blocks = (gyre::index{1} << 31) - 1;  // what CUDA allows in x

/// The last `count` blocks of the largest grid.
template <class Kernel, class... Arguments>
void run_ending(gyre_test::shuffled_device& device, std::uint64_t count, Kernel kernel, unsigned threads,
                std::size_t shared_bytes, const Arguments&... arguments) {
  const auto call = [&] {
    gyre::simt::launch(kernel, dim3(static_cast<unsigned>(most_blocks)), threads, shared_bytes, device.stream(), arguments...);
  };
  gyre_test::run_last_blocks(device, most_blocks, call, count);
}

}  // namespace

TEST_CASE("attention finds its tasks and parts up to the last block of the largest grid", "[cuda_kernels]") {
  using shapes = gyre::detail::attention_shapes<float, 64>;
  using tile = shapes::narrow;
  using gyre::detail::attention_join;
  using gyre::detail::attention_part;
  using gyre::detail::attention_task;
  constexpr gyre::index width = 8, past = 300, queries = 2 * static_cast<gyre::index>(tile::left), keys = past + queries;
  static_assert(keys > attention_part && keys <= 2 * attention_part);
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  const auto filled = [&](gyre::index rows, float begin) {
    auto memory = machine.allocate<float>(static_cast<std::size_t>(rows * width));
    for (std::size_t n = 0; n < memory.size(); ++n) memory[n] = std::sin(begin + 0.37f * static_cast<float>(n));
    return memory;
  };
  const auto q = filled(queries, 1), k = filled(keys, 2), v = filled(keys, 3), o = filled(queries, 4), lse = filled(queries, 5);
  const auto all_tasks = machine.allocate<attention_task>(static_cast<std::size_t>(most_blocks), "tasks");
  const auto all_joins = machine.allocate<attention_join>(static_cast<std::size_t>(most_blocks), "joins");
  // Of parts the numbers are large too: their offsets pass 2^32.
  constexpr gyre::index first_part = gyre::index{1} << 26, part_size = static_cast<gyre::index>(tile::left) * (width + 2);
  static_assert(first_part * part_size > gyre_test::beyond);
  const auto parts = machine.allocate<float>(static_cast<std::size_t>((first_part + 4) * part_size), "parts");

  gyre::detail::attention_operands<float, float> x{
      {q.data(), queries, width}, {o.data(), queries, width}, lse.data(), width, width};
  x.heads = x.kv_heads = 1, x.width = width, x.scale = 0.25f, x.parts = parts.data(), x.tasks = all_tasks.data();
  const auto task = [&](gyre::index group, gyre::index part, gyre::index first_key, gyre::index last_key) {
    return attention_task{k.data(),
                          v.data(),
                          nullptr,
                          0,
                          past,
                          group * static_cast<gyre::index>(tile::left),
                          static_cast<gyre::index>(tile::left),
                          first_key,
                          last_key,
                          part};
  };
  const auto last_key = [](gyre::index group) { return past + (group + 1) * static_cast<gyre::index>(tile::left); };
  const auto attend = gyre::detail::attend<float, float, tile>;
  constexpr unsigned threads = gyre::detail::attention_threads;
  constexpr std::size_t shared_bytes = shapes::shared_bytes<tile>;
  const auto results = [&] {
    std::vector<float> all(o.begin(), o.end());
    all.insert(all.end(), lse.begin(), lse.begin() + queries);
    std::fill(o.begin(), o.end(), -1.0f), std::fill(lse.begin(), lse.end(), -1.0f);
    return all;
  };

  // As an ordinary call: two tasks, two blocks.
  const auto few = machine.allocate<attention_task>(2);
  for (const gyre::index group : {0, 1}) few[static_cast<std::size_t>(group)] = task(group, -1, 0, last_key(group));
  auto ordinary = x;
  ordinary.tasks = few.data();
  gyre::simt::launch(attend, 2, threads, shared_bytes, device.device().stream(), ordinary);
  const std::vector<float> expected = results();
  CHECK(expected.front() != -1);

  for (const gyre::index group : {0, 1})
    all_tasks[static_cast<std::size_t>(most_blocks - 2 + group)] = task(group, -1, 0, last_key(group));
  run_ending(device.device(), 2, attend, threads, shared_bytes, x);
  CHECK(results() == expected);

  // The same rows with their keys in two parts each, which give the same bits.
  for (const gyre::index group : {0, 1}) {
    const gyre::index at = first_part + 2 * group;
    auto* const two = all_tasks.data() + most_blocks - 4 + 2 * group;
    two[0] = task(group, at, 0, attention_part), two[1] = task(group, at + 1, attention_part, last_key(group));
    all_joins[static_cast<std::size_t>(most_blocks - 2 + group)] = {0, group * static_cast<gyre::index>(tile::left),
                                                                    static_cast<gyre::index>(tile::left), at, 2};
  }
  run_ending(device.device(), 4, attend, threads, shared_bytes, x);
  run_ending(device.device(), 2, gyre::detail::join_parts<float, float, tile>, threads, 0, x,
             static_cast<const attention_join*>(all_joins.data()));
  CHECK(results() == expected);
}

TEST_CASE("more blocks than a grid has are refused with their number", "[cuda_kernels]") {
  using gyre::detail::blocks_for;
  CHECK(blocks_for(0, 256).x == 0);
  CHECK(blocks_for(257, 256).x == 2);
  CHECK(blocks_for(256 * most_blocks, 256).x == most_blocks);
  CHECK_THROWS_WITH(blocks_for(256 * most_blocks + 1, 256),
                    Catch::Contains("549755813633 pieces of work are 2147483648 blocks of 256; a grid has at most 2147483647"));
}

TEST_CASE("routing and attention over depth reach rows whose entries lie beyond 2^32", "[cuda_kernels]") {
  using gyre::detail::blocks_for;
  const auto warps = [](gyre::index count, unsigned threads) {
    return static_cast<gyre::index>(blocks_for(count * static_cast<gyre::index>(gyre::detail::warp_lanes), threads).x);
  };
  const auto routed = [&](gyre::index rows) { return warps(rows, gyre::detail::route_threads); };
  gyre_test::check_last_blocks<float, operation::route>({{"rows", 2}, {"experts", 3}, {"active", 2}, {"bias", 1}}, 3, routed);
  // One expert a row: rows before the last ones, of zeros, would name one twice.
  gyre_test::check_last_blocks<float, operation::route_backward>({{"rows", 2}, {"experts", 3}, {"active", 1}}, 3, routed);
  gyre_test::check_last_blocks<float, operation::depth_attention>(
      {{"rows", 2}, {"slots", 1}, {"kv_heads", 1}, {"sharing", 1}, {"width", 8}}, 8,
      [&](gyre::index rows) { return warps(rows, gyre::detail::depth_threads); });
}
