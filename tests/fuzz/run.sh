#!/bin/bash
# run.sh target.cpp RUNS fuzz_program coverage_program folder_of_llvm_tools
#
# Runs RUNS inputs, from the target's seeds on, then counts the lines that seeds and found inputs reach. The target says what
# must be reached in lines `// covers: <file> <percent of its lines>`. At least 30 seeds are committed.
set -eu
target=$1 runs=$2 fuzz=$3 coverage=$4 llvm=$5
name=$(basename "$target" .cpp)
seeds=$(dirname "$target")/seeds/$name
scratch=$(mktemp -d "$fuzz.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

count=$(find "$seeds" -type f | wc -l)
if [ "$count" -lt 30 ]; then
  echo "$name: $count seeds in $seeds; 30 are asked for"
  exit 1
fi
# New inputs go to the first folder: the committed seeds stay as they are. A found crash is kept beside the program.
mkdir "$scratch/corpus"
"$fuzz" -runs="$runs" -seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="$fuzz." "$scratch/corpus" "$seeds"

LLVM_PROFILE_FILE=$scratch/raw "$coverage" -runs=0 -verbosity=0 "$scratch/corpus" "$seeds"
"$llvm/llvm-profdata" merge -o "$scratch/profile" "$scratch/raw"
sed -n 's|^// covers: ||p' "$target" | while read -r file percent; do
  # Columns of the report: file, then total, missed and percent of regions, functions, lines.
  reached=$("$llvm/llvm-cov" report "$coverage" -instr-profile="$scratch/profile" "$file" | awk '$1 == "TOTAL" { print $10 + 0 }')
  echo "$name: $reached% of the lines of $file, $percent% are asked for"
  if ! awk -v a="$reached" -v b="$percent" 'BEGIN { exit !(a >= b) }'; then
    "$llvm/llvm-cov" show "$coverage" -instr-profile="$scratch/profile" "$file" | grep -E '^ +[0-9]+\| +0\|' || true
    exit 1
  fi
done
