#!/usr/bin/env python3
"""Plants one fault at a time in the kernels of backend/cuda and runs their tests: each fault must be found.

  mutants.py BUILD            a fixed choice that touches every kernel, every file of them and every kind of fault
  mutants.py BUILD --all      every one; writes results.txt
  mutants.py BUILD --new      those that results.txt does not have, because their line is new
  mutants.py --check          whether results.txt and survivors.txt are those of the sources; builds nothing
  mutants.py --list           names them

BUILD is a folder of gyre's tests in which gyre_simt, gyre_simt_instrumentation and test_main have been built. The tests are
compiled once, with a copy of the kernels that has every fault (faults.py); an environment variable chooses one. First nothing is
chosen: then no test may report anything, and each says which faults it comes by. A fault is met with those tests only, quickest
first, with every access watched, and where that finds nothing with those of double, which are not watched. What that does not
find needs a reason in survivors.txt: KEY | REASON. A bound is then moved the other way. What is still not found counts: none of
barriers, waits and atomics, one in twenty of the others.
"""
import argparse
import hashlib
import os
import pathlib
import sys

import faults as planted
from programs import builder, cases_of

here = pathlib.Path(__file__).resolve().parent
root = planted.root
results_file, survivors_file = here / "results.txt", here / "survivors.txt"
least_choice = 40
heading = """# What became of every fault, and the test that found it. Written by ./run mutants --all (or --new, after a change).
# fault; found, or a bound found when it is moved the other way, or survived; by which program, in which file and test case; operations
"""


def read_results():
    """Key -> (outcome, program, unit, case, operations)."""
    found = {}
    for line in results_file.read_text().splitlines() if results_file.exists() else []:
        if line and not line.startswith("#"):
            key, *rest = line.split("\t")
            found[key] = tuple(rest)
    return found


def read_reasons():
    reasons = {}
    for line in survivors_file.read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.rpartition(" | ")
            reasons[key] = reason
    return reasons


def kernel_files():
    return sorted((root / "include" / planted.backend / "kernels").glob("*.cuh"))


def all_faults():
    return [f for path in kernel_files() for f in planted.faults_of(path)]


def watched(faults, results):
    return [f for f in faults if results.get(f.key, ("", ""))[:2] == ("found", "watched")]


def touching(faults, results, lines):
    """Kernel -> faults that watched tests have found: in the kernel itself, or, where it has none, in what it calls. What it calls
    another kernel may call too, and the test that finds the fault there may be the other's."""
    known = watched(faults, results)
    own = {k: [f for f in known if (f.file, f.function) == k] for k in lines}
    return {k: own[k] or [f for f in known if (f.file, f.function) in reached] for k, reached in lines.items()}


def untouched(faults, results, lines):
    return [f"no fault that watched tests find touches the kernel: {file} | {name}"
            for (file, name), found in touching(faults, results, lines).items() if not found]


def choice(faults, results, lines):
    """40 of those that watched tests have found, or as many as it takes, the same for the same results: of every kernel, file and
    kind, from few files of tests."""
    known = watched(faults, results)
    touches = {f.key: {f.file, f.kind} for f in known}
    for kernel, found in touching(faults, results, lines).items():
        for f in found:
            touches[f.key].add(kernel)
    unit_of = lambda f: results[f.key][2]
    covered = lambda some: set().union(*(touches[f.key] for f in some))
    of_unit = {u: [f for f in known if unit_of(f) == u] for u in sorted({unit_of(f) for f in known})}
    left, units = covered(known), []
    while left:
        units.append(max(of_unit, key=lambda u: len(covered(of_unit[u]) & left)))
        left -= covered(of_unit[units[-1]])
    by_hash = sorted((f for f in known if unit_of(f) in units),
                     key=lambda f: (f.kind not in planted.strict, hashlib.sha256(f.key.encode()).hexdigest()))
    left, chosen = covered(known), []
    while left:
        chosen.append(max(by_hash, key=lambda f: len(touches[f.key] & left)))
        left -= touches[chosen[-1].key]
    chosen += [f for f in by_hash if f not in chosen][:max(0, least_choice - len(chosen))]
    return sorted(chosen, key=lambda f: f.key), units


def stale(faults, results, reasons):
    """What results.txt and survivors.txt have, or lack, that the sources do not have, or have."""
    keys = {f.key for f in faults}
    survived = {key for key, r in results.items() if r[0] != "found"}
    return ([f"not in results.txt: {key}" for key in keys - results.keys()] +
            [f"in results.txt, but no line of the kernels any more: {key}" for key in results.keys() - keys] +
            [f"in survivors.txt, but no line of the kernels any more: {key}" for key in reasons.keys() - keys] +
            [f"in survivors.txt, but found: {key}" for key in reasons.keys() & (results.keys() - survived) & keys] +
            [f"survived without a reason in survivors.txt: {key}" for key in survived - reasons.keys()])


def too_many(faults, results):
    """What the contract does not allow, reason or not."""
    survived = [f for f in faults if results.get(f.key, ("",))[0] == "survived"]
    bad = [f"a {f.kind} survived: {f.key}" for f in survived if f.kind in planted.strict]
    others = sum(f.kind not in planted.strict for f in faults)
    rest = sum(f.kind not in planted.strict for f in survived)
    if rest > others / 20:
        bad.append(f"{rest} of {others} faults in masks, bounds and scales survived; at most one in twenty may")
    return bad


