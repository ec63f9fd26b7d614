#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write docs/reference/commands.md from the manual pages that the program prints, which come from its option tables.

    scripts/commands-page.py [--sdlf build/sdlf] [--page FILE] [--check]

--check writes nothing, and ends with status 1 if the page differs from the program's. A command that is missing from this build, for lack
of a library, keeps its section.
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
SHARED = "In every command"
HEAD = """# Commands

Written by `scripts/commands-page.py` from the program's own tables of options. `sdlf COMMAND --help` says the same, with
the names that an option takes and examples; `man sdlf-COMMAND` too. [The program](../guides/program.md) is the guide.
"""


def plain(text):
    """Undoes roff's escapes, and escapes Markdown's special characters."""
    return re.sub(r"([|<>*_])", r"\\\1", text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").strip())


def parse(page):
    """The description, and the groups of options, [title, [(option, text)]]."""
    description, groups, section, option = [], [], "", None
    for line in page.split("\n"):
        macro, _, rest = line.partition(" ")
        if macro == ".SH":
            section, option = rest, None
        elif macro == ".SS" and section == "OPTIONS":
            groups.append([plain(rest), []])
        elif macro == ".TP":
            option = None
        elif macro == ".B" and section == "OPTIONS":
            if not groups:
                groups.append(["Options", []])
            option = plain(rest)
            groups[-1][1].append([option, ""])
        elif line.startswith(".") or not line:
            continue
        elif section == "DESCRIPTION":
            description.append(plain(line))
        elif section == "OPTIONS" and option:
            groups[-1][1][-1][1] = (groups[-1][1][-1][1] + " " + plain(line)).strip()
    return " ".join(description), groups


def table(rows):
    return ["| option | |", "|---|---|"] + [f"| `{option}` | {text} |".replace("\\|", "\\|") for option, text in rows] + [""]


def section(words, page):
    description, groups = parse(page)
    lines = [f"## sdlf {' '.join(words)}", "", description, ""]
    for title, rows in groups:
        if title != SHARED:
            lines += [f"**{title}**", ""] + table([(re.sub(r"\\([|<>*_])", r"\1", option).replace("|", "\\|"), text) for option, text in rows])
    return "\n".join(lines)


def asked(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def commands(sdlf, *before):
    """Every command that has a page, as words; those that only group others have none."""
    for line in asked(sdlf, "complete", *before, "").split("\n"):
        word = re.match(r"([a-z]+)\t", line)
        if word and word.group(1) not in ("help", "complete"):
            words = (*before, word.group(1))
            if asked(sdlf, *words, "--help=man"):
                yield words
            if len(words) == 1:
                yield from commands(sdlf, *words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdlf", metavar="PATH", default=os.path.join(ROOT, "build", "sdlf"), help="the program")
    parser.add_argument("--page", metavar="FILE", default=os.path.join(ROOT, "docs", "reference", "commands.md"), help="the page")
    parser.add_argument("--check", action="store_true", help="write nothing: is the page what the program says?")
    arguments = parser.parse_args()
    old = ""
    if os.path.exists(arguments.page):
        with open(arguments.page, encoding="utf-8") as file:
            old = file.read()
    kept = {name: text for text, name in re.findall(r"(?ms)^(## sdlf ([a-z ]+)\n.*?)(?=^## |\Z)", old)}
    sections, shared = dict.fromkeys(kept), None
    for words in commands(arguments.sdlf):
        page = asked(arguments.sdlf, *words, "--help=man")
        sections[" ".join(words)] = section(words, page)
        shared = shared or [rows for title, rows in parse(page)[1] if title == SHARED]
    sections = [text or kept[name].rstrip("\n") + "\n" for name, text in sorted(sections.items())]
    text = "\n".join([HEAD] + sections + ["## In every command", ""] + table(shared[0])).rstrip("\n") + "\n"
    if text == old:
        return 0
    if arguments.check:
        print(f"{arguments.page}: not what {arguments.sdlf} says; run scripts/commands-page.py --sdlf {arguments.sdlf}")
        return 1
    with open(arguments.page, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


sys.exit(main())
