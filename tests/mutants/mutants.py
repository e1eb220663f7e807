#!/usr/bin/env python3
"""Plants one fault at a time in the kernels of backend/cuda and runs their tests: each fault must be found.

  mutants.py BUILD            the fixed choice of 40 that touches every kernel
  mutants.py BUILD --all      every one
  mutants.py BUILD --list     only names them
  mutants.py BUILD --file norms.cuh [--all]    those of one file

BUILD is a configured and built folder of gyre's tests (the interpreter and the tests' main program are taken from it). A kernel's
tests are the files of tests/cuda that name its file in a line `// kernels: norms.cuh, gates.cuh`. Each is compiled with the changed
kernel, plain and, if that does not find the fault, with every access watched. Survivors need a reason in survivors.txt.
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parents[2]
kernels = root / "include/gyre/backend/cuda/kernels"
fixed_choice = 40
# What makes a fault of its kind certain to be found: the rest may have survivors, one in twenty.
strict = {"barrier", "warp barrier", "wait", "atomic"}


def without_comments(text):
    """The same text with comments and strings blanked, so that places stay."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#[^\n]*', blank, text, flags=re.S | re.M)


def closing(text, start):
    """The place behind the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    return len(text)


def arguments_of(text, start):
    """The arguments between the parenthesis at `start` and its end, as (begin, end)."""
    end, parts, begin, depth = closing(text, start) - 1, [], start + 1, 0
    for at in range(start + 1, end):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if text[at] == "," and depth == 0:
            parts.append((begin, at))
            begin = at + 1
    return parts + [(begin, end)]


def call_sites(text, name):
    for m in re.finditer(r"(?<![\w.])" + name + r"\s*\(", text):
        yield m.start(), m.end() - 1


class mutant:
    def __init__(self, path, source, kind, begin, end, new):
        self.file, self.kind = path.name, kind
        self.text = source[:begin] + new + source[end:]
        self.line = source.count("\n", 0, begin) + 1
        first = source.rfind("\n", 0, begin) + 1
        last = source.find("\n", end)
        self.code = " ".join(source[first:last].split())  # the line as it is
        self.became = " ".join((source[first:begin] + new + source[end:last]).split())
        self.kernel = kernel_at(source, begin)

    def name(self):
        return f"{self.file}:{self.line} {self.kind}: {self.became}"

    def key(self):
        return f"{self.file} | {self.kind} | {self.became}"


def kernel_at(source, place):
    """The function of the device that `place` lies in: the last one that begins before it."""
    name = ""
    for m in re.finditer(r"GYRE_(?:KERNEL|DEVICE)\b[^;{=]*?(\w+)\s*\(", without_comments(source)):
        if m.start() > place:
            break
        name = m.group(1)
        if name == "__launch_bounds__":
            rest = re.search(r"\)\s*(\w+)\s*\(", source[m.end():])
            name = rest.group(1) if rest else name
    return name


def faults_of(path):
    source = path.read_text()
    code = without_comments(source)
    found = []
    add = lambda *what: found.append(mutant(path, source, *what))
    for name in ("__syncthreads(?:_count|_and|_or)?", "__syncwarp"):
        for begin, at in call_sites(code, name):
            end = closing(code, at)
            kind = "warp barrier" if "warp" in name else "barrier"
            value = code[begin:end].startswith(("__syncthreads_c", "__syncthreads_a", "__syncthreads_o"))
            add(kind, begin, end, code[at:end] if value else "(void)0")
    for name in ("__pipeline_wait_prior", "__pipeline_commit"):
        for begin, at in call_sites(code, name):
            add("wait", begin, closing(code, at), "(void)0")
    for name in (r"__shfl(?:_xor|_up|_down)?_sync", "__ballot_sync", "__any_sync", "__all_sync", "__match_any_sync", r"__reduce_\w+_sync",
                 "__syncwarp"):
        for begin, at in call_sites(code, name):
            first, last = arguments_of(code, at)[0]
            if code[first:last].strip():
                add("mask", first, last, f"(({code[first:last].strip()}) >> 1)")
    for begin, at in call_sites(code, r"atomic(?:Add|Sub|Max|Min|Inc|Or|And|Exch|CAS)"):
        name, end = code[begin:at].strip(), closing(code, at)
        parts = [code[a:b].strip() for a, b in arguments_of(code, at)]
        after = {"atomicAdd": "b + v", "atomicSub": "b - v", "atomicMax": "b < v ? v : b", "atomicMin": "v < b ? v : b",
                 "atomicInc": "b >= v ? 0 : b + 1", "atomicOr": "b | v", "atomicAnd": "b & v", "atomicExch": "v", "atomicCAS": "v"}[name]
        add("atomic", begin, end,
            "[](auto* p, auto v) { auto b = *p; *p = static_cast<decltype(b)>(" + after + f"); return b; }}({parts[0]}, {parts[-1]})")
    # Bounds: comparisons in conditions. clang-format puts spaces around operators and none around template arguments.
    for m in re.finditer(r"\b(if|for|while)\s*(?:constexpr\s*)?\(", code):
        # Bounds of unrolled loops are the compiler's: they count registers.
        if "constexpr" in m.group() or code[:m.start()].rstrip().endswith("GYRE_UNROLL"):
            continue
        end = closing(code, m.end() - 1)
        begin = m.end()
        if m.group(1) == "for":
            begin = code.find(";", begin) + 1
            end = code.find(";", begin)
        for c in re.finditer(r" (<|<=|>|>=) ", code[begin:end]):
            other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[c.group(1)]
            add("bound", begin + c.start(1), begin + c.end(1), other)
    for m in re.finditer(r" (<|<=|>|>=) ([^;?{}&|]*?) \? ", code):
        other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[m.group(1)]
        add("bound", m.start(1), m.end(1), other)
    for m in re.finditer(r"\b(?:return|=|&&|\|\|) *[^;?{}]*? (<|<=|>|>=) [^;?{}]*;", code):
        other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}[m.group(1)]
        add("bound", m.start(1), m.end(1), other)
    for m in re.finditer(r" \* ((?:\w+\.)?\w*(?:scale|factor|rate|shrink|correction|sigma|gain)\w*(?:\[[^\]]*\])?)(?![\w(])", code):
        add("scale", m.start(), m.end(), "")
    for m in re.finditer(r"(?<![\w.>])((?:\w+\.)?\w*(?:scale|factor|rate|shrink|correction|sigma)\w*(?:\[[^\]]*\])?) \* ", code):
        add("scale", m.start(), m.end(), "")
    unique = {}
    for f in found:
        if not (f.kind == "bound" and re.match(r"(static |inline )*constexpr ", f.code)):
            unique.setdefault(f.text, f)
    return sorted(unique.values(), key=lambda f: (f.line, f.kind))


def tests_of():
    """File of kernels -> its test units."""
    found = {}
    for unit in sorted((root / "tests/cuda").glob("*.cpp")):
        for line in unit.read_text().splitlines():
            m = re.match(r"// kernels: (.*)", line)
            for name in re.split(r",\s*", m.group(1).strip()) if m else []:
                found.setdefault(name, []).append(unit)
    return found


class builder:
    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.out = self.build / "mutants"
        self.compiler = os.environ.get("CXX", "g++")
        self.simt = self.one("libgyre_simt.a")
        self.watching = self.one("gyre_simt_instrumentation.dir/**/instrumentation.cpp.o")
        self.main = self.one("test_main.dir/**/main.cpp.o")

    def one(self, pattern):
        for path in sorted(self.build.glob("**/" + pattern)):
            return path
        sys.exit(f"mutants: no {pattern} under {self.build}: build the tests first (./run test build)")

    def run(self, unit, includes, name, watched, limit):
        """None if the unit's tests pass; else how they failed."""
        program = self.out / (name + (".race" if watched else ".plain"))
        command = [self.compiler, "-std=c++20", "-O0", "-w", *(f"-I{i}" for i in includes), f"-I{root}/include", f"-I{root}/tests",
                   "-I/usr/include/eigen3", str(unit), "-o", str(program)]
        if watched:
            command += ["-g", "-fsanitize=thread,alignment", "--param", "tsan-instrument-func-entry-exit=0", "-c"]
            command[command.index("-o") + 1] = str(program) + ".o"
            built = subprocess.run(command, capture_output=True, text=True)
            if built.returncode == 0:
                built = subprocess.run(
                    [self.compiler, str(program) + ".o", str(self.watching), str(self.simt), str(self.main), "-ldl", "-pthread",
                     "-Wl,--wrap=memcpy", "-Wl,--wrap=memmove", "-Wl,--wrap=memset", "-o", str(program)], capture_output=True, text=True)
        else:
            built = subprocess.run(command + [str(self.simt), str(self.main), "-ldl", "-pthread"], capture_output=True, text=True)
        if built.returncode != 0:
            return "does not compile: " + next((l for l in built.stderr.splitlines() if "rror" in l), "")
        try:
            ran = subprocess.run([str(program), "--abort"], capture_output=True, text=True, timeout=limit, cwd=root)
            result = None if ran.returncode == 0 else "found" + (" by watching" if watched else "")
        except subprocess.TimeoutExpired:
            result = "found: does not end"
        for file in (program, pathlib.Path(str(program) + ".o")):
            file.unlink(missing_ok=True)
        return result


