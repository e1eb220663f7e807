// Programs run by tests: started, interrupted, waited for, and what they wrote.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "../examples/scratch_folder.hpp"

namespace gyre_test {

struct outcome {
  int status = -1;  // of exit; 128 + signal when one ended the program
  std::string out, err;
};

class process {
 public:
  /// Starts `program` with `arguments`; `input` is its standard input.
  process(const std::string& program, std::vector<std::string> arguments, const std::string& input = "") {
    const std::string in = files_.file("in", input), out = (files_ / "out").string(), err = (files_ / "err").string();
    arguments.insert(arguments.begin(), program);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    id_ = fork();
    REQUIRE(id_ >= 0);
    if (id_ == 0) {
      constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC;
      if (dup2(open(in.c_str(), O_RDONLY), 0) < 0 || dup2(open(out.c_str(), flags, 0600), 1) < 0 ||
          dup2(open(err.c_str(), flags, 0600), 2) < 0)
        _exit(126);
      execv(words[0], words.data());
      _exit(127);
    }
  }
  ~process() {
    if (!ended_) kill(id_, SIGKILL), waitpid(id_, nullptr, 0);
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;

  void send(int signal) const { kill(id_, signal); }
  bool running() {
    if (!ended_) ended_ = waitpid(id_, &status_, WNOHANG) == id_;
    return !ended_;
  }
  /// What it has written to standard error so far.
  std::string err() const { return std::filesystem::exists(files_ / "err") ? bytes_of(files_ / "err") : ""; }
  outcome wait() {
    if (!ended_) ended_ = waitpid(id_, &status_, 0) == id_;
    REQUIRE(ended_);
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), bytes_of(files_ / "out"),
            bytes_of(files_ / "err")};
  }

 private:
  scratch_folder files_;
  pid_t id_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

inline outcome run(const std::string& program, std::vector<std::string> arguments, const std::string& input = "") {
  return process(program, std::move(arguments), input).wait();
}

}  // namespace gyre_test
