"""Budget of compile time, the same on every machine: what g++ allocates while it compiles a unit, as its -ftime-report says.

Seconds tell little where machines differ and a machine's own pace changes within minutes; what a compiler allocates is the work it has,
to within a few parts in a hundred whatever -march is. On the machine that the budgets were made on (a Xeon with AVX-512, g++ 12) a
unit of 1,040 MB took 15 seconds of CPU time at -O1 and 9 at -O0; examples/quickstart.cpp at -O2 took 9.3 seconds and 816 MB, and may
take what stands for ten seconds. A test unit may take 1,050 MB, the one with Catch2's main excepted.

The CPU seconds that every unit took in the build are only listed, and say which units are worth asking: the slowest of those with a
budget are compiled once more. What is not among them took less, beside them, in the same build. Budgets are for g++ 12; for another
compiler nothing is judged.
Usage: compile_time.py BUILD_FOLDER
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

TEST_BUDGET, QUICKSTART_BUDGET = 1050, 880  # MB
ASKED = 3  # test units
COMPILER = "12"

source_root = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(sys.argv[1]).resolve()


def allocated(unit, *more_flags):
    """MB that the compiler allocates for one unit; the object goes to a temporary file."""
    command = shlex.split(unit["command"])
    with tempfile.TemporaryDirectory() as folder:
        command[command.index("-o") + 1] = os.path.join(folder, "unit.o")
        done = subprocess.run(
            [*command, *more_flags, "-ftime-report"], cwd=unit["directory"], stderr=subprocess.PIPE, text=True, check=True
        )
    total = re.search(r"^\s*TOTAL\s*:.*\s(\d+)([kMG])\s*$", done.stderr, re.MULTILINE)
    return int(total[1]) * {"k": 1e-3, "M": 1, "G": 1e3}[total[2]]


def seconds_in_build(unit):
    """What tests/support/time_compile.sh noted beside the object file; None if this build was made without it."""
    command = shlex.split(unit["command"])
    note = build / (command[command.index("-o") + 1] + ".seconds")
    try:
        return float(note.read_text().split()[-1])
    except (OSError, ValueError, IndexError):
        return None


def has_budget(path, command):
    if "_race.dir/" in command or "Unity" in path.parts:  # with what the compiler's instrumentation adds; several files at once
        return False
    is_test = source_root / "tests" in path.parents or build / "tests" in path.parents
    return is_test and path != source_root / "tests/support/main.cpp"


units = json.loads((build / "compile_commands.json").read_text())
noted = [(seconds, pathlib.Path(unit["file"]), unit) for unit in units if (seconds := seconds_in_build(unit)) is not None]
noted.sort(key=lambda n: -n[0])
print(f"{len(noted)} translation units, {sum(n[0] for n in noted):.0f} s of CPU in the build; the slowest:")
for seconds, path, unit in noted[:5]:
    print(f"{seconds:6.1f} s  {os.path.relpath(str(path), source_root)}{'' if has_budget(path, unit['command']) else '  (no budget)'}")

compiler = shlex.split(units[0]["command"])[0]
version = subprocess.run([compiler, "-dumpversion"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
if "g++" not in pathlib.Path(compiler).name or version.split(".")[0] != COMPILER:
    print(f"skipped: budgets of compile time are for g++ {COMPILER}, this is {compiler} {version}")
    sys.exit(77)

asked = [n for n in noted if has_budget(n[1], n[2]["command"])][:ASKED]
judged = [(os.path.relpath(str(path), source_root), TEST_BUDGET, unit, []) for _, path, unit in asked]
for unit in units:
    if pathlib.Path(unit["file"]) == source_root / "examples/quickstart.cpp":
        judged.append(("examples/quickstart.cpp at -O2", QUICKSTART_BUDGET, unit, ["-O2"]))
over = 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as compilers:
    for (name, budget, _, _), megabytes in zip(judged, compilers.map(lambda j: allocated(j[2], *j[3]), judged)):
        over += megabytes > budget
        print(f"{'OVER BUDGET: ' if megabytes > budget else ''}{name}: the compiler allocates {megabytes:.0f} of {budget} MB")
if not asked:
    print("No unit of this build has a note of its time; build with the preset release")
    over += 1
sys.exit(1 if over else 0)
