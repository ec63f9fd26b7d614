#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Redraw the charts of docs/guides/convolution-*.md and rewrite their tables, from stored reports; nothing is measured.

    scripts/convolution-page.py [--sdlf build/sdlf] [--measured docs/measured] [--page FILE...] [--check]

docs/measured holds the output of `scripts/measure-convolutions.py`: NAME.json is a report of `sdlf bench conv`, NAME.txt the
output of `scripts/compare-convolutions.py --each`. In a page a table is between two comments:

    <!-- table: KIND NAME key=value,... -->          a + in a value is a space
    ...
    <!-- end -->

The kinds are the functions below, whose names begin with `table_`. A chart is an image of a page, pictures/convolution-NAME.svg, that has a
report. Tables and charts without a report are left unchanged. --check writes nothing, and ends with status 1 if a page or a chart differs
from the reports.
"""
import glob
import json
import os
import re
import sys
import tempfile

import comparing

ANCHORS = {"cpu": {"implicit-gemm": "implicit-gemm-channels-last", "winograd-2x2": "winograd", "winograd-4x4": "winograd"},
           "cuda": {"naive": "naive-on-a-gpu", "direct": "direct-on-a-gpu", "im2col": "im2col-on-a-gpu",
                    "winograd-2x2": "winograd-on-a-gpu", "winograd-2x2-steps": "winograd-on-a-gpu",
                    "winograd-4x4": "winograd-on-a-gpu"}}


def three(value):
    """Three digits, as the program prints them."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"


def sizes(shape):
    """`64x112x112, 128 of 3x3, stride 2`: a shape as readers need it."""
    (_, channels, height, width), (filters, _, rows, columns) = shape["x"], shape["filters"]
    text = f"{channels}x{height}x{width}, "
    text += "depthwise " if shape["groups"] == channels > 1 else f"{filters} of "
    text += f"{rows}x{columns}"
    return text + (f", stride {shape['stride'][0]}" if shape["stride"][0] > 1 else "")


def cost(shape):
    """FLOPs, and bytes of x, w and y once."""
    (n, c, h, w), (k, per, r, s) = shape["x"], shape["filters"]
    p, q = ((size + 2 * shape["padding"][i] - shape["dilation"][i] * (window - 1) - 1) // shape["stride"][i] + 1
            for i, (size, window) in enumerate(((h, r), (w, s))))
    return 2 * n * k * p * q * per * r * s, 4 * (n * c * h * w + k * per * r * s + n * k * p * q)


class Report:
    """A report of `sdlf bench conv`, with the accessors that tables need."""

    def __init__(self, report, places=None):
        self.places = places or {}
        self.calculator, self.limits = report["calculator"], report["limits"]
        self.convolutions = report["convolutions"]
        self.rungs = [rung["name"] for rung in report["rungs"]]

    def chosen(self, names):
        """The convolutions with these names, in this order; without names, all."""
        by_name = {convolution["name"]: convolution for convolution in self.convolutions}
        return [by_name[name] for name in names] if names else self.convolutions

    def result(self, convolution, rung):
        """The rung's result, None if it did not run."""
        for result in convolution["rungs"]:
            if result["rung"] == rung and result["ran"]:
                return result
        return None

    def floor(self, convolution):
        flops, moved = cost(convolution["shape"])
        return max(flops / self.limits["flops_per_second"], moved / self.limits["bytes_per_second"])

    def link(self, rung):
        """The rung's name, linked to its section."""
        anchor = ANCHORS.get(self.calculator, {}).get(rung, rung)
        return "`auto`" if rung == "auto" else f"[`{rung}`]({self.places.get(anchor, '')}#{anchor})"


def markdown(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows])


def table_ladder(report, options):
    """A row for each rung, a column for each convolution: microseconds, and in brackets GFLOP/s. The last row is the floor."""
    of = report.chosen(options.get("of"))
    rows = []
    for rung in options.get("rungs", report.rungs):
        cells = []
        for convolution in of:
            result = report.result(convolution, rung)
            flops = cost(convolution["shape"])[0]
            cells.append(f"{three(1e6 * result['seconds'])} ({three(1e-9 * flops / result['seconds'])})" if result else "")
        rows.append([report.link(rung)] + cells)
    rows.append(["floor"] + [three(1e6 * report.floor(convolution)) for convolution in of])
    return markdown(["us (GFLOP/s)"] + [f"{c['name']}: {sizes(c['shape'])}" for c in of], rows)


