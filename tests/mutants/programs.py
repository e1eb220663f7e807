"""Builds the tests with a copy of the kernels that has every fault, and runs one test case at a time with one fault chosen."""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import resource
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
# -O0: no local copy is optimised away before it is seen, and compiling takes longer than running. Without -g: reports are not read.
flags = ["-std=c++20", "-O0", "-w", "-DGYRE_COUNTS_TRANSFERS=0"]
watching = ["-fsanitize=thread,alignment", "--param", "tsan-instrument-func-entry-exit=0"]


def key_of(command, used):
    """Of a command and the contents of the files that a compiler's list of what it used names."""
    key = hashlib.sha256(" ".join(command).encode())
    for name in used.read_text().partition(":")[2].replace("\\\n", " ").split() if used.exists() else []:
        key.update(pathlib.Path(name).read_bytes() if os.path.exists(name) else b"gone")
    return key.hexdigest()


class test_case:
    def __init__(self, unit, name):
        self.unit, self.name = unit, name
        self.seconds = 0    # of CPU time, with no fault
        self.reached = {}   # number of a fault -> operations that ran it


def cases_of(program, units):
    """The test cases of a program made of these files."""
    listed = subprocess.run([program, "--list-test-names-only"], capture_output=True, text=True).stdout.splitlines()
    texts = {u.name: u.read_text() for u in units}
    cases = []
    for name in filter(None, listed):
        written = (f'"{name}"', f'"{name.rpartition(" - ")[0] or name}"')  # a case of a template has its type behind its name
        unit = next((u for u, text in texts.items() if written[0] in text or written[1] in text), None)
        if unit is None:
            sys.exit(f"mutants: which file has the test case '{name}'?")
        cases.append(test_case(unit, name))
    return cases


class builder:
    """Takes the interpreter and the tests' main program from the folder `build`, and writes to the folder `out`."""

    def __init__(self, build, jobs, out):
        build = pathlib.Path(build).resolve()
        self.out, self.jobs = pathlib.Path(out).resolve(), jobs
        self.copy = self.out / "include"
        self.compiler = os.environ.get("CXX", "g++")
        self.libraries = [self.one(build, "libgyre_simt.a"), self.one(build, "test_main.dir/**/main.cpp.o")]
        self.instrumentation = self.one(build, "gyre_simt_instrumentation.dir/**/instrumentation.cpp.o")
        self.programs = {}

    @staticmethod
    def one(build, pattern):
        for path in sorted(build.glob("**/" + pattern)):
            return str(path)
        sys.exit(f"mutants: no {pattern} under {build}: build gyre_simt, gyre_simt_instrumentation and test_main there")

    @staticmethod
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def map(self, function, items):
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(function, items)

    def build(self, program, units):
        """Compiles the files, and links them. An object is kept for as long as all that it was made of stays."""
        def compile_one(unit):
            to = self.out / "objects" / program / (unit.stem + ".o")
            used, made_of = to.with_suffix(".d"), to.with_suffix(".key")
            command = [self.compiler, *flags, *(watching if program == "watched" else []), "-include", str(root / "tests/mutants/chosen.hpp"),
                       f"-I{self.copy}", f"-I{root}/include", f"-I{root}/tests", "-I/usr/include/eigen3", "-c", str(unit)]
            if not (made_of.exists() and to.exists() and made_of.read_text() == key_of(command, used)):
                to.parent.mkdir(parents=True, exist_ok=True)
                made_of.unlink(missing_ok=True)
                self.checked(command + ["-MMD", "-MF", str(used), "-o", str(to)], unit.name)
                made_of.write_text(key_of(command, used))
            return str(to)

        objects = list(self.map(compile_one, units))
        to = self.out / program
        wrapped = [self.instrumentation, "-Wl,--wrap=memcpy", "-Wl,--wrap=memmove", "-Wl,--wrap=memset"] if program == "watched" else []
        self.checked([self.compiler, *objects, *wrapped, *self.libraries, "-ldl", "-pthread", "-o", str(to)], program)
        self.programs[program] = str(to)

    def checked(self, command, what):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            errors = [line for line in made.stderr.splitlines() if "rror" in line or "undefined" in line]
            sys.exit(f"mutants: {what} does not compile with the changed kernels:\n" + "\n".join(errors[:10]))

    def run(self, program, case, fault):
        """(case, None if it passes or else how it failed, seconds of CPU time). Without a fault it notes what the case comes by."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GYRE_FAULT")}
        environment["PATH"] = "/nowhere"  # no addr2line: who reports a fault would look up lines that nobody reads
        reached = self.out / f"reached.{os.getpid()}.{program}.{hashlib.sha256((case.unit + case.name).encode()).hexdigest()[:16]}"
        if fault is None:
            environment["GYRE_FAULT_REACHED"] = str(reached)
        else:
            environment["GYRE_FAULT"] = str(fault)
        limit = 600 if fault is None else int(10 + 4 * case.seconds)
        spec = re.sub(r'([\\,\[\]"~*])', r"\\\1", case.name)
        # Of CPU time, which other programs' load does not change.
        command = ["/bin/sh", "-c", f'ulimit -c 0; ulimit -t {limit}; exec "$@"', "sh", self.programs[program], spec, "--abort"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=root)
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        if fault is None:
            case.seconds = seconds
            for line in reached.read_text().splitlines() if reached.exists() else []:
                number, operation = line.split()
                case.reached.setdefault(int(number), set()).add(operation)
            reached.unlink(missing_ok=True)
        if process.returncode == 0:
            return case, None, seconds
        if seconds >= limit - 1:
            return case, "found, for it does not end, by", seconds
        return case, "found by" if fault is not None else output[-3000:], seconds

    def run_all(self, program, jobs):
        yield from self.map(lambda job: self.run(program, *job), jobs)
