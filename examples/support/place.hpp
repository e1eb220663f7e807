// Where a program computes: the options --backend and --threads.
#pragma once

#include <string>

#include <gyre/backend/cpu.hpp>

#include "arguments.hpp"

namespace examples {

struct place {
  std::string backend = "cpu";
  int threads = 1;  // of backend cpu
};

inline place read_place(arguments& given) {
  place where;
  where.backend =
      given.choice("backend", {"cpu", "cuda", "simulated_cuda"}, where.backend,
                   "what computes: the processor, a GPU of NVIDIA's, or that GPU's kernels on the processor, slowly");
  where.threads = given.number("threads", gyre::thread_pool::default_threads(), "threads; they do not change the result");
  return where;
}

/// "2 threads", "backend cuda".
inline std::string description(const place& where) {
  if (where.backend != "cpu") return "backend " + where.backend;
  return std::to_string(where.threads) + (where.threads == 1 ? " thread" : " threads");
}

[[noreturn]] inline void refuse_cuda() {
  gyre::fail(
      "--backend cuda: this program was built without CUDA. Build it with `cmake -DGYRE_CUDA=ON -DCMAKE_CUDA_COMPILER=NVCC` "
      "(`./run nvcc` gets one from PyPI and says where it is); --backend simulated_cuda runs the same kernels on the "
      "processor");
}

}  // namespace examples
