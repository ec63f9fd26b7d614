#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write docs/reference/performance.md, and the table of results in README.md, from the figures in docs/measured/performance.json.

    scripts/performance-page.py [--measured FILE] [--page FILE] [--readme FILE] [--check]

The file has "sections", each with title, date, machine, unit, the commands that produce its figures, and rows: a job,
SDLF's figure ("ours"), that of the best other program ("peer") and its name ("with"), and the floor if known. Figures
are strings, as printed. A row with "readme" is also in README's table, under that name. The comparing scripts write the
file, with --record. Nothing is measured here. --check writes nothing, and ends with status 1 if a page differs from the
file.
"""
import argparse
import datetime
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
BEGIN, END = "<!-- results: written by scripts/performance-page.py -->\n", "<!-- end of results -->\n"
HEAD = """# Performance

Written by `scripts/performance-page.py` from [docs/measured/performance.json](../measured/performance.json), which the comparing
scripts write (`--record`).

Each table compares SDLF with the fastest other program that was measured for the job. The ratio is the other program's figure divided by
SDLF's: above 1, SDLF is ahead; the better figure is bold. The floor is the least time that the machine could take, where it was worked
out ([how](../guides/measuring.md)). Each figure was taken on the day, the machine and by the command given; machines were shared, so
figures of different tables do not compare. The [notebook](../notebook/performance.md) has the trials behind them.
"""


def number(text, where):
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        sys.exit(f"{where}: expected a number such as \"1.52\", found {text!r}")
    return float(text)


def row(entry, where, floors):
    missing = [key for key in ("job", "ours", "peer", "with") if not entry.get(key)]
    if missing:
        sys.exit(f"{where}: {entry.get('job', 'a row')}: {missing[0]} is missing")
    where = f"{where}: {entry['job']}"
    ours, peer = number(entry["ours"], where), number(entry["peer"], where)
    if "floor" in entry:
        number(entry["floor"], where)
    texts = [f"**{entry['ours']}**" if ours <= peer else entry["ours"], f"**{entry['peer']}**" if peer <= ours else entry["peer"]]
    return f"| {entry['job']} | {entry['with']} | {texts[1]} | {texts[0]} | {peer / ours:.2f} |" + (f" {entry.get('floor', '')} |" if floors else "")


def section(entry):
    where, unit = entry["title"], entry["unit"]
    date = datetime.date.fromisoformat(entry["date"])
    floors = any("floor" in each for each in entry["rows"])
    lines = [f"## {entry['title']}", "", f"{date.day} {date:%B %Y}, on {entry['machine']}.", ""]
    lines += [f"    {command}" for command in entry["command"]] + [""]
    if "note" in entry:
        lines += [entry["note"], ""]
    lines += [f"| job | best peer | its {unit} | SDLF, {unit} | ratio |" + (" floor |" if floors else ""),
              "|---|---|---:|---:|---:|" + ("---:|" if floors else "")]
    return "\n".join(lines + [row(each, where, floors) for each in entry["rows"]]) + "\n"


def results(sections):
    """README's table."""
    lines = ["| on one NVIDIA H200 | SDLF | best peer | ratio |", "|---|---:|---|---:|"]
    for gpu in (True, False):
        if not gpu:
            lines.append("| **on two threads of a CPU** | | | |")
        for entry in sections:
            for each in entry["rows"]:
                if "readme" in each and ("GPU" in entry["title"]) == gpu:
                    ours, peer = f"{each['ours']} {entry['unit']}", f"{each['peer']} {entry['unit']}"
                    ratio = float(each["peer"]) / float(each["ours"])
                    lines.append(f"| {each['readme']} | {ours} | {peer} ({each['with'].split(',')[0]}) | {ratio:.2f} |")
    return "\n".join(lines) + "\n"


def contents(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", metavar="FILE", default=os.path.join(ROOT, "docs", "measured", "performance.json"), help="the figures")
    parser.add_argument("--page", metavar="FILE", default=os.path.join(ROOT, "docs", "reference", "performance.md"), help="the page")
    parser.add_argument("--readme", metavar="FILE", default=os.path.join(ROOT, "README.md"), help="a page with the two marks")
    parser.add_argument("--check", action="store_true", help="write nothing: are the pages what the figures say?")
    arguments = parser.parse_args()
    sections = json.loads(contents(arguments.measured))["sections"]
    readme = contents(arguments.readme)
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        sys.exit(f"{arguments.readme}: expected the marks {BEGIN.strip()} and {END.strip()}")
    stale = 0
    for path, text in ((arguments.page, "\n".join([HEAD] + [section(entry) for entry in sections])),
                       (arguments.readme, before + begin + results(sections) + end + after)):
        if not os.path.exists(path) or contents(path) != text:
            stale += 1
            print(f"{path}: {'not what ' + arguments.measured + ' says; run scripts/performance-page.py' if arguments.check else 'written'}")
            if not arguments.check:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    return 1 if stale and arguments.check else 0


sys.exit(main())
