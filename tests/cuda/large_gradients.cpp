// Gradients of attention and losses of routers on rows beyond 2^32 elements: the last blocks of each kernel.
#include "window.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gyre_test {  // at global scope POSIX has an `index` of its own
namespace {

using gyre::index;
using gyre::matrix_view;
namespace kernels = gyre::detail;

constexpr index most_blocks = (index{1} << 31) - 1;  // what CUDA allows in x
constexpr index lanes = static_cast<index>(kernels::warp_lanes);

/// A matrix whose last rows hold numbers, behind rows of zeros, and those rows alone. With several `parts`, so each of them.
template <class T>
class ends {
 public:
  ends(shuffled_cuda& device, index rows, index ending, index cols, float first, index parts = 1)
      : rows_(rows),
        ending_(ending),
        cols_(cols),
        parts_(parts),
        all_(device.device().machine().template allocate<T>(static_cast<std::size_t>(parts * rows * cols), "all rows")),
        alone_(device.device().machine().template allocate<T>(static_cast<std::size_t>(parts * ending * cols), "last rows")) {
    for (std::size_t n = 0; n < alone_.size(); ++n) alone_[n] = T(std::sin(first + 0.37f * static_cast<float>(n)));
    for (index part = 0; part < parts; ++part) std::memcpy(at_large(part), at_small(part), bytes());
  }
  matrix_view<T> large() const { return {all_.data(), parts_ * rows_, cols_}; }
  matrix_view<T> small() const { return {alone_.data(), parts_ * ending_, cols_}; }
  /// The last rows of `large` have the bits of `small`.
  bool same() const {
    for (index part = 0; part < parts_; ++part)
      if (std::memcmp(at_large(part), at_small(part), bytes()) != 0) return false;
    return true;
  }

 private:
  std::size_t bytes() const { return sizeof(T) * static_cast<std::size_t>(ending_ * cols_); }
  T* at_large(index part) const { return all_.data() + ((part + 1) * rows_ - ending_) * cols_; }
  T* at_small(index part) const { return alone_.data() + part * ending_ * cols_; }

  index rows_, ending_, cols_, parts_;
  gyre::simt::device_array<T> all_, alone_;
};

/// One head. The tasks of the last two blocks are those of an ordinary call; so are their rows, beyond 2^32 elements.
template <class T, class QueryTile, class KeyTile>
void check_attention_gradients(index width, auto query_kernel, auto key_kernel, unsigned threads, std::size_t query_bytes,
                               std::size_t key_bytes) {
  using kernels::attention_gradient_task;
  using gradients = kernels::attention_gradients<T, float>;
  constexpr index left = static_cast<index>(QueryTile::left), ending = 2 * left;
  static_assert(KeyTile::left == QueryTile::left);
  const index rows = beyond / width + ending;
  shuffled_cuda device;
  auto& machine = device.device().machine();
  const auto made = [&](float first) { return ends<T>(device, rows, ending, width, first); };
  const auto q = made(1), k = made(2), v = made(3), o = made(4), d_o = made(5), dq = made(6), dk = made(7), dv = made(8);
  const ends<float> lse(device, rows, ending, 1, 9), dot(device, rows, ending, 1, 10);
  const auto with = [&](auto view, const attention_gradient_task* tasks) {
    gradients x{view(q),  view(k),  view(v), view(o), view(lse).data, view(d_o), view(dot).data, view(dq),
                view(dk), view(dv), 1,       1,       width,          0.25f};
    x.tasks = tasks;
    return x;
  };
  const auto all_tasks = machine.allocate<attention_gradient_task>(static_cast<std::size_t>(most_blocks), "tasks");
  const auto few_tasks = machine.allocate<attention_gradient_task>(2);
  for (const index n : {0, 1}) {
    few_tasks[static_cast<std::size_t>(n)] = {0, ending, n * left, left};
    all_tasks[static_cast<std::size_t>(most_blocks - 2 + n)] = {rows - ending, ending, n * left, left};
  }
  const gradients large = with([](const auto&x) { return x.large(); }, all_tasks.data()),
                  small = with([](const auto&x) { return x.small(); }, few_tasks.data());

  constexpr unsigned rows_of_block = kernels::attention_threads / kernels::warp_lanes;
  const auto dot_rows = [&](const gradients& x) {
    gyre::simt::launch(kernels::dot_rows<T, float>, kernels::blocks_for(x.o.rows, rows_of_block), kernels::attention_threads, 0,
                       device.device().stream(), x);
  };
  dot_rows(small);
  run_last_blocks(device.device(), static_cast<index>(kernels::blocks_for(rows, rows_of_block).x), [&] { dot_rows(large); });
  for (index n = 1; n <= static_cast<index>(rows_of_block) + 1; ++n) CHECK(large.dot[rows - n] == small.dot[ending - n]);
  for (index n = 1; n <= ending; ++n) large.dot[rows - n] = small.dot[ending - n];

  const auto run = [&](auto kernel, std::size_t shared_bytes, index blocks, const gradients& x) {
    gyre::simt::launch(kernel, dim3(static_cast<unsigned>(blocks)), threads, shared_bytes, device.device().stream(), x);
  };
  const auto check = [&](auto kernel, std::size_t shared_bytes) {
    run(kernel, shared_bytes, 2, small);
    run_last_blocks(device.device(), most_blocks, [&] { run(kernel, shared_bytes, most_blocks, large); });
  };
  const ends<T> untouched = made(6);
  check(query_kernel, query_bytes);
  CHECK(dq.same());
  CHECK(std::memcmp(dq.small().data, untouched.small().data, sizeof(T) * static_cast<std::size_t>(ending * width)) != 0);
  check(key_kernel, key_bytes);
  CHECK((dk.same() && dv.same()));
}

}  // namespace

