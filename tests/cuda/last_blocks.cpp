// Offsets beyond 2^31 and 2^32: the last two blocks of each launch, on arrays larger than the machine.
#include "window.hpp"

#include <array>
#include <deque>
#include <vector>

using gyre::operation;

namespace {

constexpr gyre::index ending = 2, cols = 65544;  // of the rows that are compared

// A thread has a pack; matrices without gaps are one row, those of gather are not.
constexpr gyre::index block = gyre::index{gyre::detail::elementwise_threads} * gyre::detail::pack_width<float>;
constexpr gyre::index blocks_of(gyre::index elements) { return (elements + block - 1) / block; }

template <operation Op>
void check_elementwise(gyre::index (*blocks)(gyre::index rows) = [](gyre::index rows) { return blocks_of(rows * cols); }) {
  gyre_test::check_last_blocks<float, Op>({{"rows", ending}, {"cols", cols}, {"source", 7}}, cols, blocks);
}

/// Small vectors at the end of vectors that are longer than 2^32: numbers that no update leaves alone.
struct vectors {
  static constexpr gyre::index ending = 2500, count = gyre_test::beyond + ending;

  std::array<std::vector<float>, 4> small;
  std::deque<gyre_test::large_array<float>> large;

  explicit vectors(gyre_test::shuffled_device& device) {
    for (std::size_t n = 0; n < small.size(); ++n) {
      for (gyre::index i = 0; i < ending; ++i) small[n].push_back(0.5f + static_cast<float>((i * 7 + 3) % 101) / 64);
      large.emplace_back(device, count, std::span<const float>(small[n]));
    }
  }
  std::array<float*, 4> at_large() { return {large[0].data(), large[1].data(), large[2].data(), large[3].data()}; }
  std::array<float*, 4> at_small() { return {small[0].data(), small[1].data(), small[2].data(), small[3].data()}; }
};

/// update(device, vectors, count) writes the first `written` vectors.
template <class Update>
void check_update(std::size_t written, Update update) {
  gyre_test::shuffled_cuda device;
  vectors v(device.device());
  constexpr unsigned items = gyre::detail::update_threads * static_cast<unsigned>(gyre::detail::pack_width<float>);
  gyre_test::run_last_blocks(device.device(), gyre::detail::blocks_for(vectors::count, items).x,
                             [&] { update(device, v.at_large(), vectors::count); });
  // The machine does not know the host's memory: the same on the ends, in its own.
  std::deque<gyre::simt::device_array<float>> copies;
  std::array<float*, 4> at;
  for (std::size_t n = 0; n < at.size(); ++n) {
    copies.push_back(device.device().machine().allocate<float>(vectors::ending));
    std::copy(v.small[n].begin(), v.small[n].end(), copies[n].begin());
    at[n] = copies[n].data();
  }
  update(device, at, vectors::ending);
  for (std::size_t n = 0; n < written; ++n) v.large[n].check({at[n], static_cast<std::size_t>(vectors::ending)});
}

}  // namespace

TEST_CASE("elementwise kernels reach elements beyond 2^32", "[cuda_kernels]") {
  check_elementwise<operation::fill>();
  check_elementwise<operation::copy>();
  check_elementwise<operation::add>();
  check_elementwise<operation::add_scaled>();
  check_elementwise<operation::gather>([](gyre::index rows) { return rows * blocks_of(cols); });
}

TEST_CASE("rows far from each other are gathered, embedded and given gradients", "[cuda_kernels]") {
  // Three rows, the last of which begins beyond 2^32.
  gyre_test::shuffled_cuda device;
  const gyre::index stride = gyre_test::beyond / 2 + 8, n = 5;
  auto& machine = device.device().machine();
  const auto table = machine.allocate<float>(static_cast<std::size_t>(2 * stride + n)), y = machine.allocate<float>(2 * n);
  const gyre::matrix_view<float> far(table.data(), 3, n, stride), near(y.data(), 2, n);
  const std::vector<gyre::index> from{2, 0};
  const std::vector<gyre::token> ids{2, 0};
  for (gyre::index j = 0; j < n; ++j) far[0][j] = static_cast<float>(j), far[2][j] = static_cast<float>(10 * j + 1);
  const auto holds = [&](float by) {
    for (gyre::index j = 0; j < n; ++j)
      if (near[0][j] != by * static_cast<float>(10 * j + 1) || near[1][j] != by * static_cast<float>(j)) return false;
    return true;
  };
  device.gather(gyre::matrix_view<const float>(far), std::span(from), near);
  CHECK(holds(1));
  device.embed(gyre::matrix_view<const float>(far), std::span(ids), 2, near);
  CHECK(holds(2));
  device.embed_backward(gyre::matrix_view<const float>(near), std::span(ids), 3, far);
  for (gyre::index j = 0; j < n; ++j) {
    CHECK(far[0][j] == 7 * static_cast<float>(j));
    CHECK(far[2][j] == 7 * static_cast<float>(10 * j + 1));
  }
}

