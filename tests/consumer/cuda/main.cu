#include <cstdio>

#include <gyre/backend/cuda.hpp>

int main() {
  try {
    gyre::cuda device;
    const gyre::matrix_view<float> x(reinterpret_cast<float*>(device.allocate(4 * sizeof(float))), 2, 2);
    device.fill(x, 3.0f);
    device.finish();
    const bool right = x[1][1] == 3.0f;
    device.deallocate(reinterpret_cast<std::byte*>(x.data), 4 * sizeof(float));
    return right ? 0 : 1;
  } catch (const gyre::error& why) {
    std::printf("compiled and linked; skipped: %s\n", why.what());
    return 0;
  }
}