TEST_CASE("gradients of attention reach rows beyond 2^32 elements in the last blocks of the largest grid", "[cuda_kernels]") {
  using shapes = kernels::attention_gradient_shapes<float, 64>;
  using tile = shapes::tile;
  check_attention_gradients<float, tile, tile>(
      8, kernels::query_gradients<float, float, tile>, kernels::key_gradients<float, float, tile>, kernels::attention_threads,
      shapes::tiles_bytes + shapes::scores_bytes, shapes::tiles_bytes + 2 * shapes::scores_bytes);
}

TEST_CASE("gradients of attention on tensor cores reach rows beyond 2^32 elements", "[cuda_kernels]") {
  using of_queries = kernels::bf16_tile<64, 4>;
  using of_keys = kernels::bf16_tile<64, 4, 64>;
  check_attention_gradients<gyre::bfloat16, of_queries, of_keys>(
      64, kernels::query_gradients_bf16<float, of_queries>, kernels::key_gradients_bf16<float, of_keys>, of_queries::threads,
      kernels::gradients_bf16_bytes<of_queries>, kernels::gradients_bf16_bytes<of_keys>);
}

TEST_CASE("gradients of attention over depth reach rows beyond 2^32 elements", "[cuda_kernels]") {
  constexpr index width = 8, ending = 3, slots = 2, rows = beyond / width + ending;
  shuffled_cuda device;
  const auto made = [&](float first, index parts = 1) { return ends<float>(device, rows, ending, width, first, parts); };
  const auto q = made(1), o = made(2), d_o = made(3), dq = made(4), k = made(5, slots), v = made(6, slots), dk = made(7, slots),
             dv = made(8, slots), dk_before = made(7, slots);
  const ends<float> lse(device, rows, ending, 1, 9), weights(device, rows, ending, slots, 10),
      d_scores(device, rows, ending, slots, 11);
  const gyre::attention_shape shape{1, 1, width, 0.25};
  const auto queries = [&](auto view) {
    gyre::simt::launch(kernels::differentiate_depth_queries<float, float>,
                       kernels::blocks_for(view(q).rows * lanes, kernels::depth_threads), kernels::depth_threads, 0,
                       device.device().stream(), matrix_view<const float>(view(q)), matrix_view<const float>(view(k)),
                       matrix_view<const float>(view(v)), matrix_view<const float>(view(o)),
                       static_cast<const float*>(view(lse).data), matrix_view<const float>(view(d_o)), slots, shape, view(dq),
                       view(weights).data, view(d_scores).data);
  };
  const auto keys = [&](auto view) {
    kernels::launch_for_each_element<float>(
        device.device().stream(), view(dk).rows, width, std::false_type{},
        kernels::differentiate_depth_slot<float, float>{view(q), view(d_o), view(weights).data, view(d_scores).data, slots,
                                                        shape, view(dk), view(dv)});
  };
  const auto small = [](const auto& x) { return x.small(); };
  const auto large = [](const auto& x) { return x.large(); };
  queries(small);
  run_last_blocks(device.device(), static_cast<index>(kernels::blocks_for(rows * lanes, kernels::depth_threads).x),
                  [&] { queries(large); });
  CHECK((dq.same() && weights.same() && d_scores.same()));
  keys(small);
  constexpr index rows_of_block = static_cast<index>(kernels::elementwise_threads) / width;
  run_last_blocks(device.device(), (slots * rows + rows_of_block - 1) / rows_of_block, [&] { keys(large); });
  CHECK((dk.same() && dv.same()));
  CHECK(dk.small().data[0] != dk_before.small().data[0]);
}