TEST_CASE("gradients of embeddings come from rows beyond 2^32", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  auto& machine = device.device().machine();
  const gyre::index rows = gyre_test::beyond / cols + 3;
  std::vector<float> last(3 * cols);
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = static_cast<float>(i % 509);
  const gyre_test::large_array<float> dy(device.device(), rows * cols, std::span<const float>(last));
  const auto dtable = machine.allocate<float>(2 * cols);
  const auto ids = machine.allocate<gyre::token>(3), places = machine.allocate<std::int32_t>(3);
  for (std::size_t n = 0; n < 3; ++n) ids[n] = n > 0, places[n] = static_cast<std::int32_t>(rows) - 3 + static_cast<int>(n);
  std::fill(dtable.begin(), dtable.end(), 1.0f);
  // The blocks of the second id, by its first place.
  const unsigned tiles = gyre::detail::embedding_tiles<float>(cols);
  gyre_test::run_last_blocks(device.device(), 2 * tiles, [&] {
    gyre::simt::launch(gyre::detail::embed_backward_rows<true, float, float>, 3 * tiles, gyre::detail::embedding_threads, 0,
                       device.device().stream(), gyre::matrix_view<const float>(dy.data(), rows, cols), ids.data(),
                       places.data(), 3, 2.0f, gyre::matrix_view<float>(dtable.data(), 2, cols), tiles);
  });
  bool same = true;
  for (std::size_t j = cols - gyre::detail::embedding_threads; j < cols; ++j)
    same = same && dtable[cols + j] == 1 + 2 * last[cols + j] + 2 * last[2 * cols + j];
  CHECK(same);
}

