"""Times gyre's train and decode benchmarks and their PyTorch twins in alternating runs; prints medians and ratios.

  python3 -m venv build/peers && build/peers/bin/pip install -r benchmarks/peers/requirements.txt
  build/peers/bin/python benchmarks/peers/compare.py \
      --train "build/release/benchmarks/benchmark_model --benchmark_filter=^train_step" \
      --decode "build/release/benchmarks/benchmark_model --benchmark_filter=^decode"
  build/peers/bin/python benchmarks/peers/compare.py --work mixture \
      --mixture "build/release/benchmarks/benchmark_mixture_step --benchmark_filter=^mixture_step.*threads:2"

A command is a Google Benchmark program and its arguments; --benchmark_format=json is added. Its filter must leave one benchmark
that sets items processed (tokens) and measures real time. Twins are started and compiled once; then each round runs gyre and
every twin one after the other, so that a change of the machine's pace meets all of them. The machine should be quiet: if the
spread (slowest / fastest) of a row is far below 1, measure again.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TWINS = {"train": "huginn_twin.py", "decode": "huginn_twin.py", "mixture": "mixture_twin.py"}


def gyre_once(command, seconds):
    arguments = shlex.split(command) + ["--benchmark_format=json", f"--benchmark_min_time={seconds:g}"]
    run = subprocess.run(arguments, stdout=subprocess.PIPE, check=False)
    if run.returncode != 0:
        sys.exit(f"compare: {shlex.join(arguments)} ended with {run.returncode}")
    found = [b for b in json.loads(run.stdout)["benchmarks"] if b.get("run_type") == "iteration"]
    names = sorted({b["name"] for b in found})
    if len(names) != 1:
        sys.exit(f"compare: {command}: the filter must leave one benchmark, it leaves {len(names)}: {', '.join(names)}")
    if any(b.get("error_occurred") for b in found):
        sys.exit(f"compare: {names[0]}: {found[0].get('error_message')}")
    if not re.search(r"/(real|manual)_time", names[0]):
        sys.exit(f"compare: {names[0]} measures CPU time, which leaves out other threads; give it UseRealTime()")
    if not all("items_per_second" in b for b in found):
        sys.exit(f"compare: {names[0]} does not set the items processed")
    return statistics.median(b["items_per_second"] for b in found)


class Twin:
    def __init__(self, work, variant, arguments, config):
        command = [config.python, os.path.join(HERE, TWINS[work]), work, variant, "--wait", "--seconds", str(config.seconds), "--repeats",
                   str(config.rounds), "--threads", str(config.threads), *arguments]
        self.name = f"twin, {variant}"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.about = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"compare: {self.name} ended with {self.process.wait()}")
        return json.loads(line)

    def once(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()["tokens_per_second"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(work, command, variants, config):
    twins = [Twin(work, variant, shlex.split(config.twin_arguments), config) for variant in variants]
    rates = {"gyre": []} if command else {}
    for twin in twins:
        rates[twin.name] = []
    for round_number in range(config.rounds):
        if command:
            rates["gyre"].append(gyre_once(command, config.seconds))
        for twin in twins:
            rates[twin.name].append(twin.once())
        print(f"{work} {round_number + 1}/{config.rounds}: " + ", ".join(f"{n} {r[-1]:.1f}" for n, r in rates.items()),
              file=sys.stderr)
    about = twins[0].about if twins else {}
    for twin in twins:
        twin.close()
    print(f"\n{work}, tokens/s, {config.rounds} alternating runs of {config.seconds:g} s, {config.threads} threads, "
          f"PyTorch {about.get('torch')}, {about.get('processor')}, {about.get('cpu_capability')}")
    print(f"{'':16}{'median':>10}{'fastest':>10}{'spread':>8}" + (f"{'gyre/it':>10}" if command else ""))
    rows = []
    for name, values in rates.items():
        row = {"name": name, "median": statistics.median(values), "runs": values}
        line = f"{name:16}{row['median']:10.1f}{max(values):10.1f}{min(values) / max(values):8.2f}"
        if command and name != "gyre":
            # Ratios within a round: both ran within seconds of each other.
            row["ratio"] = statistics.median(g / t for g, t in zip(rates["gyre"], values))
            line += f"{row['ratio']:10.2f}"
        rows.append(row)
        print(line)
    return {"work": work, "threads": config.threads, "about": about, "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", metavar="COMMAND", help="gyre's train benchmark")
    parser.add_argument("--decode", metavar="COMMAND", help="gyre's decode benchmark")
    parser.add_argument("--mixture", metavar="COMMAND", help="gyre's benchmark of a mixture's training step")
    parser.add_argument("--work", default="train,decode", help="which to run; without a command only the twins are timed")
    parser.add_argument("--train-variants", default="plain,sdpa,compile")
    parser.add_argument("--decode-variants", default="plain,compile")
    parser.add_argument("--mixture-variants", default="sdpa,compile")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=5.0, help="of one run")
    parser.add_argument("--threads", type=int, default=2, help="of the twins; gyre's come from its command")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--twin-arguments", default="", help="further arguments of the twins")
    parser.add_argument("--json", metavar="FILE", help="also write every run there")
    config = parser.parse_args()
    results = [
        compare(work, getattr(config, work), [v for v in getattr(config, f"{work}_variants").split(",") if v], config)
        for work in config.work.split(",")
    ]
    if config.json:
        with open(config.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
