"""Finds the places of faults in kernels, and writes a copy of the kernels in which every one of them can be chosen at run time.

A fault is one of
  barrier        __syncthreads left out; of __syncthreads_or and its like, the wait
  warp barrier   __syncwarp left out
  mask           lanes of a warp operation: one fewer
  atomic         not atomic: read, computed, written
  wait           __pipeline_wait_prior left out, or for one group of copies fewer; __pipeline_commit left out
  bound          < for <=, <= for <, and so on; where no test finds that, the bound is moved by one the other way
  scale          a factor (scale, rate, sigma, ...) left out
Left out of bounds are those of unrolled loops, constants and types, which count registers and choose sizes of tiles, and comparisons
that choose between their own operands (a < b ? a : b), which are the same for equal ones.

A bound moved to the other side of equality often changes nothing: an empty tile more, a slower path for a whole pack. Moved the other
way it loses an element, or takes one too many. So both are tried, and those that the first way leaves alone have a reason in
survivors.txt.
"""
import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[2]
backend = pathlib.Path("gyre/backend/cuda")  # under include/
kinds = ("barrier", "warp barrier", "wait", "atomic", "mask", "bound", "scale")
# What a fault of these must always be found; of the others one in twenty may survive.
strict = ("barrier", "warp barrier", "wait", "atomic")

other_way = 512  # added to the number of a bound: it is moved the other way (chosen.hpp)
other_bound = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
factor = r"(?:\w+\.)*\w*(?:scale|factor|rate|shrink|correction|sigma|gain|gate|before|log2_e)\w*(?:\[[^\[\]]*\])?"


class fault:
    """At source[begin:end], which becomes `new` where the fault is chosen; `chosen`: how the copy is written, with its number as {n}."""

    def __init__(self, file, source, kind, begin, end, new, chosen):
        self.file, self.kind, self.begin, self.end, self.chosen = file, kind, begin, end, chosen
        self.line = source.count("\n", 0, begin) + 1
        first, last = source.rfind("\n", 0, begin) + 1, source.find("\n", end)
        self.code = " ".join(source[first:last].split())
        self.became = " ".join((source[first:begin] + new + source[end:last]).split())
        self.function, self.number, self.key = "", -1, ""


