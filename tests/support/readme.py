"""Programs shown in the documentation are the programs that are compiled and run.

A fenced block right after a line `<!-- path/to/file -->` must equal that file. README.md must show examples/quickstart.cpp.
The ```cpp blocks of docs/using.md, one after the other, must be a program that compiles without warnings, and so must those of
README.md; messages name the page and its lines. The compiler is CXX of the environment, or the first one found.
Usage: readme.py SOURCE_FOLDER
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
marker = re.compile(r"^<!-- (\S+) -->\n+```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
shown = set()
wrong = 0
for page in [root / "README.md", *sorted((root / "docs").glob("**/*.md"))]:
    for name, block in marker.findall(page.read_text(encoding="utf-8")):
        shown.add((page.name, name))
        source = root / name
        if not source.is_file():
            print(f"{page.relative_to(root)} shows {name}, which does not exist")
            wrong += 1
        elif source.read_text(encoding="utf-8") != block:
            print(f"{page.relative_to(root)}: the block after '<!-- {name} -->' differs from {name}; copy the file there")
            wrong += 1
if (root / "examples/quickstart.cpp").exists() and ("README.md", "examples/quickstart.cpp") not in shown:
    print("README.md does not show examples/quickstart.cpp after a line '<!-- examples/quickstart.cpp -->'")
    wrong += 1
print(f"{len(shown)} programs shown, {wrong} differ")


def eigen_folders():
    """Where Eigen is, if it is no part of what every compiler searches."""
    told = []
    if shutil.which("pkg-config"):
        asked = subprocess.run(["pkg-config", "--cflags-only-I", "eigen3"], capture_output=True, text=True)
        told = [flag[2:] for flag in shlex.split(asked.stdout)]  # nothing where it is not known
    return [folder for folder in [*told, "/usr/include/eigen3"] if pathlib.Path(folder).is_dir()]


def compiles(page):
    name = page.relative_to(root)
    compiler = os.environ.get("CXX") or next((c for c in ("c++", "g++", "clang++") if shutil.which(c)), None)
    if not compiler or not eigen_folders():
        print(f"{name} is not compiled: no {'compiler' if not compiler else 'Eigen'} was found")
        return True
    text = page.read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    program = "\n".join(f'#line {text[: b.start(1)].count(chr(10)) + 1} "{name}"\n{b.group(1)}' for b in blocks)
    flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
    includes = [f"-I{root / 'include'}", *(f"-isystem{folder}" for folder in eigen_folders())]
    done = subprocess.run([*shlex.split(compiler), *flags, *includes, "-x", "c++", "-"], input=program, text=True)
    print(f"{name}: {len(blocks)} blocks {'compile' if done.returncode == 0 else 'do not compile'} ({compiler})")
    return bool(blocks) and done.returncode == 0


wrong += not compiles(root / "docs/using.md")
wrong += not compiles(root / "README.md")
sys.exit(wrong > 0)
