# SPDX-License-Identifier: MIT
"""What the comparing scripts record is what the page then says.

    test_comparing.py SCRIPTS
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

from checking import check, conclude

sys.path.insert(0, sys.argv[1])
import comparing  # noqa: E402


def record(file, section, machine=None):
    parser = argparse.ArgumentParser()
    comparing.Record.arguments(parser)
    words = ["--record", section, "--measured", file] + (["--machine", machine] if machine else [])
    sys.argv = ["compare-this.py", "--batch", "1 2", *words]
    return comparing.Record(parser.parse_args(words), "ms")


def sections(file):
    with open(file, encoding="utf-8") as opened:
        return json.load(opened)["sections"]


def main():
    scripts = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        file, page, readme = (os.path.join(folder, name) for name in ("figures.json", "page.md", "README.md"))
        kept = {"job": "a", "ours": "1.0", "peer": "3.0", "with": "other 1", "floor": "0.5", "readme": "job a"}
        with open(file, "w", encoding="utf-8") as opened:
            json.dump({"sections": [{"title": "Old on a GPU", "date": "2026-01-02", "machine": "m", "unit": "ms", "command": ["x"],
                                     "rows": [kept]}]}, opened)
        found = record(file, "Old on a GPU")
        found.add("a", 2.0, 0.01234, "other 2")
        found.add("b", 1234.5, 12.345, "other 2", floor=11)
        found.write()
        old = sections(file)[0]
        check("a known job keeps its floor and its name in README", old["rows"][0] == {**kept, "ours": "2.00", "peer": "0.0123", "with": "other 2"}, old)
        check("a new job is added", old["rows"][1] == {"job": "b", "ours": "1234", "peer": "12.3", "floor": "11.0", "with": "other 2"}, old)
        check("the command and the day are the new ones", old["command"] == ["scripts/compare-this.py --batch '1 2'"] and old["date"] != "2026-01-02" and old["machine"] == "m", old)
        found = record(file, "New", "two threads")
        found.add("c", 9.999, 1, "other")
        found.write()
        check("a section is added", [each["title"] for each in sections(file)] == ["Old on a GPU", "New"], sections(file))
        check("with its figures", sections(file)[1]["rows"][0]["ours"] == "10.00" and sections(file)[1]["machine"] == "two threads", sections(file))
        try:
            missing = record(file, "Newer")
            missing.add("d", 1, 1, "other")
            missing.write()
            check("a new section needs a machine", False)
        except SystemExit as said:
            check("a new section needs a machine", "--machine" in str(said), said)
        with open(readme, "w", encoding="utf-8") as opened:
            opened.write("before\n<!-- results: written by scripts/performance-page.py -->\n<!-- end of results -->\nafter\n")
        subprocess.run([sys.executable, os.path.join(scripts, "performance-page.py"), "--measured", file, "--page", page, "--readme", readme],
                       check=True, stdout=subprocess.DEVNULL)
        with open(page, encoding="utf-8") as opened:
            text = opened.read()
        check("the page has them", "| a | other 2 | **0.0123** | 2.00 | 0.01 | 0.5 |" in text and "| c | other | **1.00** | 10.00 | 0.10 |" in text, text)
        with open(readme, encoding="utf-8") as opened:
            check("so has README", "| job a | 2.00 ms | 0.0123 ms (other 2) | 0.01 |" in opened.read())
    conclude()


main()
