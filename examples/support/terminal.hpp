// What long work shows on a terminal: one line of progress, and a clean stop on Ctrl-C.
#pragma once

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>

namespace examples {

/// While it lives, the first Ctrl-C (or SIGTERM) only sets a flag; a second one ends the program as usual.
class interrupt_guard {
 public:
  interrupt_guard() {
    flag() = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { flag() = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }
  ~interrupt_guard() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
  }
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
  static bool requested() { return flag() != 0; }

 private:
  static volatile std::sig_atomic_t& flag() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  struct sigaction before_[2];
};

class stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The same of this process's processor time, which other programs do not lengthen.
class processor_watch {
 public:
  double seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t begin_ = std::clock();
};

/// "3:07", "1:02:33".
inline std::string clock_text(double seconds) {
  const long s = seconds < 0 ? 0 : static_cast<long>(seconds + 0.5);
  char text[32];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
  return text;
}

/// A bar that rewrites its line on a terminal, and prints a line now and then elsewhere.
class progress {
 public:
  explicit progress(std::ostream& out = std::cerr) : out_(out), terminal_(isatty(2) != 0) {}
  ~progress() { finish(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// `done` of the work, from 0 to 1, and what to say beside the bar.
  void show(double done, const std::string& text) {
    const double now = watch_.seconds();
    if (now < next_ && done < 1) return;
    next_ = now + (terminal_ ? 0.1 : 15);
    const int filled = static_cast<int>(20 * (done < 0 ? 0 : done > 1 ? 1 : done));
    std::string line = "[" + std::string(static_cast<std::size_t>(filled), '#') +
                       std::string(static_cast<std::size_t>(20 - filled), '.') + "] " + text;
    if (terminal_) {
      const std::size_t length = line.size();
      if (length < last_) line += std::string(last_ - length, ' ');
      last_ = length;
      out_ << '\r' << line << std::flush;
      open_ = true;
    } else {
      out_ << line << std::endl;
    }
  }
  /// A whole line that stays, above the bar.
  void say(const std::string& text) {
    finish();
    out_ << text << std::endl;
  }
  void finish() {
    if (open_) out_ << std::endl;
    open_ = false;
    last_ = 0;
  }

 private:
  std::ostream& out_;
  bool terminal_, open_ = false;
  double next_ = 0;
  std::size_t last_ = 0;
  stopwatch watch_;
};

}  // namespace examples