def without_comments(text):
    """The same text with comments, strings and directives blanked, so that places stay."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.S | re.M)


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


def functions_of(code):
    """(place, name) of every function of the device, in order."""
    return [(place, name) for place, name, _ in declared_functions(code)]


def declared_functions(code):
    """(place, name, KERNEL or DEVICE) likewise."""
    found = []
    for m in re.finditer(r"GYRE_(KERNEL|DEVICE)\b[^;{=]*?(\w+)\s*\(", code):
        name = m.group(2)
        if name == "__launch_bounds__":
            rest = re.match(r"\s*(\w+)\s*\(", code[closing(code, m.end() - 1):])
            name = rest.group(1) if rest else name
        found.append((m.start(), name, m.group(1)))
    return found


def lines_of_kernels(paths):
    """(file, kernel) -> [(file, function)]: the kernel's own, then those of the device that it names, and so on.

    A name is looked up in the same file, and where that does not have it in all. The body of a functor is `operator` there."""
    called, kernels = {}, []
    for path in paths:
        code = without_comments(path.read_text())
        declared = declared_functions(code)
        for (place, name, what), (end, _, _) in zip(declared, declared[1:] + [(len(code), "", "")]):
            called.setdefault((path.name, name), set()).update(re.findall(r"\b(\w+)(?=[<(])", code[place:end]))
            if what == "KERNEL":
                kernels.append((path.name, name))
    reached = {}
    for kernel in kernels:
        order = [kernel]
        for file, function in order:
            for name in sorted(called[(file, function)]):
                places = [(file, name)] if (file, name) in called else [c for c in called if c[1] == name]
                order += [c for c in places if c not in order and c not in kernels]
        reached[kernel] = order
    return reached


def calls(code, add):
    for begin, at in call_sites(code, "__syncthreads(?:_count|_and|_or)?"):
        end = closing(code, at)
        value = code[at:end] if code[begin:at].strip() != "__syncthreads" else "(void)0"
        add("barrier", begin, end, value, f"(::gyre_mutants::fault({{n}}) ? {value} : {{code}})")
    for name in ("__syncwarp", "__pipeline_wait_prior", "__pipeline_commit"):
        for begin, at in call_sites(code, name):
            add("warp barrier" if name == "__syncwarp" else "wait", begin, closing(code, at), "(void)0",
                "(::gyre_mutants::fault({n}) ? (void)0 : {code})")
            if name == "__pipeline_wait_prior":
                first, last = arguments_of(code, at)[0]
                add("wait", first, last, code[first:last] + " + 1", "::gyre_mutants::wait({n}, {code})")
    for name in (r"__shfl(?:_xor|_up|_down)?_sync", "__ballot_sync", "__any_sync", "__all_sync", "__match_any_sync",
                 r"__reduce_\w+_sync", "__syncwarp"):
        for _, at in call_sites(code, name):
            first, last = arguments_of(code, at)[0]
            if code[first:last].strip():
                add("mask", first, last, f"{code[first:last].strip()} >> 1", "::gyre_mutants::mask({n}, {code})")
    for begin, at in call_sites(code, r"atomic(?:Add|Sub|Max|Min|Inc|Or|And|Exch|CAS)"):
        name, end = code[begin:at].strip(), closing(code, at)
        parts = [code[a:b].strip() for a, b in arguments_of(code, at)]
        after = {"atomicAdd": "b + v", "atomicSub": "b - v", "atomicMax": "b < v ? v : b", "atomicMin": "v < b ? v : b",
                 "atomicInc": "b >= v ? 0 : b + 1", "atomicOr": "b | v", "atomicAnd": "b & v", "atomicExch": "v", "atomicCAS": "v"}[name]
        plain = ("[](auto* p, auto v) { auto b = *p; *p = static_cast<decltype(b)>(" + after + f"); return b; }}({parts[0]}, {parts[-1]})")
        chosen = "(::gyre_mutants::fault({n}) ? " + plain.replace("{", "{{").replace("}", "}}") + " : {code})"
        add("atomic", begin, end, f"not_{name}({code[at + 1:end]}", chosen)


def statement_around(code, at):
    """From behind the ; { or } before `at` (in the head of a loop, its parenthesis) to the next ; or brace."""
    first = max(code.rfind(c, 0, at) for c in ";{}") + 1
    last = min(p for p in (code.find(c, at) for c in ";{}") if p >= 0)
    return first, last


def same_for_equal(code, begin, end):
    """Whether the comparison whose operator is code[begin:end] chooses between its own operands."""
    first, last = statement_around(code, begin)
    left = re.search(r"((?:[^(),=?:&|!]|\([^()]*\)|\[[^\[\]]*\])+)$", code[first:begin])
    words = left.group(1).split() if left else []
    a = " ".join(w for w in words if w not in ("return",)).strip()
    rest = code[end:last]
    m = re.match(r"\s*((?:[^()?,]|\([^()]*\))+?)\s*\?\s*((?:[^():,]|\([^()]*\)|::)+?)\s*:(?!:)\s*((?:[^(),;]|\([^()]*\))+)", rest)
    squeeze = lambda x: re.sub(r"\s", "", re.sub(r"static_cast<\w+>\(((?:[^()]|\([^()]*\))*)\)", r"\1", x))
    if m and a and {squeeze(a), squeeze(m.group(1))} == {squeeze(m.group(2)), squeeze(m.group(3))}:
        return True
    # if (a > b) b = a;
    m = re.match(r"\s*([\w\[\]./ ]+)\)\s*([\w\[\]./ ]+?) = ([\w\[\]./ ]+)$", rest)
    return bool(m and a and squeeze(m.group(1)) == squeeze(m.group(2)) and squeeze(a) == squeeze(m.group(3)))


def bounds(code, add):
    # clang-format puts spaces around operators, and none around template arguments.
    for m in re.finditer(r"(?<=[^\s]) (<|<=|>|>=)(?=\s)", code):
        begin, end = m.span(1)
        first, last = statement_around(code, begin)
        before = code[first:begin].strip()
        if re.match(r"(?:\w+ )*?(?:static_assert|using|template|struct)\b", before):
            continue
        if re.match(r"(?:(?:static|inline|constexpr) )*constexpr [\w:<>, ]+ = |(?:\w+\s*[,=][^;]*)?$", before) and "constexpr" in before:
            continue  # a constant
        if re.search(r"if constexpr \([^{};]*$", before) and closing(code, first + code[first:begin].rfind("if constexpr (") + 13) > begin:
            continue
        # The condition of an unrolled loop: behind the first ; of a head that GYRE_UNROLL begins.
        head = code[:first].rstrip()
        open_head = head.rfind("for (")
        if head.endswith(";") and open_head >= 0 and closing(code, open_head + 4) > begin and \
                re.search(r"GYRE_UNROLL$", code[:open_head].rstrip()):
            continue
        if same_for_equal(code, begin, end):
            continue
        add("bound", begin, end, other_bound[m.group(1)], "{code} ::gyre_mutants::bound({n}) {code}")


def scales(code, add):
    cast = r"static_cast<\w+>\((" + factor + r")\)"
    for pattern in (r" \*=? (" + factor + r")(?![\w(.<])", r" \* " + cast, r"(?<![\w.>*])(" + factor + r") \* (?!=)"):
        for m in re.finditer(pattern, code):
            if not re.search(r"(?:const )?\w+\*+ \*? ?$|<\w+$", code[:m.start(1)]):
                add("scale", m.start(1), m.end(1), "1", "::gyre_mutants::scale({n}, {code})")


def faults_of(path):
    """All faults of one file of kernels, in their order. A key names a fault as long as its function and line stay."""
    source = path.read_text()
    code = without_comments(source)
    found = {}

    def add(kind, begin, end, new, chosen):
        while source[begin].isspace():
            begin += 1
        found.setdefault((begin, end, kind, new), fault(path.name, source, kind, begin, end, new, chosen))

    calls(code, add)
    bounds(code, add)
    scales(code, add)
    ordered = sorted(found.values(), key=lambda f: (f.begin, -f.end, kinds.index(f.kind)))
    functions, seen = functions_of(code), {}
    for f in ordered:
        f.function = next((name for place, name in reversed(functions) if place <= f.begin), "(host)")
        key = f"{f.file} | {f.function} | {f.kind} | {f.became}"
        seen[key] = seen.get(key, 0) + 1
        f.key = key + (f" | {seen[key]}" if seen[key] > 1 else "")
    return ordered


def with_faults(source, faults):
    """The source in which every one of the faults can be chosen. Faults may lie within each other, not across each other's ends."""
    def written(begin, end, inner):
        text, at = "", begin
        while inner:
            f = inner.pop(0)
            within = []
            while inner and inner[0].end <= f.end and inner[0].begin >= f.begin:
                within.append(inner.pop(0))
            code = written(f.begin, f.end, within)
            text += source[at:f.begin] + f.chosen.replace("{code}", "{{code}}").format(n=f.number).replace("{code}", code)
            at = f.end
        return text + source[at:end]

    return written(0, len(source), sorted(faults, key=lambda f: (f.begin, -f.end)))


