// What the dry backend books for routing.
#include <catch2/catch.hpp>

#include <gyre/backend/dry.hpp>
#include <gyre/backend/reference.hpp>

using gyre::matrix_view, gyre::operation;

TEST_CASE("routing is booked by its operands, apart from products", "[dry][routing]") {
  gyre::dry<gyre::reference> b;
  constexpr gyre::index rows = 10, experts = 16, active = 4, width = 8, pairs = rows * active;
  const matrix_view<const float> scores(nullptr, rows, experts), x(nullptr, rows, width), y(nullptr, pairs, width);
  const matrix_view<float> d_scores(nullptr, rows, experts), to_x(nullptr, rows, width), to_y(nullptr, pairs, width);
  float* const s = nullptr;
  const float* const c = nullptr;
  std::int32_t* const n = nullptr;
  const gyre::batch_layout layout = gyre::batch_layout::uniform(2, 5);
  b.route(scores, c, 1.0, active, n, s, s);
  b.route_backward(c, c, n, c, 1.0, active, d_scores);
  b.group_pairs(n, pairs, experts, n, n, n);
  b.spread(x, n, active, to_y);
  b.collect(y, n, c, active, to_x);
  b.collect_backward(x, y, n, c, active, to_y, s);
  b.router_loss(scores, 1.0, n, active, layout, {1, 1}, s);
  b.router_loss_backward(scores, 1.0, n, active, layout, {1, 1}, 1.0f, d_scores);
  const auto booked = [&](operation what) { return b.costs[static_cast<std::size_t>(what)]; };
  const auto bytes = [&](operation what) { return booked(what).bytes; };
  CHECK(bytes(operation::route) == 4 * (rows * experts + 3 * pairs));
  CHECK(bytes(operation::route_backward) == 4 * (rows * experts + 4 * pairs));
  CHECK(bytes(operation::group_pairs) == 4 * (3 * pairs + experts + 1));
  CHECK(bytes(operation::spread) == 4 * (2 * pairs * width + pairs));
  CHECK(bytes(operation::collect) == 4 * (pairs * width + 2 * rows * width + 2 * pairs));
  CHECK(bytes(operation::collect_backward) == 4 * (rows * width + 2 * pairs * width + 4 * pairs));
  CHECK(bytes(operation::router_loss) == 4 * (rows * experts + pairs));
  CHECK(bytes(operation::router_loss_backward) == 4 * (3 * rows * experts + pairs));
  CHECK(booked(operation::route).elementwise_flops == rows * experts);
  CHECK(booked(operation::collect).elementwise_flops == pairs * width);
  CHECK(b.total().product_flops == 0);
  CHECK(b.total().calls == 8);
}
