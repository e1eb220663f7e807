// [own_unit]
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gyre/backend/cpu/pool.hpp>

using gyre::index;
using gyre::thread_pool;

TEST_CASE("every task runs exactly once, whatever the number of threads", "[threads]") {
  for (int threads : {1, 2, 3, 5}) {
    thread_pool pool(threads);
    REQUIRE(pool.threads() == threads);
    for (index tasks : {0, 1, 2, 3, 7, 100, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<std::size_t>(tasks));
      std::atomic<bool> worker_in_range{true};
      pool.run(tasks, [&](index task, int worker) {
        hits[static_cast<std::size_t>(task)].fetch_add(1);
        if (worker < 0 || worker >= threads) worker_in_range = false;
      });
      for (auto& h : hits) REQUIRE(h.load() == 1);
      REQUIRE(worker_in_range.load());
    }
  }
}

TEST_CASE("10^5 runs in a row lose nothing and see each other's results", "[threads]") {
  for (int threads : {2, 3}) {
    thread_pool pool(threads);
    std::vector<long> plain(17, 0);  // not atomic: each run must happen before the next
    for (int run = 0; run < 100000; ++run)
      pool.run(17, [&](index task, int) { plain[static_cast<std::size_t>((task + run) % 17)] += task + 1; });
    const long sum = std::accumulate(plain.begin(), plain.end(), 0L);
    REQUIRE(sum == 100000L * (17 * 18 / 2));
  }
}

TEST_CASE("more threads than cores: a worker that comes late to a run leaves the next one alone", "[threads]") {
  thread_pool pool(8);
  std::vector<int> hits(32);
  for (int run = 0; run < 20000; ++run) {
    const std::size_t tasks = static_cast<std::size_t>(2 + run % 31);
    const auto touch = [&, run](index task, int) {
      hits[static_cast<std::size_t>(task)] += 1;
      if (run % 97 == 0) std::this_thread::yield();
    };
    pool.run(static_cast<index>(tasks), touch);
    for (std::size_t t = 0; t < hits.size(); ++t)
      if (hits[t] != (t < tasks ? 1 : 0)) FAIL("run " << run << ": task " << t << " ran " << hits[t] << " times");
    std::fill(hits.begin(), hits.end(), 0);
  }
}

TEST_CASE("a worker that is held up does not hold up the others' tasks", "[threads]") {
  thread_pool pool(2);
  std::atomic<int> others{0};
  pool.run(64, [&](index task, int) {
    if (task == 63) {  // the last task of worker 1's share waits for all tasks but itself
      while (others.load() < 63) std::this_thread::yield();
    } else {
      others.fetch_add(1);
    }
  });
  REQUIRE(others.load() == 63);
  others = 0;
  pool.run(64, [&](index task, int) {
    if (task == 0) {  // the caller's first task: the other thread must do all the rest
      while (others.load() < 63) std::this_thread::yield();
    } else {
      others.fetch_add(1);
    }
  });
  REQUIRE(others.load() == 63);
}

TEST_CASE("runs work after the workers went to sleep", "[threads]") {
  thread_pool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> count{0};
    pool.run(9, [&](index, int) { count.fetch_add(1); });
    REQUIRE(count.load() == 9);
  }
}

TEST_CASE("a caller that waits long is woken", "[threads]") {
  thread_pool pool(2);
  std::atomic<int> count{0};
  std::atomic<bool> taken{false};
  pool.run(2, [&](index task, int) {
    if (task == 0) {
      while (!taken.load()) std::this_thread::yield();
    } else {
      taken = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    count.fetch_add(1);
  });
  REQUIRE(count.load() == 2);
}

TEST_CASE("the exception of the lowest throwing task reaches the caller and the pool stays usable", "[threads]") {
  for (int threads : {1, 2, 3}) {
    thread_pool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> count{0};
      std::string what;
      try {
        pool.run(50, [&](index task, int) {
          count.fetch_add(1);
          if (task % 10 == 7) throw std::runtime_error("task " + std::to_string(task));
        });
      } catch (const std::runtime_error& e) {
        what = e.what();
      }
      REQUIRE(what == "task 7");
      REQUIRE(count.load() == 50);
    }
    REQUIRE_THROWS_AS(pool.run(1, [](index, int) { throw std::logic_error("one"); }), std::logic_error);
    std::atomic<int> count{0};
    pool.run(50, [&](index, int) { count.fetch_add(1); });
    REQUIRE(count.load() == 50);
  }
}

