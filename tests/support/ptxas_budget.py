"""Budgets of kernels, from what ptxas says and from the code that it made.

Reads the .ptxas files that keep_ptxas.sh leaves beside objects, and the objects themselves through cuobjdump. Every kernel must match a
line of the budget file, for every architecture, and every line must match a kernel:
    <regular expression of the kernel's name>  registers=<most> [shared=<most>] [spill=<most>] [stack=<most>]
                                               [blocks=<least>] [dynamic=<bytes>] [code=<instruction>[*<least>],...]
The first line that matches counts. No shared memory, no spills and no stack unless a budget says so. blocks: of a multiprocessor, that
have room at once by their registers, threads and shared memory, of which `dynamic` bytes are asked for at the launch. code: each
instruction begins so, and is there as often as said.

Usage: ptxas_budget.py BUDGETS FOLDER CUOBJDUMP ARCHITECTURE...; CUOBJDUMP empty: blocks and code are skipped.
"""
import os
import pathlib
import re
import subprocess
import sys

# Of a multiprocessor, by the number of the architecture: threads, blocks, bytes of shared memory (CUDA C++ programming guide, table of
# technical specifications per compute capability).
MACHINES = {
    80: (2048, 32, 164 << 10), 86: (1536, 16, 100 << 10), 87: (1536, 16, 164 << 10), 89: (1536, 24, 100 << 10),
    90: (2048, 32, 228 << 10), 100: (2048, 32, 228 << 10), 103: (2048, 32, 228 << 10), 110: (1536, 24, 228 << 10),
    120: (1536, 24, 100 << 10), 121: (1536, 24, 100 << 10),
}
REGISTERS, RESERVED_SHARED = 65536, 1024  # of a multiprocessor; of a block, by the runtime


def read_budgets(path):
    budgets = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        pattern, *limits = line.split()
        most = {"registers": None, "shared": 0, "spill": 0, "stack": 0}
        least = {"blocks": 1, "dynamic": 0, "code": []}
        for limit in limits:
            name, value = limit.split("=")
            if name == "code":
                for wanted in value.split(","):
                    instruction, _, count = wanted.partition("*")
                    least["code"].append((instruction, int(count or 1)))
            elif name in least:
                least[name] = int(value)
            elif name in most:
                most[name] = int(value)
            else:
                sys.exit(f"{path}: no such limit: {limit}")
        if most["registers"] is None:
            sys.exit(f"{path}: {pattern} has no registers=")
        budgets.append((re.compile(pattern), most, least))
    return budgets


def read_kernels(folder):
    """{(name, architecture): {registers, shared, spill, stack}}; of kernels that several objects hold, the most."""
    kernels = {}
    for path in sorted(folder.rglob("*.ptxas")):
        now = None
        for line in path.read_text().splitlines():
            if found := re.search(r"Compiling entry function '(\S+)' for '(\w+)'", line):
                now = kernels.setdefault((found[1], found[2]), dict.fromkeys(("registers", "shared", "spill", "stack"), 0))
            elif now is None:
                pass
            elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
                now["stack"] = max(now["stack"], int(found[1]))
                now["spill"] = max(now["spill"], int(found[2]) + int(found[3]))
            elif found := re.search(r"Used (\d+) registers", line):
                now["registers"] = max(now["registers"], int(found[1]))
                if found := re.search(r"(\d+) bytes smem", line):
                    now["shared"] = max(now["shared"], int(found[1]))
    return kernels


