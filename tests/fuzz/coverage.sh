#!/bin/bash
# coverage.sh [target [runs]]: builds a fuzz target by hand, without CMake, and has run.sh print the share of the parser's lines
# that its seeds and `runs` inputs reach; fails below what the target asks for (its lines `// covers:`). Default: all, 0 runs.
set -eu
cd "$(dirname "$0")/../.."
clang=${CXX:-clang++-14}
tools=$(dirname "$(readlink -f "$(command -v "$clang")")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in ${1:-safetensors json}; do
  target=tests/fuzz/$name.cpp
  "$clang" -std=c++20 -O1 -g1 -I include -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all "$target" -o "$scratch/fuzz_$name"
  "$clang" -std=c++20 -O1 -g1 -I include -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping "$target" \
    -o "$scratch/coverage_$name"
  tests/fuzz/run.sh "$target" "${2:-0}" "$scratch/fuzz_$name" "$scratch/coverage_$name" "$tools"
done