TEST_CASE("a nested run is done inline by the same worker", "[threads]") {
  for (int threads : {1, 2, 3}) {
    thread_pool pool(threads);
    std::atomic<int> count{0}, elsewhere{0};
    pool.run(20, [&](index, int outer) {
      pool.run(10, [&](index, int inner) {
        count.fetch_add(1);
        if (inner != outer) elsewhere.fetch_add(1);
      });
    });
    REQUIRE(count.load() == 200);
    REQUIRE(elsewhere.load() == 0);
  }
}

TEST_CASE("user threads may share a pool", "[threads]") {
  thread_pool pool(2);
  std::vector<long> sums(3, 0);
  std::vector<std::thread> users;
  for (std::size_t u = 0; u < sums.size(); ++u)
    users.emplace_back([&, u] {
      for (int round = 0; round < 60; ++round) {
        std::vector<long> parts(8, 0);
        pool.run(8, [&](index task, int worker) {
          long* mine = pool.scratch<long>(worker, 64);  // a neighbour's use of it would be seen
          for (int i = 0; i < 64; ++i) mine[i] = task;
          std::this_thread::yield();
          parts[static_cast<std::size_t>(task)] = std::accumulate(mine, mine + 64, 0L);
        });
        sums[u] += std::accumulate(parts.begin(), parts.end(), 0L);
      }
    });
  for (auto& t : users) t.join();
  for (long s : sums) REQUIRE(s == 60L * 64 * 28);
}

TEST_CASE("scratch is aligned, kept, and one task's alone", "[threads]") {
  thread_pool pool(2);
  std::vector<const void*> first(2), second(2);
  pool.run(64, 4096 * sizeof(double),
           [&](index, int w) { first[static_cast<std::size_t>(w)] = pool.scratch<double>(w, 4096); });
  pool.run(64, [&](index, int w) { second[static_cast<std::size_t>(w)] = pool.scratch<double>(w, 4096); });
  for (std::size_t w = 0; w < 2; ++w) {
    REQUIRE(reinterpret_cast<std::uintptr_t>(second[w]) % 64 == 0);
    if (first[w] && second[w]) REQUIRE(first[w] == second[w]);
  }
  std::atomic<bool> kept{true};
  pool.run(8, [&](index task, int w) {
    index* outer = pool.scratch<index>(w, 100);
    std::fill(outer, outer + 100, task);
    pool.run(3, [&](index, int inner_worker) {
      index* inner = pool.scratch<index>(inner_worker, 1000);
      std::fill(inner, inner + 1000, index{-1});
    });
    for (int i = 0; i < 100; ++i)
      if (outer[i] != task) kept = false;
  });
  REQUIRE(kept.load());
  REQUIRE_THROWS_AS(pool.scratch<float>(0, 1), gyre::error);

  thread_pool::exclusive mine(pool);
  float* shared = mine.scratch<float>(64);
  pool.run(64, [&](index task, int w) {
    *pool.scratch<float>(w, 1) = -1.0f;
    shared[task] = static_cast<float>(task);
  });
  for (int i = 0; i < 64; ++i) REQUIRE(shared[i] == static_cast<float>(i));
}

TEST_CASE("a pool without threads is refused", "[threads]") {
  REQUIRE_THROWS_AS(thread_pool(0), gyre::error);
  REQUIRE_THROWS_AS(thread_pool(-3), gyre::error);
  REQUIRE(thread_pool::default_threads() >= 1);
}