TEST_CASE("losses of a router reach rows beyond 2^32 elements", "[cuda_kernels]") {
  constexpr index experts = 3, active = 2, ending = 9, rows = beyond / active + ending;
  using S = float;
  shuffled_cuda device;
  auto& machine = device.device().machine();
  const ends<S> scores(device, rows, ending, experts, 1), d_scores(device, rows, ending, experts, 2);
  const ends<S> losses(device, rows, ending, 1, 3);
  const ends<std::int32_t> chosen(device, rows, ending, active, 4);
  const auto counts = machine.allocate<std::int32_t>(2 * experts), few_counts = machine.allocate<std::int32_t>(experts);
  for (const auto* zeros : {&counts, &few_counts}) std::fill(zeros->begin(), zeros->end(), 0);
  for (index n = 0; n < ending * active; ++n) {
    const auto expert = static_cast<std::int32_t>((n + n / 5) % experts);
    chosen.small().data[n] = chosen.large()[rows - ending][n] = expert;
  }
  // Two sequences, the second of which is the last rows.
  const auto spans = machine.allocate<gyre::sequence_span>(2), few_spans = machine.allocate<gyre::sequence_span>(1);
  spans[0] = {0, rows - ending, 0, 0}, spans[1] = {rows - ending, ending, 0, 1}, few_spans[0] = {0, ending, 0, 1};
  using of_rows = kernels::router_rows<S, S>;
  const of_rows large{scores.large(), 0.5f, 0.3f, 0.2f, active, spans.data(), 2, counts.data()},
      small{scores.small(), 0.5f, 0.3f, 0.2f, active, few_spans.data(), 1, few_counts.data()};
  constexpr unsigned threads = kernels::router_loss_threads;
  const auto blocks = [](index count) { return static_cast<index>(kernels::blocks_for(count, threads).x); };

  const auto count = [&](const of_rows& r, const std::int32_t* of) {
    gyre::simt::launch(kernels::count_chosen<S, S>, kernels::blocks_for(r.scores.rows * active, threads), threads, 0,
                       device.device().stream(), r, of);
  };
  count(small, chosen.small().data);
  run_last_blocks(device.device(), blocks(rows * active), [&] { count(large, chosen.large().data); });
  for (std::size_t e = 0; e < experts; ++e) CHECK(counts[experts + e] == few_counts[e]);
  CHECK(few_counts[0] + few_counts[1] + few_counts[2] == ending * active);

  const auto warps = [&](auto kernel, const of_rows& r, auto... more) {
    gyre::simt::launch(kernel, kernels::blocks_for(r.scores.rows * lanes, threads), threads, 0, device.device().stream(), r,
                       more...);
  };
  warps(kernels::router_row_losses<S, S>, small, losses.small().data);
  run_last_blocks(device.device(), blocks(rows * lanes),
                  [&] { warps(kernels::router_row_losses<S, S>, large, losses.large().data); });
  CHECK(losses.same());
  warps(kernels::router_row_losses_backward<S, S>, small, S(0.7f), d_scores.small());
  run_last_blocks(device.device(), blocks(rows * lanes),
                  [&] { warps(kernels::router_row_losses_backward<S, S>, large, S(0.7f), d_scores.large()); });
  CHECK(d_scores.same());

  // A block for each sequence: the last two of the largest grid.
  const auto all_spans = machine.allocate<gyre::sequence_span>(static_cast<std::size_t>(most_blocks), "sequences");
  const auto sums = machine.allocate<S>(static_cast<std::size_t>(most_blocks), "sums");
  const auto few = machine.allocate<S>(2);
  const auto far_rows = machine.allocate<S>(static_cast<std::size_t>(beyond + ending), "losses of rows");
  std::memcpy(far_rows.data() + beyond, losses.small().data, sizeof(S) * ending);
  const auto two = machine.allocate<gyre::sequence_span>(2);
  two[0] = {0, 4, 0, 0}, two[1] = {4, ending - 4, 0, 1};
  for (const index n : {0, 1}) {
    auto& span = all_spans[static_cast<std::size_t>(most_blocks - 2 + n)];
    span = two[static_cast<std::size_t>(n)], span.begin += beyond;
  }
  const auto sum = [&](index grid, const S* of, const gyre::sequence_span* sequences, S* to) {
    gyre::simt::launch(kernels::sum_of_sequences<S>, dim3(static_cast<unsigned>(grid)), threads, 0, device.device().stream(),
                       of, sequences, to);
  };
  sum(2, losses.small().data, two.data(), few.data());
  run_last_blocks(device.device(), most_blocks, [&] { sum(most_blocks, far_rows.data(), all_spans.data(), sums.data()); });
  for (const index n : {0, 1}) CHECK(sums[static_cast<std::size_t>(most_blocks - 2 + n)] == few[static_cast<std::size_t>(n)]);
  CHECK((few[0] != 0 && few[1] != 0));
}

}  // namespace gyre_test