def listing(cuobjdump, what, path):
    # It asks nvdisasm, which lies beside it.
    paths = {**os.environ, "PATH": f"{pathlib.Path(cuobjdump).parent}:{os.environ['PATH']}"}
    done = subprocess.run([cuobjdump, what, str(path)], text=True, capture_output=True, env=paths)
    if done.returncode != 0 and "does not contain device code" not in done.stdout + done.stderr:
        sys.exit(f"OVER BUDGET: {cuobjdump} {what} {path}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def read_threads(cuobjdump, folder):
    """{(name, architecture): the most threads that a block may have}, as __launch_bounds__ told the compiler."""
    threads, architecture, kernel, of_threads = {}, "", None, False
    for path in sorted(folder.rglob("*.ptxas")):
        for line in listing(cuobjdump, "-elf", path.with_suffix("")):
            if found := re.match(r"arch = (\w+)", line):
                architecture, kernel = found[1], None
            elif found := re.match(r"\.nv\.info\.(\S+)", line):
                kernel = found[1]
            elif "Attribute:" in line:
                of_threads = "EIATTR_MAX_THREADS" in line
            elif of_threads and kernel is not None and (found := re.search(r"Value:\s+(0x\w+) (0x\w+) (0x\w+)", line)):
                threads[kernel, architecture] = int(found[1], 16) * int(found[2], 16) * int(found[3], 16)
    return threads


def read_code(cuobjdump, folder):
    """{(name, architecture): {instruction: how often}}."""
    code = {}
    for path in sorted(folder.rglob("*.ptxas")):
        now = architecture = None
        for line in listing(cuobjdump, "-sass", path.with_suffix("")):
            if found := re.match(r"arch = (\w+)", line):
                architecture = found[1]
            elif found := re.match(r"\s+Function : (\S+)", line):
                now = code.setdefault((found[1], architecture), {})
            elif now is not None and (found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", line)):
                now[found[1]] = now.get(found[1], 0) + 1
    return code


def blocks_at_once(is_now, threads, dynamic, architecture):
    most_threads, most_blocks, shared = MACHINES[int(re.sub(r"\D", "", architecture))]
    warps = (threads + 31) // 32
    of_warp = (is_now["registers"] + 7) // 8 * 8 * 32
    by_registers = REGISTERS // of_warp // 4 * 4 // warps  # each quarter of a multiprocessor has registers of its own
    by_shared = shared // (is_now["shared"] + dynamic + RESERVED_SHARED)
    return min(most_threads // (32 * warps), most_blocks, by_registers, by_shared)


def main():
    budgets = read_budgets(pathlib.Path(sys.argv[1]))
    folder, cuobjdump, architectures = pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
    kernels = read_kernels(folder)
    threads = read_threads(cuobjdump, folder) if cuobjdump else {}
    code = read_code(cuobjdump, folder) if cuobjdump else {}
    if not cuobjdump:
        print("skipped: blocks of a multiprocessor and instructions of kernels: no cuobjdump here; ./run cuda gets it from PyPI")
    names = sorted({name for name, _ in kernels})
    plain = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout.splitlines()
    spoken = dict(zip(names, plain))
    failed, used = 0, set()
    for (name, architecture), is_now in sorted(kernels.items(), key=lambda item: (spoken[item[0][0]], item[0][1])):
        # The library's inline namespace has the version in its name, and parameters say nothing that the template does not.
        text = re.sub(r"gyre::v\w+::(detail::)?", "", spoken[name])
        text = re.sub(r"^void ", "", text)
        budget = next(((n, most, least) for n, (pattern, most, least) in enumerate(budgets) if pattern.search(text)), None)
        if budget is None:
            print(f"OVER BUDGET: no budget for {architecture} {text[:160]}: {is_now}")
            failed += 1
            continue
        used.add(budget[0])
        over = [f"{what} {is_now[what]} of {most}" for what, most in budget[1].items() if is_now[what] > most]
        shown = ", ".join(f"{what} {value}" for what, value in is_now.items())
        least = budget[2]
        if cuobjdump:
            of_block = threads.get((name, architecture), 1024)
            blocks = blocks_at_once(is_now, of_block, least["dynamic"], architecture)
            shown += f", {blocks} blocks of {of_block} threads at once"
            if blocks < least["blocks"]:
                over.append(f"{blocks} blocks at once, and {least['blocks']} are the least")
            made = code.get((name, architecture), {})
            for instruction, count in least["code"]:
                # Other words stand between: LDG.E.128.CONSTANT, HMMA.16816.F32.BF16.
                pattern = re.compile(re.escape(instruction).replace(r"\.", r"(\.\w+)*\."))
                there = sum(times for what, times in made.items() if pattern.match(what))
                if there < count:
                    over.append(f"{there} {instruction}, and {count} are the least")
        print(f"{'OVER BUDGET: ' if over else ''}{architecture} {text[:120]}: {shown}{' (' + '; '.join(over) + ')' if over else ''}")
        failed += bool(over)
    for n, (pattern, *_) in enumerate(budgets):
        if n not in used:
            print(f"OVER BUDGET: no kernel matches {pattern.pattern}; remove its line")
            failed += 1
    for wanted in architectures:
        number = re.match(r"\d+\w?", wanted)[0]
        if not any(architecture == f"sm_{number}" for _, architecture in kernels):
            print(f"OVER BUDGET: nothing was compiled for architecture {wanted}")
            failed += 1
    print(f"{len(kernels)} kernels for {len(architectures)} architectures, {failed} over budget")
    return failed != 0


sys.exit(main())
