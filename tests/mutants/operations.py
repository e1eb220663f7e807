#!/usr/bin/env python3
"""Writes docs/evidence/cuda_operations.md: a row for every operation of the contract, and how the cuda backend's is checked without a GPU.

  operations.py PARITY    PARITY: the program parity of examples/, whose trials on the interpreter it runs
  operations.py --check   whether the table has every operation of include/gyre/ops/operations.hpp, no empty cell, and the numbers of
                          results.txt
"""
import re
import subprocess
import sys

from faults import backend, operation_names, root
from mutants import read_results

page = root / "docs/evidence/cuda_operations.md"
trials, seed = 30, 100
types = ("float", "double", "bf16")
# What a device calls, and who stands in for it where there is no GPU.
libraries = {
    "multiply": "cuBLAS: not executed without a GPU; its twin is `simulated_device::multiply`",
    "sort_by_key": "`cub::DeviceRadixSort`: not executed without a GPU; its twin is `std::stable_sort` in `simulated_device::sort_by_key`",
}
heading = f"""# The cuda backend's operations without a GPU

Written by `./run mutants --table`, after `./run mutants --all`; tests/mutants checks that no operation is missing. One row for each
operation of `include/gyre/ops/operations.hpp`:

- tests: files of tests/cuda that name the operation. They run on the interpreter; all but those of double also with every access watched.
- float, double, bf16: parity with the reference in {trials} trials of seed {seed} (`./run parity --right simulated_cuda`): the worst
  element's error, its derived tolerance ([parity.md](../parity.md)), and their ratio. 0 of 0: results have the exact bits. Updates act on
  masters, which are never bf16.
- faults: how many of those planted in lines that run for the operation the tests find. A line that several operations share counts
  for each.

| operation | tests | float | double | bf16 | faults found | library calls |
|---|---|---|---|---|---|---|
"""


def library_calls():
    """Operation -> what it leaves to a library."""
    names, found = operation_names(), {}
    for path in sorted((root / "include" / backend).glob("*.hpp")):
        text = path.read_text()
        begins = [(m.start(), m.group(1)) for m in re.finditer(r"^  (?:void|double|float|S|T) (\w+)\((?=[^;]*\{)", text, flags=re.M)]
        for (begin, name), (end, _) in zip(begins, begins[1:] + [(len(text), "")]):
            for call in libraries:
                if name in names and re.search(rf"device\(\)\.(?:template )?{call}\b", text[begin:end]):
                    found.setdefault(name, []).append(libraries[call])
    return found


def tests_of(operation):
    return [p.name for p in sorted((root / "tests/cuda").glob("*.?pp")) if re.search(rf"\boperation::{operation}\b", p.read_text())]


def faults_of(operation):
    of = [r[0] for r in read_results().values() if operation in r[4].split(",")]
    return f"{len(of) - of.count('survived')} of {len(of)}" if of else "none planted"


def parity_of(program):
    """(operation, type) -> cell."""
    command = [program, "--right", "simulated_cuda", "--trials", str(trials), "--seed", str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"operations: parity fails:\n{ran.stdout[-2000:]}{ran.stderr[-1000:]}")
    cells = {}
    for line in ran.stdout.splitlines():
        part = [p.strip() for p in line.strip("|").split("|")]
        if line.startswith("|") and len(part) == 8 and part[7] == "passed":
            cells[part[0], part[1]] = f"{part[4]} of {part[5]}" + (f" ({part[6]})" if part[6] != "0" else "")
    return cells


def write(program):
    cells, calls, rows = parity_of(program), library_calls(), []
    masters = operation_names()[operation_names().index("squared_norm"):]
    for name in operation_names():
        parity = [cells.get((name, t), "masters are not" if t == "bf16" and name in masters else "") for t in types]
        of_name = [", ".join(tests_of(name)), *parity, faults_of(name), "; ".join(calls.get(name, ["none"]))]
        rows.append(" | ".join([f"| {name}", *of_name]) + " |")
    page.write_text(heading + "\n".join(rows) + "\n")


def check():
    wrong, calls = [], library_calls()
    rows = [[cell.strip() for cell in line[2:-2].split(" | ")] for line in page.read_text().splitlines() if re.match(r"\| \w+ \|", line)]
    rows = {row[0]: row for row in rows if row[0] != "operation"}
    for name in operation_names():
        row = rows.pop(name, None)
        if row is None:
            wrong.append(f"{name} has no row")
            continue
        expected = {1: ", ".join(tests_of(name)), 5: faults_of(name), 6: "; ".join(calls.get(name, ["none"]))}
        wrong += [f"{name}: '{row[n]}', but the sources and results.txt say '{is_}'"
                  for n, is_ in expected.items() if len(row) == 7 and row[n] != is_]
        if len(row) != 7 or not all(row):
            wrong.append(f"{name}: a cell is empty: {row}")
        for cell in row[2:5]:
            ratio = re.search(r"\(([\d.e+-]+)\)", cell)
            if ratio and float(ratio.group(1)) > 1:
                wrong.append(f"{name}: beyond its tolerance: {cell}")
    wrong += [f"{name} is no operation of the contract" for name in rows]
    if wrong:
        wrong.append("./run mutants --table writes the page anew")
    print("\n".join(wrong or [f"{len(operation_names())} operations, each with its row"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(check() if sys.argv[1] == "--check" else write(sys.argv[1]))
