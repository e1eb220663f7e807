// Bank conflicts and sectors: known patterns must cost what they cost on a GPU.
#include <string_view>

#include "suite.hpp"

namespace suite {
namespace {

template <int Pitch>
GYRE_KERNEL void columns(float* out) {
  GYRE_SHARED(float[32][Pitch], tile);
  for (unsigned i = 0; i < 32; ++i) tile[i][threadIdx.x] = 1;
  __syncthreads();
  float sum = 0;
  for (unsigned i = 0; i < 32; ++i) sum += tile[threadIdx.x][i];
  out[threadIdx.x] = sum;
}
template <int Stride>
GYRE_KERNEL void strided(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x * Stride];
}
template <int = 0>
GYRE_KERNEL void vectors(const float4* x, float4* y) {
  y[threadIdx.x] = x[threadIdx.x];
}

// The ratio of what a kind of access cost to the ideal, over the whole kernel.
double ratio(simt::machine& m, bool shared, bool write) {
  simt::access_cost all;
  for (const simt::access_cost& c : m.take_costs()) {
    expect(c.line > 0 && c.file.ends_with("costs.cpp"), "costs have lines");
    if (c.shared == shared && c.write == write) all.transfers += c.transfers, all.ideal += c.ideal;
  }
  return all.ratio();
}

}  // namespace

void check_costs() {
  simt::machine m;
  m.settings.count_accesses = true;
  auto x = m.allocate<float>(32 * 32), y = m.allocate<float>(128);
  simt::launch(columns<32>, 1, 32, 0, &m, y.data());
  expect(ratio(m, true, false) == 32, "columns of 32: all lanes meet in one bank");
  simt::launch(columns<33>, 1, 32, 0, &m, y.data());
  expect(ratio(m, true, false) == 1, "columns of 33: each lane has a bank");
  simt::launch(strided<1>, 1, 32, 0, &m, x.data(), y.data());
  expect(ratio(m, false, false) == 1, "neighbouring elements fill their sectors");
  simt::launch(strided<8>, 1, 32, 0, &m, x.data(), y.data());
  expect(ratio(m, false, false) == 8, "each lane takes a sector of its own");
#if !defined(__OPTIMIZE__)  // which may take vectors apart
  simt::launch(vectors<>, 1, 32, 0, &m, reinterpret_cast<const float4*>(x.data()), reinterpret_cast<float4*>(y.data()));
  expect(ratio(m, false, true) == 1, "vectors are stored whole");
#endif
}

}  // namespace suite
