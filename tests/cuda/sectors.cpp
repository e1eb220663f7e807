// What operations on rows cost in sectors of global memory. Compiled without optimisation, which would take packs apart.
#include <catch2/catch.hpp>

#include <gyre/backend/cuda.hpp>

namespace {

/// All sectors of one operation, and the fewest that can hold what it touches.
template <class Operation>
void check_sectors(const char* name, std::uint64_t elements, std::size_t bytes, Operation operation) {
  gyre::simulated_cuda device;
  gyre::simt::machine& machine = device.device().machine();
  operation(
      device, [&](gyre::index count) { return reinterpret_cast<float*>(device.allocate(static_cast<std::size_t>(count) * 4)); },
      [&] { machine.settings.count_accesses = true; });
  std::uint64_t sectors = 0, ideal = 0;
  for (const gyre::simt::access_cost& c : machine.take_costs()) {
    if (c.shared) continue;
    INFO(name << ", " << c.file << ":" << c.line);
    CHECK(c.ratio() <= 1.25);
    sectors += c.transfers, ideal += c.ideal;
  }
  const auto least = elements * bytes / 32;
  INFO(name << ": " << sectors << " sectors, " << ideal << " by lines, " << least << " by the operation");
  CHECK(sectors >= least);
  CHECK(static_cast<double>(sectors) <= 1.25 * static_cast<double>(least));
}

}  // namespace

TEST_CASE("aligned rows are read and written in whole sectors", "[cuda_kernels]") {
  REQUIRE(gyre::simt::machine::watches_accesses());
  for (const gyre::index cols : {gyre::index{512}, gyre::index{1024}}) {  // a warp's row, and a block's
    constexpr gyre::index rows = 8;
    const auto n = static_cast<std::uint64_t>(rows * cols);
    for (const bool gain : {false, true})  // which every row reads, from the cache
      check_sectors("rms_norm", n, gain ? 12 : 8, [&](auto& device, auto take, auto count) {
        const gyre::matrix_view<float> x(take(rows * cols), rows, cols), y(take(rows * cols), rows, cols);
        device.fill(x, 1.0f);
        const gyre::matrix_view<float> gains(take(cols), 1, cols);
        device.fill(gains, 2.0f);
        float* const rstd = take(rows);
        count();
        device.rms_norm(gyre::matrix_view<const float>(x), gain ? static_cast<const float*>(gains.data) : nullptr, 1e-6, y,
                        rstd);
      });
    check_sectors("gated_silu", n, 12, [&](auto& device, auto take, auto count) {
      const gyre::matrix_view<float> h(take(2 * rows * cols), rows, 2 * cols), a(take(rows * cols), rows, cols);
      device.fill(h, 1.0f);
      count();
      device.gated_silu(gyre::matrix_view<const float>(h), a);
    });
    check_sectors("add", n, 12, [&](auto& device, auto take, auto count) {
      const gyre::matrix_view<float> x(take(rows * cols), rows, cols), y(take(rows * cols), rows, cols);
      device.fill(x, 1.0f), device.fill(y, 1.0f);
      count();
      device.add(gyre::matrix_view<const float>(x), y);
    });
  }
}
