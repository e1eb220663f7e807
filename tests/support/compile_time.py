"""Budget of compile time: CPU seconds (user) of every translation unit, as the build itself took them.

A test unit may take 15 s with its own flags, the one with Catch2's main excepted, and examples/quickstart.cpp 10 s at -O2.
Budgets are seconds of the machine that they were made on (a Xeon with AVX-512, g++ 12). There calibration.cpp, standard headers only,
takes CALIBRATION seconds while nothing else runs; quickstart.cpp then took 9.3 s, and 12.9 s when the same machine was slow and
calibration.cpp took 4.1 s.

The five units that were furthest over their budget in the build are measured again, alone, up to four times, each time between two
compilations of calibration.cpp: a machine's pace can change by half within minutes, so that only neighbours can be compared. Where
calibration.cpp takes longer than it took there, the machine is slower, and the unit's seconds are scaled down in proportion, to no less
than a half; on a faster machine they stay. What took less in the same build than five that pass alone passes with them.
Usage: compile_time.py BUILD_FOLDER
"""
import json
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile

CALIBRATION = 3.0
TEST_BUDGET, QUICKSTART_BUDGET = 15.0, 10.0
MOST_SLOWER = 2.0  # a machine slower than that tells nothing about compile time
MOST_SUSPECTS = 5

source_root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(sys.argv[1]).resolve()


def compile_alone(unit, *more_flags):
    """User CPU seconds of one compilation; the object goes to a temporary file."""
    command = shlex.split(unit["command"])
    with tempfile.TemporaryDirectory() as folder:
        command[command.index("-o") + 1] = os.path.join(folder, "unit.o")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command + list(more_flags), cwd=unit["directory"], check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def calibrate():
    """User CPU seconds of calibration.cpp, now."""
    return compile_alone({"command": f"{compiler} -std=c++20 -O2 -o unit.o -c {pathlib.Path(__file__).with_name('calibration.cpp')}", "directory": "."})


def least_alone(unit, budget, *more_flags):
    """The least, in seconds of the reference machine, of up to four compilations; stops at the first within the budget."""
    least = float("inf")
    before = calibrate()
    for _ in range(4):
        seconds = compile_alone(unit, *more_flags)
        after = calibrate()
        # The faster neighbour: a unit is not forgiven for what slowed only one of them.
        slower = min(max(min(before, after) / CALIBRATION, 1.0), MOST_SLOWER)
        print(f"{unit['file']}: {seconds:.2f} s between {before:.2f} and {after:.2f} s of calibration.cpp: {seconds / slower:.2f} of {budget:.0f} s")
        least = min(least, seconds / slower)
        if least <= budget:
            break
        before = after
    return least


def seconds_in_build(unit):
    """What tests/support/time_compile.sh noted beside the object file; None if this build was made without it."""
    command = shlex.split(unit["command"])
    note = build / (command[command.index("-o") + 1] + ".seconds")
    try:
        return float(note.read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def budget_of(path, command):
    if "_race.dir/" in command:  # the same units once more, with what the compiler's instrumentation adds
        return None
    is_test = source_root / "tests" in path.parents or build / "tests" in path.parents
    return TEST_BUDGET if is_test and path != source_root / "tests/support/main.cpp" else None


units = json.loads((build / "compile_commands.json").read_text())
compiler = shlex.split(units[0]["command"])[0]
measured, suspects, over = [], [], []


def judge(name, unit, budget, *more_flags):
    seconds = least_alone(unit, budget, *more_flags)
    measured.append((seconds, name, budget))
    if seconds > budget:
        over.append((name, seconds, budget))


for unit in units:
    path = pathlib.Path(unit["file"])
    budget = budget_of(path, unit["command"])
    seconds = seconds_in_build(unit)
    if seconds is None and budget is None:
        continue
    if seconds is None:
        seconds = compile_alone(unit)
    if budget is not None and seconds > budget:
        suspects.append((seconds / budget, path, unit, budget))
    else:
        measured.append((seconds, path, budget))
    if path == source_root / "examples/quickstart.cpp":
        judge(f"{path} at -O2", unit, QUICKSTART_BUDGET, "-O2")
for _, path, unit, budget in sorted(suspects, key=lambda s: -s[0])[:MOST_SUSPECTS]:
    judge(path, unit, budget)
if len(suspects) > MOST_SUSPECTS:
    print(f"{len(suspects) - MOST_SUSPECTS} more were over their budget in the build, by less")
print(f"{len(measured)} translation units, {sum(m[0] for m in measured):.0f} s in all; the slowest:")
for seconds, path, budget in sorted(measured, key=lambda m: -m[0])[:5]:
    print(f"{seconds:6.1f} s  {os.path.relpath(str(path), source_root)}" + ("" if budget else "  (no budget)"))
for path, seconds, budget in over:
    print(f"OVER BUDGET: {path} takes {seconds:.1f} s of {budget:.0f} s")
sys.exit(1 if over else 0)