def choice(all_faults):
    """40 faults, the same for the same sources: one of every file, then of kernels that have none yet, barriers and their like first."""
    by_hash = sorted(all_faults, key=lambda f: (f.kind not in strict, hashlib.sha256(f.key().encode()).hexdigest()))
    chosen = list({f.file: f for f in reversed(by_hash)}.values())
    for unseen in (True, False):
        for f in by_hash:
            if len(chosen) < fixed_choice and f not in chosen and not (unseen and f.kernel in {c.kernel for c in chosen}):
                chosen.append(f)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--file")
    parser.add_argument("--table", help="write what was found, as markdown, to this file")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("JOBS", os.cpu_count())))
    options = parser.parse_args()

    faults = [f for path in sorted(kernels.glob("*.cuh")) if options.file in (None, path.name) for f in faults_of(path)]
    if not options.all and not options.file:
        faults = choice(faults)
    if options.list:
        print("\n".join(f"{f.name()}   [{f.kernel}]" for f in faults))
        return 0
    units = tests_of()
    untested = sorted({f.file for f in faults} - units.keys())
    if untested:
        sys.exit(f"mutants: no file of tests/cuda has a line '// kernels: ...' that names {', '.join(untested)}")
    reasons = {}
    for line in (root / "tests/mutants/survivors.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            key, _, reason = line.rpartition(" | ")
            reasons[key] = reason

    tools = builder(options.build)
    shutil.rmtree(tools.out, ignore_errors=True)
    tools.out.mkdir()
    # The unchanged tree first: it reports nothing, and says how long its tests take.
    limits = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        def unchanged(job):
            unit, watched = job
            began = time.monotonic()
            return job, tools.run(unit, [], f"unchanged.{unit.stem}", watched, 600), time.monotonic() - began
        for job, result, seconds in pool.map(unchanged, [(u, w) for u in sorted({u for f in faults for u in units[f.file]}) for w in (0, 1)]):
            if result is not None:
                sys.exit(f"mutants: the unchanged tree fails in {job[0].name}: {result}")
            limits[job] = 30 + 10 * seconds

        done = 0
        def judge(job):
            number, fault = job
            folder = tools.out / str(number)
            place = folder / "gyre/backend/cuda/kernels"
            place.mkdir(parents=True)
            (place / fault.file).write_text(fault.text)
            result = None
            for watched in (0, 1):
                for unit in units[fault.file]:
                    result = result or tools.run(unit, [folder], f"{number}.{unit.stem}", watched, limits[unit, watched])
            shutil.rmtree(folder)
            return fault, result
        table, survivors = {}, []
        for fault, result in pool.map(judge, enumerate(faults)):
            done += 1
            counts = table.setdefault(fault.file, {}).setdefault(fault.kind, [0, 0, 0])
            if result is None:
                reason = reasons.get(fault.key())
                survivors.append((fault, reason))
                counts[1 if reason is None else 2] += 1
            elif not result.startswith("does not compile"):
                counts[0] += 1
            print(f"[{done}/{len(faults)}] {fault.name()}: {result or 'SURVIVED' + (' (' + reason + ')' if reason else '')}", flush=True)

    lines = ["| kernels | " + " | ".join(("barrier", "warp barrier", "mask", "bound", "atomic", "wait", "scale")) + " |", "|---" * 8 + "|"]
    for file, kinds in sorted(table.items()):
        cells = [file]
        for kind in ("barrier", "warp barrier", "mask", "bound", "atomic", "wait", "scale"):
            found, missed, excused = kinds.get(kind, (0, 0, 0))
            cells.append("" if found + missed + excused == 0 else f"{found} of {found + missed + excused}" + (f", {excused} excused" if excused else ""))
        lines.append("| " + " | ".join(cells) + " |")
    print("\n" + "\n".join(lines))
    if options.table:
        pathlib.Path(options.table).write_text("\n".join(lines) + "\n")
    judged = sum(sum(c) for kinds in table.values() for c in kinds.values())
    found = sum(c[0] for kinds in table.values() for c in kinds.values())
    print(f"\n{found} of {judged} planted faults found")
    bad = [f for f, reason in survivors if reason is None and (f.kind in strict or not options.all)]
    rest = [f for f, _ in survivors if f.kind not in strict]
    others = sum(1 for f in faults if f.kind not in strict)
    for fault, reason in survivors:
        print(f"survivor: {fault.key()}" + (f" | {reason}" if reason else "   (no reason in survivors.txt)"))
    if options.all and len(rest) > others / 20:
        print(f"{len(rest)} of {others} faults in masks, bounds and scales survived; at most one in twenty may")
        return 1
    return 1 if bad or (options.all and any(reason is None for _, reason in survivors)) else 0


if __name__ == "__main__":
    sys.exit(main())