def table_layers(report, options):
    """A row for each convolution, a column for each rung: milliseconds or microseconds; the floor, and the last rung's share of it."""
    unit, rungs = options.get("unit", ["ms"])[0], options["rungs"]
    scale = {"ms": 1e3, "us": 1e6}[unit]
    rows = []
    for convolution in report.chosen(options.get("of")):
        times = [report.result(convolution, rung) for rung in rungs]
        floor = report.floor(convolution)
        rows.append([f"{convolution['name']}: {sizes(convolution['shape'])}"] +
                    [three(scale * result["seconds"]) if result else "-" for result in times] +
                    [three(scale * floor), f"{floor / times[-1]['seconds']:.0%}" if times[-1] else ""])
    return markdown([unit] + [report.link(rung) for rung in rungs] + ["floor", f"`{rungs[-1]}` of floor"], rows)


def table_work(report, options):
    """A row for each rung on one convolution: everything that it computes and moves, its time, its error."""
    convolution, rows = report.chosen(options["of"])[0], []
    for rung in options.get("rungs", report.rungs):
        result = report.result(convolution, rung)
        if result:
            error = result.get("error")
            rows.append([report.link(rung), three(1e-9 * result["work_flops"]), three(1e-6 * result["work_bytes"]), three(1e3 * result["seconds"]),
                         f"{error:.0e}" if error is not None else ""])
    return markdown([convolution["name"], "GFLOP", "MB", "ms", "error"], rows)


def table_totals(report, options):
    """A row for each rung: all that it ran, each convolution as often as the network has it."""
    rows = []
    for rung in options.get("rungs", report.rungs):
        ran, layers, seconds, floor, flops, errors = 0, 0, 0, 0, 0, []
        for convolution in report.convolutions:
            count, result = convolution["layers"], report.result(convolution, rung)
            layers += count
            if result:
                ran, seconds = ran + count, seconds + count * result["seconds"]
                floor, flops = floor + count * report.floor(convolution), flops + count * cost(convolution["shape"])[0]
                errors.append(result.get("error"))
        if ran:
            error = f"{max(errors):.0e}" if None not in errors else ""
            rows.append([report.link(rung), f"{ran} of {layers}", three(1e3 * seconds), three(1e-9 * flops / seconds), f"{floor / seconds:.0%}", error])
    return markdown(["rung", "layers", "ms", "GFLOP/s", "of floor", "largest error"], rows)


def table_sums(report, options):
    """A row for each rung, a column for each row of the program's summary (in the study, an image side: the sum of three strides)."""
    unit = options.get("unit", ["ms"])[0]
    names = list(dict.fromkeys(convolution["row"] for convolution in report.convolutions))
    rows = []
    for rung in options.get("rungs", report.rungs):
        cells = []
        for name in names:
            times = [report.result(convolution, rung) for convolution in report.convolutions if convolution["row"] == name]
            cells.append(three({"ms": 1e3, "us": 1e6}[unit] * sum(result["seconds"] for result in times)) if all(times) else "-")
        rows.append([report.link(rung)] + cells)
    return markdown([unit] + names, rows)


