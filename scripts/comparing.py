# SPDX-License-Identifier: MIT
"""Shared by the scripts that time SDLF against another program: arguments, and error messages."""
import argparse
import datetime
import importlib
import json
import math
import os
import shlex
import subprocess
import sys


def parser(description):
    """A parser that shows the script's own description verbatim and each argument's default, and has --sdlf."""
    class Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
        pass

    made = argparse.ArgumentParser(description=description, formatter_class=Formatter)
    made.add_argument("--sdlf", metavar="PROGRAM", default="build/sdlf", help="the program that is timed")
    return made


class Record:
    """Figures for docs/reference/performance.md: with --record SECTION they go into that section of docs/measured/performance.json, and
    scripts/performance-page.py writes the page. An existing job gets new figures, and keeps its floor and its name in README."""

    def __init__(self, options, unit):
        self.file, self.title, self.machine, self.unit, self.rows = options.measured, options.record, options.machine, unit, []
        if self.title is not None:
            self.section(self.read())  # errors in it are reported before anything is measured

    @staticmethod
    def arguments(parser):
        parser.add_argument("--record", metavar="SECTION", help="write the figures into this section of performance.json, too")
        parser.add_argument("--machine", metavar="TEXT", help="with --record: what ran it, such as 'one NVIDIA H200'")
        parser.add_argument("--measured", metavar="FILE", help="with --record: another file",
                            default=os.path.relpath(os.path.join(os.path.dirname(__file__), os.pardir, "docs/measured/performance.json")))

    def add(self, job, ours, peer, name, **more):
        """Adds a row: the figures of SDLF and of the fastest other program, of that name, in the unit; and floor=, if known."""
        figures = {"ours": ours, "peer": peer, **more}
        if self.title is None or not all(math.isfinite(value) for value in figures.values()):
            return
        self.rows.append({"job": job, **{key: number(value) for key, value in figures.items()}, "with": name})

    def read(self):
        with open(self.file, encoding="utf-8") as file:
            return json.load(file)

    def section(self, all_):
        """The one of that title, which is there now."""
        section = next((each for each in all_["sections"] if each["title"] == self.title), None)
        if section is None:
            section = {"title": self.title, "rows": []}
            all_["sections"].append(section)
        if section.setdefault("unit", self.unit) != self.unit:
            sys.exit(f"{self.file}: section '{self.title}' is in {section['unit']}, and these figures are in {self.unit}")
        section["machine"] = self.machine or section.get("machine") or sys.exit("--record: a new section needs --machine")
        return section

    def write(self):
        if self.title is None or not self.rows:
            return
        all_ = self.read()
        section = self.section(all_)
        section["date"] = datetime.date.today().isoformat()
        section["command"] = [shlex.join([os.path.join("scripts", os.path.basename(sys.argv[0])), *unrecorded(sys.argv[1:])])]
        for row in self.rows:
            known = next((each for each in section["rows"] if each["job"] == row["job"]), None)
            if known is None:
                section["rows"].append(row)
            else:
                known.update(row)
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(measured_text(all_))
        os.replace(self.file + ".new", self.file)
        print(f"{self.file}: {len(self.rows)} figures are in '{self.title}'; now run scripts/performance-page.py")


def named(title, module, way=None):
    """"PyTorch 2.11, channels last": a program as the page names it."""
    return f"{title} {'.'.join(module.__version__.split('.')[:2])}" + (f", {WAYS.get(way, way)}" if way else "")


WAYS = {"graph": "CUDA graph", "nhwc": "channels last", "graph-nhwc": "channels last, CUDA graph", "compile": "compiled",
        "graph-compile": "compiled, CUDA graph", "nhwc-compile": "channels last, compiled"}


def number(value):
    """Three digits, without an exponent."""
    digits = max(0, 2 - int(f"{value:e}".partition("e")[2]))
    return f"{value:.{digits}f}"


def unrecorded(words):
    """A command's words without those for Record."""
    kept, names = [], ("--record", "--machine", "--measured")
    for word in words:
        if kept[-1:] == [None]:
            kept[-1:] = []
        elif word in names:
            kept.append(None)
        elif not word.startswith(tuple(f"{name}=" for name in names)):
            kept.append(word)
    return kept


def measured_text(all_):
    """The file's text: a line for every row."""
    sections = []
    for section in all_["sections"]:
        lines = [f"   {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in section.items() if key != "rows"]
        rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in section["rows"])
        sections.append("  {\n" + ",\n".join([*lines, '   "rows": [\n' + rows + "\n   ]"]) + "\n  }")
    return '{\n "sections": [\n' + ",\n".join(sections) + "\n ]\n}\n"


def texts(text):
    """`a,b` as a list, for type=."""
    found = text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"expected words with commas in between, found '{text}'")
    return found


def one_of(*known):
    """Words of a list, for type=."""
    def read(text):
        for word in texts(text):
            if word not in known:
                raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found '{word}'")
        return texts(text)

    return read


def count(text):
    """An integer >= 1, for type=."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found '{text}'")
    return int(text)


def counts(text):
    """`1,32` as a list of integers >= 1, for type=."""
    return [count(word) for word in text.split(",")]


def seconds(text):
    """A time above 0, for type=."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found '{text}'")
    return value


def need(module):
    """The module; ends with a line that names it if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        sys.exit(f"{missing}; this needs the Python package '{module}'")


class Failed(Exception):
    """A command that ended with an error: its message."""


def attempt(command, **options):
    """A completed command of `sdlf`, successful or not. Ends the script if the program is missing."""
    if not os.access(command[0], os.X_OK):
        sys.exit(f"{command[0]}: there is no such program; build it, or name it with --sdlf")
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def run(command, **options):
    """The output of a command. Raises Failed with its message."""
    done = attempt(command, **options)
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"exit status {done.returncode}: {' '.join(command)}")
    return done.stdout


def report(command, **options):
    """The JSON of a command; if the command fails, the script ends with its message."""
    try:
        return json.loads(run(command, **options))
    except Failed as failed:
        sys.exit(str(failed))
