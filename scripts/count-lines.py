#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines of source by folder, at one or several revisions, as a Markdown table.

    scripts/count-lines.py REVISION...

For C, CUDA, C++, JavaScript, Python, shell and CMake files, without fixtures and fuzzing corpora: files, lines of code, lines of comments,
and the longest file. A line with code and a comment counts as code; blank lines do not count.
"""

import io
import re
import subprocess
import sys
import tarfile

FOLDERS = ["framework/include", "framework/plan", "framework/formats", "framework", "layers", "calculators/reference", "calculators/cpu",
           "calculators/cuda/conv2d", "calculators/cuda/gemm", "calculators", "lab", "communicators", "datasets", "graphs", "apps", "python",
           "scripts", "tests", ""]
C_LIKE = re.compile(r"\.(c|h|cu|cuh|cpp|js)$")
OTHERS = re.compile(r"\.(py|sh|cmake)$|(^|/)CMakeLists\.txt$")
LEFT_OUT = re.compile(r"/(fixtures|corpus)/")


def count_c(lines):
    """Counts lines of code and of comments."""
    code = comments = 0
    inside = False
    for line in (line.strip() for line in lines):
        if not line:
            continue
        only_comment = inside or line.startswith(("/*", "//"))
        code, comments = code + (not only_comment), comments + only_comment
        opened, closed = line.rfind("/*"), line.rfind("*/")
        inside = closed < 0 if inside else opened >= 0 and closed < opened
    return code, comments


def count_others(lines):
    lines = [line.strip() for line in lines if line.strip()]
    comments = sum(line.startswith("#") for line in lines)
    return len(lines) - comments, comments


def count(revision):
    """{folder: [files, code, comments, longest]}"""
    found = {folder: [0, 0, 0, 0] for folder in FOLDERS}
    archive = subprocess.run(["git", "archive", revision], check=True, stdout=subprocess.PIPE).stdout
    for member in tarfile.open(fileobj=io.BytesIO(archive)):
        name = member.name
        counter = count_c if C_LIKE.search(name) else count_others if OTHERS.search(name) else None
        if not member.isfile() or counter is None or LEFT_OUT.search(name):
            continue
        lines = tarfile_text(archive, member).splitlines()
        row = found[next(folder for folder in FOLDERS if not folder or name.startswith(folder + "/"))]
        code, comments = counter(lines)
        row[:] = [row[0] + 1, row[1] + code, row[2] + comments, max(row[3], len(lines))]
    return found


def tarfile_text(archive, member):
    return archive[member.offset_data:member.offset_data + member.size].decode(errors="replace")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tables = [count(revision) for revision in sys.argv[1:]]
    print("| folder |" + " files | code | comments | longest file |" * len(tables))
    print("|---|" + "---:|---:|---:|---:|" * len(tables))
    for folder in FOLDERS:
        print(f"| `{folder}` |" if folder else "| others |", " | ".join(f"{n:,}" for table in tables for n in table[folder]), "|")
    sums = [[sum(row[i] for row in table.values()) for i in range(3)] + [max(row[3] for row in table.values())] for table in tables]
    print("| all |", " | ".join(f"{n:,}" for row in sums for n in row), "|")


if __name__ == "__main__":
    main()
