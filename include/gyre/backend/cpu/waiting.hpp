// How a thread waits for another one that is nearly done.
#pragma once

#include <chrono>
#include <thread>

#include <gyre/config.hpp>

GYRE_BEGIN

namespace detail {

/// Tells the processor that this thread is only waiting.
inline void pause() noexcept {
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  asm volatile("yield");
#endif
}

/// Waits until `ready()`: spins briefly, then lets other threads have the core; gives up after about 200 us and returns whether
/// it came true. Bounded, because a spinning thread may be what keeps the awaited one off its core.
template <class Ready>
bool spin_until(Ready ready) {
  using clock = std::chrono::steady_clock;
  clock::time_point begin{};
  for (int round = 0;; ++round) {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      pause();
    }
    const auto now = clock::now();
    if (round == 0) begin = now;
    if (now - begin > std::chrono::microseconds(200)) return ready();
    if (now - begin > std::chrono::microseconds(30)) std::this_thread::yield();
  }
}

}  // namespace detail

GYRE_END
