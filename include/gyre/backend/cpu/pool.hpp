// The threads of the `cpu` backend.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <gyre/backend/cpu/aligned.hpp>
#include <gyre/backend/cpu/waiting.hpp>
#include <gyre/core/error.hpp>
#include <gyre/core/types.hpp>

GYRE_BEGIN

/// A fixed set of threads that share the tasks of one call at a time. The caller's thread is worker 0.
///
/// Every worker begins with its own contiguous share of the tasks, the same at each call of the same size, so that data stays
/// in its core's cache; a worker whose share is done steals from the others, so a thread that lost its core delays at most
/// the task it holds. Which worker runs a task is therefore arbitrary: a task must compute the same whoever runs it.
///
/// Calls from several user threads take turns. A call from inside a task of the same pool runs inline on that worker.
class thread_pool {
 public:
  /// As many threads as the machine has, or 1 where that is unknown.
  static int default_threads() { return (std::max)(1, static_cast<int>(std::thread::hardware_concurrency())); }

  explicit thread_pool(int threads = default_threads()) {
    if (threads < 1) fail("thread_pool: ", threads, " threads asked for; at least 1 is needed");
    threads_ = threads;
    seats_ = std::make_unique<seat[]>(static_cast<std::size_t>(threads));
    try {
      for (int w = 1; w < threads; ++w) {
        at(w).thread = std::thread([this, w] { serve(w); });
        at(w).id = at(w).thread.get_id();
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() { stop(); }

  int threads() const { return threads_; }

  /// Calls f(task, worker) once for every task in [0, tasks), 0 <= worker < threads(), and returns when all are done. If tasks
  /// throw, the others still run, and the exception of the lowest such task is rethrown.
  template <class F>
  void run(index tasks, F&& f) {
    run(tasks, 0, f);
  }

  /// The same, with `scratch_bytes` of scratch made ready for every worker beforehand, so that no task allocates.
  template <class F>
  void run(index tasks, std::size_t scratch_bytes, F&& f) {
    if (tasks <= 0) return;
    if (tasks > most_tasks) fail("thread_pool::run: ", tasks, " tasks; at most ", most_tasks, " in one call");
    using body = std::remove_reference_t<F>;
    const entry inside(*this);
    start({[](void* context, index task, int worker) { (*static_cast<body*>(context))(task, worker); },
           const_cast<void*>(static_cast<const void*>(std::addressof(f))), tasks},
          inside, scratch_bytes);
  }

  /// Memory for `count` scalars, aligned to 64 bytes, that belongs to the running task until it ends; `worker` is the number
  /// given to the task. A second call in the same task gives the same memory (moved, if it must grow). A nested run's tasks
  /// get memory of their own. Contents are arbitrary. Kept for later tasks until the pool ends.
  template <class T>
  T* scratch(int worker, index count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= detail::cache_line);
    seat& s = at(worker);
    if (s.level == 0) fail("thread_pool::scratch: worker ", worker, " is in no task");
    return reinterpret_cast<T*>(s.reserve(s.level - 1, sizeof(T) * static_cast<std::size_t>((std::max)(count, index{0}))));
  }

  class exclusive;

 private:
  static constexpr index most_tasks = 0xffffffff;

  struct job {
    void (*call)(void*, index, int);
    void* context;
    index tasks;
  };

  struct block {
    detail::aligned_memory memory;
    std::size_t size = 0;
  };

  struct alignas(detail::cache_line) seat {
    // Low half: the next unclaimed task of this worker's share. High half: the number of the run it belongs to, so that a
    // worker left over from an earlier run cannot claim anything.
    std::atomic<std::uint64_t> next{0};

    alignas(detail::cache_line) std::vector<block> blocks;  // scratch, one for each level
    std::size_t level = 0;                                  // how many calls are under way on this worker, one in another
    std::thread::id id;
    std::thread thread;

    std::byte* reserve(std::size_t at, std::size_t bytes) {
      while (blocks.size() <= at) blocks.emplace_back();
      block& b = blocks[at];
      if (b.size < bytes || !b.memory) {
        const std::size_t size = (std::max)(bytes, std::size_t{4096});
        b.memory.reset();
        b.size = 0;
        b.memory = detail::allocate_aligned(size);
        b.size = size;
      }
      return b.memory.get();
    }
  };

  // A thread's presence in the pool: as one of its workers, or as the user thread whose turn it is.
  struct entry {
    thread_pool& pool;
    int worker = 0;
    bool first = false;  // has taken the turn, and gives it back

    explicit entry(thread_pool& p) : pool(p) {
      const auto me = std::this_thread::get_id();
      if (pool.turn_.load(std::memory_order_relaxed) == me) return;
      for (int w = 1; w < pool.threads_; ++w)
        if (pool.at(w).id == me) {
          worker = w;
          return;
        }
      pool.gate_.lock();
      pool.turn_.store(me, std::memory_order_relaxed);
      first = true;
    }
    entry(const entry&) = delete;
    entry& operator=(const entry&) = delete;
    ~entry() {
      if (!first) return;
      pool.turn_.store(std::thread::id(), std::memory_order_relaxed);
      pool.gate_.unlock();
    }
  };

  seat& at(int worker) { return seats_[static_cast<std::size_t>(worker)]; }
  index share(int worker, index tasks) const { return tasks * worker / threads_; }

  void start(const job& j, const entry& inside, std::size_t scratch_bytes) {
    seat& mine = at(inside.worker);
    if (scratch_bytes) mine.reserve(mine.level, scratch_bytes);
    const bool fork = threads_ > 1 && j.tasks > 1 && inside.worker == 0 && !forked_;
    // Only the thread whose turn it is writes here, between runs: the workers' scratch is at rest.
    if (fork && scratch_bytes)
      for (int w = 1; w < threads_; ++w) at(w).reserve(0, scratch_bytes);
    failure first;
    ++mine.level;
    if (fork) {
      forked_ = true;
      failure_.task.store(-1, std::memory_order_relaxed);
      share_out(j);
      forked_ = false;
      if (failure_.task.load(std::memory_order_relaxed) >= 0) first.what = std::move(failure_.what);
    } else {
      for (index t = 0; t < j.tasks; ++t) attempt(j, t, inside.worker, first);
    }
    --mine.level;
    if (first.what) std::rethrow_exception(std::move(first.what));
  }

  struct failure {
    std::atomic<index> task{-1};
    std::exception_ptr what;
  };

  void attempt(const job& j, index task, int worker, failure& lowest) noexcept {
    try {
      j.call(j.context, task, worker);
    } catch (...) {
      const std::lock_guard lock(failing_);
      const index before = lowest.task.load(std::memory_order_relaxed);
      if (before >= 0 && before < task) return;
      lowest.task.store(task, std::memory_order_relaxed);
      lowest.what = std::current_exception();
    }
  }

  void share_out(const job& j) {
    const std::uint32_t number = epoch_.load(std::memory_order_relaxed) + 1;
    done_.store(0, std::memory_order_relaxed);
    // Shares first, then the job: whoever sees a part of the new job can no longer claim a task of the old one.
    for (int w = 0; w < threads_; ++w)
      at(w).next.store(std::uint64_t{number} << 32 | static_cast<std::uint64_t>(share(w, j.tasks)), std::memory_order_relaxed);
    call_.store(j.call, std::memory_order_release);
    context_.store(j.context, std::memory_order_release);
    tasks_.store(j.tasks, std::memory_order_release);
    announce(number);
    work(0, number);
    if (detail::spin_until([&] { return done_.load(std::memory_order_acquire) == j.tasks; })) return;
    std::unique_lock lock(sleep_);
    waiting_.store(true);
    finished_.wait(lock, [&] { return done_.load() == j.tasks; });
    waiting_.store(false);
  }

  void announce(std::uint32_t number) {
    epoch_.store(number);
    if (sleepers_.load() == 0) return;
    { const std::lock_guard lock(sleep_); }  // none is between its last look at epoch_ and its sleep
    wake_.notify_all();
  }

  // Runs tasks of run `number` until none is left to claim.
  void work(int worker, std::uint32_t number) {
    const job j{call_.load(std::memory_order_acquire), context_.load(std::memory_order_acquire),
                tasks_.load(std::memory_order_acquire)};
    index count = 0;
    for (int i = 0; i < threads_; ++i) {
      const int owner = worker + i < threads_ ? worker + i : worker + i - threads_;
      const index end = share(owner + 1, j.tasks);
      index task = 0;
      while (claim(at(owner), number, end, task)) {
        attempt(j, task, worker, failure_);
        ++count;
      }
    }
    if (count == 0) return;
    if (done_.fetch_add(count) + count == j.tasks && waiting_.load()) {
      { const std::lock_guard lock(sleep_); }
      finished_.notify_one();
    }
  }

  // A claim that succeeds proves that run `number` is not over, hence that the job read before it was that run's.
  static bool claim(seat& s, std::uint32_t number, index end, index& task) {
    std::uint64_t now = s.next.load(std::memory_order_acquire);
    for (;;) {
      task = static_cast<index>(now & 0xffffffff);
      if (static_cast<std::uint32_t>(now >> 32) != number || task >= end) return false;
      if (s.next.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    }
  }

  void serve(int worker) {
    std::uint32_t seen = 0;
    for (;;) {
      const auto changed = [&] { return epoch_.load() != seen; };
      if (!detail::spin_until(changed)) {
        std::unique_lock lock(sleep_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, changed);
        sleepers_.fetch_sub(1);
      }
      seen = epoch_.load();
      if (stopping_.load()) return;
      ++at(worker).level;
      work(worker, seen);
      --at(worker).level;
    }
  }

  void stop() noexcept {
    stopping_.store(true);
    announce(epoch_.load() + 1);
    for (int w = 1; w < threads_; ++w)
      if (at(w).thread.joinable()) at(w).thread.join();
  }

  int threads_ = 1;
  std::unique_ptr<seat[]> seats_;

  std::mutex gate_;  // held by the user thread whose turn it is
  std::atomic<std::thread::id> turn_{};
  bool forked_ = false;  // of the thread whose turn it is: its tasks are shared out

  alignas(detail::cache_line) std::atomic<std::uint32_t> epoch_{0};
  std::atomic<void (*)(void*, index, int)> call_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<index> tasks_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stopping_{false};

  alignas(detail::cache_line) std::atomic<index> done_{0};
  std::atomic<bool> waiting_{false};

  alignas(detail::cache_line) std::mutex sleep_;
  std::condition_variable wake_, finished_;
  std::mutex failing_;
  failure failure_;
};

/// Keeps the pool for the calling thread over several runs, with scratch that all their tasks may read and write.
class thread_pool::exclusive {
 public:
  explicit exclusive(thread_pool& pool) : inside_(pool) { ++pool.at(inside_.worker).level; }
  exclusive(const exclusive&) = delete;
  exclusive& operator=(const exclusive&) = delete;
  ~exclusive() { --inside_.pool.at(inside_.worker).level; }

  /// As thread_pool::scratch, until this object ends.
  template <class T>
  T* scratch(index count) {
    return inside_.pool.scratch<T>(inside_.worker, count);
  }

 private:
  entry inside_;
};

GYRE_END