def table_comparison(text, _):
    """The table that compare-convolutions.py prints, with all workloads below each other."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return "\n".join(dict.fromkeys(lines))


def table_behind(text, options):
    """A row for each convolution where `auto` is slower than a rival: columns for batch and mode, `auto` and the rival in microseconds."""
    rival, columns, rows = options["rival"][0], [], {}
    for workload, name, batch, math, own, rest in re.findall(r"^(\w+) (.+), batch (\d+), (\w+): auto ([\d.]+) us, (.*)$", text, re.M):
        found = re.search(rf"{rival} ([\d.]+)", rest)
        if not found:
            continue
        column = f"batch {batch}, {math}"
        columns += [column] if column not in columns else []
        rows.setdefault(name if workload == "networks" else f"{workload} {name}", {})[column] = f"{own} / {found[1]}"
    return markdown([f"us: `auto` / {rival}"] + columns, [[name] + [cells.get(column, "") for column in columns] for name, cells in rows.items()])


BLOCK = re.compile(r"(<!-- table: (\w+) ([\w-]+)([^>]*?) -->\n).*?(<!-- end -->)", re.S)


def sections(pages, page):
    """The page that has each section, by its anchor; sections of `page` itself are left out."""
    found = {}
    for other in pages:
        for title in re.findall(r"^## (.*)$", contents(other), re.M):
            if other != page:
                found[re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")] = os.path.basename(other)
    return found


def write_tables(page, measured, places):
    """The page with every table that has a report; the names of those without."""
    missing = []

    def made(block):
        opening, kind, name, words, closing = block.groups()
        make = globals().get(f"table_{kind}")
        if not make:
            sys.exit(f"{opening.strip()}: there is no such kind of table")
        path = os.path.join(measured, name + (".txt" if kind in ("comparison", "behind") else ".json"))
        if not os.path.exists(path):
            missing.append(path)
            return block[0]
        options = {key: value.replace("+", " ").split(",") for key, value in (word.split("=", 1) for word in words.split())}
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return opening + "\n" + make(Report(json.loads(text), places) if path.endswith(".json") else text, options) + "\n\n" + closing

    return BLOCK.sub(made, page), missing


def alike(one, other):
    """True if two charts are the same except for the version, and the last digit of coordinates, which another compiler may round differently."""
    number = re.compile(r"-?\d+\.\d+")
    one, other = (re.sub(r"sdlf [\d.]+ bench", "sdlf bench", text) for text in (one, other))
    return number.sub("", one) == number.sub("", other) and all(
        abs(float(a) - float(b)) < 0.15 for a, b in zip(number.findall(one), number.findall(other)))


def draw(sdlf, report, picture):
    comparing.run([sdlf, "bench", "conv", "--from", report, "--svg", picture, "--json", os.devnull])


def contents(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def update(path, arguments):
    """Processes one page and its charts: returns the missing reports, and the files that were stale."""
    page, stale = contents(path), []
    if not page:
        sys.exit(f"{path}: there is no such page")
    written, missing = write_tables(page, arguments.measured, sections(arguments.page, path))
    if written != page:
        stale.append(path)
    with tempfile.TemporaryDirectory() as folder:
        for pictures, name in sorted(set(re.findall(r"\(((?:\.\./)?pictures)/convolution-([\w-]+)\.svg\)", page))):
            report = os.path.join(arguments.measured, name + ".json")
            if not os.path.exists(report):
                continue
            new, old = os.path.join(folder, name + ".svg"), os.path.normpath(os.path.join(os.path.dirname(path), pictures, f"convolution-{name}.svg"))
            try:
                draw(arguments.sdlf, report, new)
            except comparing.Failed as failed:
                sys.exit(str(failed))
            if alike(contents(new), contents(old)):
                continue
            stale.append(old)
            if not arguments.check:
                with open(old, "w", encoding="utf-8") as file:
                    file.write(contents(new))
    if stale and not arguments.check:
        with open(path, "w", encoding="utf-8") as file:
            file.write(written)
    return missing, stale


def main():
    parser = comparing.parser(__doc__)
    parser.add_argument("--measured", metavar="FOLDER", default="docs/measured", help="where the reports are")
    parser.add_argument("--page", metavar="FILE", nargs="+", default=sorted(glob.glob("docs/guides/convolution-*.md")), help="the pages")
    parser.add_argument("--check", action="store_true", help="write nothing: is all of it up to date?")
    arguments = parser.parse_args()
    missing, stale = [], []
    if not arguments.page:
        sys.exit("docs/guides has no page of convolutions")
    for page in arguments.page:
        without, old = update(page, arguments)
        missing += without
        stale += old
    for path in missing:
        print(f"{path} is not there: its tables stay as they are")
    for path in stale:
        print(f"{path}: {'is not what the reports say' if arguments.check else 'written'}")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