TEST_CASE("places of rows are counted up to 2^31 - 1", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index count = (gyre::index{1} << 31) - 1;
  const auto numbers = device.device().machine().allocate<std::int32_t>(static_cast<std::size_t>(count));
  const dim3 blocks = gyre::detail::blocks_for(count, gyre::detail::embedding_threads);
  gyre_test::run_last_blocks(device.device(), blocks.x, [&] {
    gyre::simt::launch(gyre::detail::count_up<>, blocks, gyre::detail::embedding_threads, 0, device.device().stream(), count,
                       numbers.data());
  });
  for (gyre::index i = count - 130; i < count; ++i) CHECK(numbers[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("rows of logits and embeddings reach elements beyond 2^32", "[cuda_kernels]") {
  gyre_test::check_last_blocks<float, operation::cross_entropy>(
      {{"rows", ending}, {"vocabulary", cols}, {"gradient", 1}, {"spread", 3}}, cols, [](gyre::index rows) { return rows; });
  gyre_test::check_last_blocks<float, operation::embed>(
      {{"rows", ending}, {"vocabulary", 7}, {"cols", cols}}, cols,
      [](gyre::index rows) { return rows * static_cast<gyre::index>(gyre::detail::embedding_tiles<float>(cols)); });
}

TEST_CASE("initial states reach elements beyond 2^32", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  const gyre::index rows = gyre_test::beyond / cols + 3;
  const gyre::state_key key{gyre::seed{5}, 9};
  gyre::batch_layout all, end;
  all.add(1, 0, 8), all.add(rows - 1, 0, 9), end.add(ending, rows - 1 - ending, 9);
  std::vector<float> fresh(ending * cols, 100);
  const gyre_test::large_array<float> y(device.device(), rows * cols, std::span<const float>(fresh));
  const gyre::index tiles = (cols + gyre::detail::random_normal_tile - 1) / gyre::detail::random_normal_tile;
  gyre_test::run_last_blocks(device.device(), rows * tiles, [&] {
    device.random_normal(gyre::matrix_view<float>(y.data(), rows, cols), all, key, 0.5, false);
  });
  gyre::reference().random_normal(gyre::matrix_view<float>(fresh.data(), ending, cols), end, key, 0.5, false);
  y.check(fresh);
}

TEST_CASE("updates reach scalars beyond 2^32", "[cuda_kernels]") {
  check_update(1, [](auto& device, auto v, gyre::index count) { device.combine(2.0f, v[1], 3.0f, v[0], count); });
  check_update(1, [](auto& device, auto v, gyre::index count) {
    const auto squares = device.device().machine().template allocate<double>(1);
    squares[0] = 2;
    device.unit(static_cast<const float*>(v[1]), squares.data(), v[0], count);
  });
  check_update(1, [](auto& device, auto v, gyre::index count) {
    using angles = gyre::detail::atan2_pack<float>;
    const auto rate = device.device().machine().template allocate<double>(1);
    rate[0] = 0.2;
    constexpr unsigned threads = gyre::detail::update_threads;
    gyre::simt::launch(gyre::detail::for_each_pack<true, float, angles>, gyre::detail::blocks_for(count, 4 * threads), threads,
                       0, device.device().stream(), count,
                       angles(v[0], v[1], v[2], rate.data(), {.shrink = 0.1, .v_correction = 0.5}));
  });
  check_update(3, [](auto& device, auto v, gyre::index count) {
    device.adamw_update(v[0], v[3], v[1], v[2], count, {0.5, 0.9, 0.95, 1e-8, 1e-3, 0.01, 0.6});
  });
}

TEST_CASE("sums reach scalars beyond 2^32", "[cuda_kernels]") {
  gyre_test::shuffled_cuda device;
  vectors v(device.device());
  auto& machine = device.device().machine();
  const auto check = [&](auto large, auto small) {
    using term = decltype(large);
    constexpr auto chunk = static_cast<unsigned>(gyre::detail::sum_chunk<float>);
    const dim3 blocks = gyre::detail::blocks_for(vectors::count, chunk);
    const auto sums = machine.template allocate<double>(blocks.x), sum = machine.template allocate<double>(1);
    const auto kernel = gyre::detail::sum_of_chunks<true, float, term>;
    gyre_test::run_last_blocks(device.device(), blocks.x, [&] {
      gyre::simt::launch(kernel, blocks, gyre::detail::sum_threads, 0, device.device().stream(), vectors::count, large,
                         sums.data());
    });
    gyre::simt::launch(kernel, 1, gyre::detail::sum_threads, 0, device.device().stream(), vectors::ending, small, sum.data());
    CHECK(sums[blocks.x - 2] == 0);  // sparse memory holds zeros
    CHECK(sums[blocks.x - 1] == sum[0]);
  };
  static_assert(gyre_test::beyond % gyre::detail::sum_chunk<float> == 0);  // the last chunk is the ends
  std::deque<gyre::simt::device_array<float>> copies;
  for (const auto& x : v.small) {
    copies.push_back(machine.allocate<float>(vectors::ending));
    std::copy(x.begin(), x.end(), copies.back().begin());
  }
  const gyre::clipped_atan2_numbers numbers{0.5, 0.9, 0.95, 1e-6, 0, 0, 1};
  check(gyre::detail::number_term<float, false>{v.large[0].data()}, gyre::detail::number_term<float, false>{copies[0].data()});
  check(gyre::detail::number_term<float, true>{v.large[0].data()}, gyre::detail::number_term<float, true>{copies[0].data()});
  check(gyre::detail::clipped_moments_term<float>(v.large[0].data(), v.large[1].data(), v.large[2].data(), numbers),
        gyre::detail::clipped_moments_term<float>(copies[0].data(), copies[1].data(), copies[2].data(), numbers));
  for (std::size_t n = 1; n < 3; ++n) v.large[n].check({copies[n].data(), copies[n].size()});
}