def table(faults, results):
    lines = ["| kernels | " + " | ".join(planted.kinds) + " |", "|---" * (len(planted.kinds) + 1) + "|"]
    for file in sorted({f.file for f in faults}) + ["all"]:
        cells = [file]
        for kind in planted.kinds:
            of = [results[f.key][0] for f in faults if file in (f.file, "all") and f.kind == kind and f.key in results]
            moved = of.count("other way")
            cells.append(f"{of.count('found')}{f' + {moved}' if moved else ''} of {len(of)}" if of else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def judge(tools, faults, results, units, recorded_only):
    """New results of the faults. `recorded_only`: by the case that found it before."""
    new, cases_in = {}, {}
    wanted = {(results[f.key][2], results[f.key][3]) for f in faults} if recorded_only else None

    def prepare(program):
        print(f"{program}: compiling {len(units[program])} files of tests", flush=True)
        tools.build(program, units[program])
        cases = [c for c in cases_of(tools.programs[program], units[program]) if wanted is None or (c.unit, c.name) in wanted]
        for case, result, _ in tools.run_all(program, [(c, None) for c in cases]):
            if result is not None:
                sys.exit(f"mutants: with no fault '{case.name}' of {case.unit} fails, {program}: {result}")
        print(f"{len(cases)} test cases report nothing; CPU time so far: {tools.cpu():.0f} s", flush=True)
        return sorted(cases, key=lambda c: c.seconds)

    def meet(f):
        before = results.get(f.key, ("", "", "", ""))
        ordered = [c for c in cases_in[program] if f.number in c.reached]
        for c in sorted(ordered, key=lambda c: (c.unit, c.name) != (before[2], before[3])):
            result = tools.run(program, c, f.number + way)[1]
            if result is not None:
                return f, c, result
        return f, None, "" if ordered else "no test comes by it"

    for way in (0, planted.other_way):
        for program in units:
            left = [f for f in faults if new.get(f.key, ("survived",))[0] == "survived" and (way == 0 or f.kind == "bound")]
            if not left or (way > 0 and recorded_only):
                continue
            if program not in cases_in:
                cases_in[program] = prepare(program)
            print(f"{len(left)} faults, {program}" + (", bounds moved the other way" if way else ""), flush=True)
            for done, (f, case, how) in enumerate(tools.map(meet, left), 1):
                operations = {o for cases in cases_in.values() for c in cases for o in c.reached.get(f.number, ())} - {"-"}
                found = ("other way" if way else "found", program, case.unit, case.name) if case else ("survived", "", "", "")
                new[f.key] = (*found, ",".join(sorted(operations)))
                print(f"[{done}/{len(left)}] {f.key}: " + (f"{how} {case.unit}" if case else f"survived{how and ', ' + how}"), flush=True)
    return new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    for name in ("all", "new", "check", "list"):
        parser.add_argument("--" + name, action="store_true")
    parser.add_argument("--file", help="with --all: only the faults of one file of kernels")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS", os.cpu_count())))
    options = parser.parse_args()
    faults, results, reasons = all_faults(), read_results(), read_reasons()
    lines = planted.lines_of_kernels(kernel_files())
    if options.list:
        print("\n".join(f.key for f in faults))
        return 0
    if options.check:
        wrong = stale(faults, results, reasons) + too_many(faults, results) + untouched(faults, results, lines)
        print("\n".join(sorted(wrong)) if wrong else f"{len(faults)} faults, all with results that are theirs\n\n{table(faults, results)}")
        return 1 if wrong else 0
    if options.build is None:
        parser.error("a folder of built tests, or --check, or --list")

    sources = sorted((root / "tests/cuda").glob("*.cpp"))
    doubles = [u for u in sources if u.stem.endswith("_double")]  # as tests/cuda/CMakeLists.txt has them
    units = {"watched": [u for u in sources if u not in doubles], "plain": doubles}
    if options.all:
        chosen = [f for f in faults if options.file in (None, f.file)]
    elif options.new:
        chosen = [f for f in faults if f.key not in results]
    else:
        chosen, names = choice(faults, results, lines)
        units = {"watched": [u for u in sources if u.name in names]}
    if not chosen:
        print("no fault to plant")
        return 0
    tools = builder(options.build, options.jobs, pathlib.Path(options.build) / "mutants")
    numbers = {f.key: f.number for f in planted.write_copy(tools.copy, kernel_files())}
    for f in chosen:
        f.number = numbers[f.key]
    fixed = not options.all and not options.new
    new = judge(tools, chosen, results, units, fixed)
    if not fixed:
        results = {f.key: new.get(f.key, results.get(f.key)) for f in faults if f.key in new or f.key in results}
        results_file.write_text(heading + "".join("\t".join((key, *r)) + "\n" for key, r in results.items()))
        print("\n" + table(faults, results))
    count = lambda outcome: sum(r[0] == outcome for r in new.values())
    print(f"\n{len(chosen)} faults planted: {count('found')} found, {count('other way')} bounds found moved the other way, "
          f"{count('survived')} survived; CPU time {tools.cpu():.0f} s")
    wrong = ([f"survived: {f.key}" for f in chosen if new[f.key][0] == "survived"] if fixed
             else stale(faults, results, reasons) + too_many(faults, results) + untouched(faults, results, lines))
    print("\n".join(sorted(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
