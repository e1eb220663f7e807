#!/usr/bin/env python3
"""Tests the planting of faults on a kernel of a few lines: what must be found is found, and what no test can find survives. Tests also
that the fixed choice touches every kernel, and that a kernel which nothing touches is named.

  self_test.py BUILD FOLDER     a built folder of gyre's tests; where to write
"""
import pathlib
import sys

import faults as planted
from mutants import choice, judge, touching, untouched
from programs import builder

kernel = """
#pragma once
#include <gyre/simt.hpp>
template <int Threads>
GYRE_KERNEL void __launch_bounds__(Threads) turned(const int* x, int count, int scale, int* y, int* most) {
  GYRE_SHARED(int[Threads], kept);
  const int i = static_cast<int>(threadIdx.x), larger = count < Threads ? count : Threads;
  if (i < count) kept[i] = x[i];
  __syncthreads();  // not a comparison: a < b
  const int some = __any_sync(~0u, 2 * i < 2 * Threads - 1);
  if (i < larger && some) y[i] = kept[count - 1 - i] * scale;
  if (2 * i < 2 * count - 1) atomicMax(&most[0 < count ? 0 : 1], x[i]);
}
"""
test = """
#include <catch2/catch.hpp>
#include <gyre/backend/cuda/kernels/turned.cuh>
TEST_CASE("turned") {
  gyre::simt::machine gpu;
  const int count = 40;
  auto x = gpu.allocate<int>(count, "x"), y = gpu.allocate<int>(count, "y"), most = gpu.allocate<int>(1, "most");
  for (int i = 0; i < count; ++i) x[i] = i + 1, y[i] = 0;
  most[0] = 0;
  gyre::simt::launch(turned<64>, 1, 64, 0, &gpu, x.data(), count, 3, y.data(), most.data());
  for (int i = 0; i < count; ++i) CHECK(y[i] == 3 * (count - i));
  CHECK(most[0] == count);
}
"""
expected = {
    ("bound", "if (i <= count) kept[i] = x[i];"): "found",
    ("barrier", "(void)0; // not a comparison: a < b"): "found",
    ("mask", "const int some = __any_sync(~0u >> 1, 2 * i < 2 * Threads - 1);"): "found",
    ("bound", "if (i <= larger && some) y[i] = kept[count - 1 - i] * scale;"): "found",
    ("scale", "if (i < larger && some) y[i] = kept[count - 1 - i] * 1;"): "found",
    ("atomic", "if (2 * i < 2 * count - 1) not_atomicMax(&most[0 < count ? 0 : 1], x[i]);"): "found",
    # An even number is not an odd one, and 40 is not 0.
    ("bound", "const int some = __any_sync(~0u, 2 * i <= 2 * Threads - 1);"): "survived",
    ("bound", "if (2 * i <= 2 * count - 1) atomicMax(&most[0 < count ? 0 : 1], x[i]);"): "other way",
    ("bound", "if (2 * i < 2 * count - 1) atomicMax(&most[0 <= count ? 0 : 1], x[i]);"): "survived",
}
# Kernels whose lines are their own, a function's, a functor's, and nobody's.
kernels_that_call = """
GYRE_DEVICE void shared_lines(int* x, int count) { if (threadIdx.x < count) x[0] = 1; }
struct body { GYRE_DEVICE void operator()(int* x, int scale) const { x[0] = x[1] * scale; } };
GYRE_KERNEL void has_its_own(int* x, int count) { if (blockIdx.x < count) shared_lines(x, count); }
GYRE_KERNEL void calls(int* x, int count) { shared_lines(x, count); }
template <class Body>
GYRE_KERNEL void calls_a_functor(int* x, Body body) { body.operator()(x, 2); }
GYRE_KERNEL void has_nothing(int* x) { x[0] = 1; }
"""


def wrong_choices(folder):
    """What is wrong with the kernels that the faults of kernels_that_call are said to touch."""
    path = folder / "calling.cuh"
    path.write_text(kernels_that_call)
    faults, lines = planted.faults_of(path), planted.lines_of_kernels([path])
    results = {f.key: ("found", "watched", f.function + ".cpp", "", "") for f in faults}
    by_kernel = {name: [f.function for f in found] for (_, name), found in touching(faults, results, lines).items()}
    expected_kernels = {"has_its_own": ["has_its_own"], "calls": ["shared_lines"], "calls_a_functor": ["operator"], "has_nothing": []}
    wrong = [] if by_kernel == expected_kernels else [f"touched: {by_kernel}, expected {expected_kernels}"]
    named = [line.rpartition(" | ")[2] for line in untouched(faults, results, lines)]
    wrong += [] if named == ["has_nothing"] else [f"named as untouched: {named}"]
    survived = {key: ("survived", "", "", "", "") if " | calls" in key or " | shared_lines" in key else r for key, r in results.items()}
    named = [line.rpartition(" | ")[2] for line in untouched(faults, survived, lines)]
    wrong += [] if named == ["calls", "has_nothing"] else [f"named as untouched where a fault survives: {named}"]
    chosen, units = choice(faults, results, lines)
    wrong += [] if {f.function for f in chosen} == {"has_its_own", "shared_lines", "operator"} and len(units) == 3 else [f"chosen: {[f.key for f in chosen]}"]
    return wrong


def main():
    folder = pathlib.Path(sys.argv[2])
    include = folder / "plain"
    header = include / planted.backend / "kernels/turned.cuh"
    header.parent.mkdir(parents=True, exist_ok=True)
    header.write_text(kernel)
    (folder / "turned.cpp").write_text(test)
    tools = builder(sys.argv[1], 1, folder)
    faults = planted.write_copy(tools.copy, [header], include)
    results = judge(tools, faults, {}, {"watched": [folder / "turned.cpp"]}, False)
    found = {(f.kind, f.became): results[f.key][0] for f in faults}
    for what in sorted(expected.keys() | found.keys()):
        if expected.get(what) != found.get(what):
            print(f"{what}: {found.get(what, 'not planted')}, expected {expected.get(what, 'not to be planted')}")
    wrong = wrong_choices(folder)
    print("\n".join(wrong))
    return 0 if found == expected and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
