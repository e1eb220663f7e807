#include <catch2/catch.hpp>
#include <cstdint>
#include <gyre/simt.hpp>

namespace {

namespace simt = gyre::simt;

struct shuffles {
  int direct, up, down, exclusive_or;
};
template <int = 0>
GYRE_KERNEL void shuffle_all(shuffles* out, int argument, int width) {
  const int lane = static_cast<int>(threadIdx.x);
  out[lane].direct = __shfl_sync(~0u, lane, argument, width);
  out[lane].up = __shfl_up_sync(~0u, lane, static_cast<unsigned>(argument), width);
  out[lane].down = __shfl_down_sync(~0u, lane, static_cast<unsigned>(argument), width);
  out[lane].exclusive_or = __shfl_xor_sync(~0u, lane, argument, width);
}

template <class T>
GYRE_KERNEL void shuffle_type(T* x) {
  x[threadIdx.x] = __shfl_sync(~0u, x[threadIdx.x], 31 - static_cast<int>(threadIdx.x));
}

template <int = 0>
GYRE_KERNEL void votes(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned ballot = __ballot_sync(~0u, lane % 3 == 0);
  const int any = __any_sync(~0u, lane == 40), all = __all_sync(~0u, lane < 32);
  const int count = __syncthreads_count(lane < 5), both = __syncthreads_and(lane < 32), either = __syncthreads_or(lane == 7);
  const unsigned match = __match_any_sync(~0u, lane / 4);
  if (lane == 9) {
    const unsigned found[] = {ballot,
                              static_cast<unsigned>(any),
                              static_cast<unsigned>(all),
                              static_cast<unsigned>(count),
                              static_cast<unsigned>(both),
                              static_cast<unsigned>(either),
                              match};
    for (int i = 0; i < 7; ++i) out[i] = found[i];
  }
}

}  // namespace

TEST_CASE("simt: shuffles read the lane that CUDA's do") {
  simt::machine m;
  auto out = m.allocate<shuffles>(32);
  for (int width = 1; width <= 32; width *= 2)
    for (int argument = 0; argument < 32; ++argument) {
      simt::launch(shuffle_all<>, 1, 32, 0, &m, out.data(), argument, width);
      for (int lane = 0; lane < 32; ++lane) {
        INFO("width " << width << ", argument " << argument << ", lane " << lane);
        const int first = lane / width * width, in_group = lane - first;
        const shuffles& got = out[static_cast<std::size_t>(lane)];
        CHECK(got.direct == first + argument % width);
        CHECK(got.up == (in_group >= argument ? lane - argument : lane));
        CHECK(got.down == (in_group + argument < width ? lane + argument : lane));
        // Lanes of earlier groups may be read, those of later ones may not.
        CHECK(got.exclusive_or == ((lane ^ argument) < first + width ? (lane ^ argument) : lane));
      }
    }
}

TEST_CASE("simt: shuffles move any type of up to 16 bytes") {
  simt::machine m;
  auto halves = m.allocate<short>(32);
  auto vectors = m.allocate<float4>(32);
  for (std::size_t i = 0; i < 32; ++i) {
    halves[i] = static_cast<short>(i);
    vectors[i] = make_float4(0, 0, 0, static_cast<float>(i));
  }
  simt::launch(shuffle_type<short>, 1, 32, 0, &m, halves.data());
  simt::launch(shuffle_type<float4>, 1, 32, 0, &m, vectors.data());
  CHECK((halves[0] == 31 && halves[31] == 0));
  CHECK((vectors[1].w == 30 && vectors[30].w == 1));
}

TEST_CASE("simt: votes and matches") {
  simt::machine m;
  auto out = m.allocate<unsigned>(7);
  simt::launch(votes<>, 1, 32, 0, &m, out.data());
  CHECK(out[0] == 0x49249249u);
  CHECK((out[1] == 0 && out[2] == 1 && out[3] == 5 && out[4] == 1 && out[5] == 1));
  CHECK(out[6] == 0x00000f00u);
}