def operation_names():
    """The contract's list."""
    text = (root / "include/gyre/ops/operations.hpp").read_text()
    return re.findall(r'"(\w+)"', text[text.index("operation_names"):])


def with_operations(source, names):
    """The host's side, in which every operation says that it runs."""
    def scope(m):
        return m.group() + f"\n    const ::gyre_mutants::running running_operation(::gyre::operation::{m.group(1)});"

    return re.sub(r"^  (?:void|double|float|S|T) (" + "|".join(names) + r")\((?:[^{};]|\{\})*\) (?:const )?\{", scope, source, flags=re.M)


def write_copy(folder, kernel_files, include=root / "include"):
    """Writes the changed kernels and host's side under `folder`, as an include folder. Returns all faults, numbered."""
    all_faults, names = [], operation_names()
    for path in kernel_files:
        faults = faults_of(path)
        for f in faults:
            f.number = len(all_faults)
            all_faults.append(f)
        to = folder / path.relative_to(include)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(with_faults(path.read_text(), faults))
    for path in sorted((include / backend).glob("*.hpp")) if (include / backend).is_dir() else []:
        changed = with_operations(path.read_text(), names)
        if changed != path.read_text():
            (folder / backend).mkdir(parents=True, exist_ok=True)
            (folder / backend / path.name).write_text(changed)
    return all_faults
