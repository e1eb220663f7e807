"""Budgets of what ptxas says of kernels: registers, bytes of shared memory; no spills and no stack unless a budget says so.

Reads the .ptxas files that keep_ptxas.sh leaves beside objects. Every kernel must match a line of the budget file, for every
architecture, and every line must match a kernel:
    <regular expression of the kernel's name>  registers=<most> [shared=<most>] [spill=<most>] [stack=<most>]
The first line that matches counts. Usage: ptxas_budget.py BUDGETS FOLDER ARCHITECTURE...
"""
import pathlib
import re
import subprocess
import sys


def read_budgets(path):
    budgets = []
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        pattern, *limits = line.split()
        most = {"registers": None, "shared": 0, "spill": 0, "stack": 0}
        for limit in limits:
            name, value = limit.split("=")
            if name not in most:
                sys.exit(f"{path}: no such limit: {limit}")
            most[name] = int(value)
        if most["registers"] is None:
            sys.exit(f"{path}: {pattern} has no registers=")
        budgets.append((re.compile(pattern), most))
    return budgets


def read_kernels(folder):
    """{(name, architecture): {registers, shared, spill, stack}}; of kernels that several objects hold, the most."""
    kernels = {}
    for path in sorted(folder.rglob("*.ptxas")):
        now = None
        for line in path.read_text().splitlines():
            if found := re.search(r"Compiling entry function '(\S+)' for '(\w+)'", line):
                now = kernels.setdefault((found[1], found[2]), dict.fromkeys(("registers", "shared", "spill", "stack"), 0))
            elif re.search(r"Function properties for", line):
                pass
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


def main():
    budgets = read_budgets(pathlib.Path(sys.argv[1]))
    kernels = read_kernels(pathlib.Path(sys.argv[2]))
    architectures = sys.argv[3:]
    names = sorted({name for name, _ in kernels})
    plain = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True, check=True).stdout.splitlines()
    spoken = dict(zip(names, plain))
    failed, used = 0, set()
    for (name, architecture), is_now in sorted(kernels.items(), key=lambda item: (spoken[item[0][0]], item[0][1])):
        # The library's inline namespace has the version in its name, and parameters say nothing that the template does not.
        text = re.sub(r"gyre::v\w+::(detail::)?", "", spoken[name])
        text = re.sub(r"^void ", "", text)
        budget = next(((n, most) for n, (pattern, most) in enumerate(budgets) if pattern.search(text)), None)
        if budget is None:
            print(f"OVER BUDGET: no budget for {architecture} {text[:160]}: {is_now}")
            failed += 1
            continue
        used.add(budget[0])
        over = [f"{what} {is_now[what]} of {most}" for what, most in budget[1].items() if is_now[what] > most]
        shown = ", ".join(f"{what} {value}" for what, value in is_now.items())
        print(f"{'OVER BUDGET: ' if over else ''}{architecture} {text[:120]}: {shown}{' (' + '; '.join(over) + ')' if over else ''}")
        failed += bool(over)
    for n, (pattern, _) in enumerate(budgets):
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
