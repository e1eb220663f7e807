"""Programs shown in the documentation are the programs that are compiled and run.

A fenced block right after a line `<!-- path/to/file -->` must equal that file. README.md must show examples/quickstart.cpp.
Usage: readme.py SOURCE_FOLDER
"""
import pathlib
import re
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
sys.exit(wrong > 0)
