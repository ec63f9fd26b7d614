#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py FOLDER: words in the drawings of docs/ stay inside of their picture, and beside each other.

Widths are those of DejaVu Sans, the widest of the fonts that viewers put in the place of Helvetica.
"""
import glob
import os
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
CLASSES = ((0.31, "il|jI.,:;' "), (0.38, "()[]tfr/!-"), (0.93, "mwMW"), (0.72, "ABCDGHKNOQRUVXYZ"))


def width(text, size, bold):
    """In DejaVu Sans, within some hundredths."""
    return sum(next((w for w, some in CLASSES if c in some), 0.62) for c in text) * size * (1.12 if bold else 1)


def texts(element, size, bold, anchor):
    """(text, left, right, baseline, size) of everything that is not turned."""
    if element.get("transform"):
        return
    size = float(str(element.get("font-size", size)).removesuffix("px"))
    bold = element.get("font-weight", "bold" if bold else "") in ("bold", "600", "700")
    anchor = element.get("text-anchor", anchor)
    if element.tag == SVG + "text" and element.get("x") and element.text:
        x, wide = float(element.get("x")), width("".join(element.itertext()), size, bold)
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        yield "".join(element.itertext()), left, left + wide, float(element.get("y")), size
    for child in element:
        yield from texts(child, size, bold, anchor)


def faults(path):
    root = xml.parse(path).getroot()
    right = float(root.get("viewBox").split()[2])
    found = list(texts(root, 16, False, "start"))
    for i, (text, start, end, y, size) in enumerate(found):
        if start < 0 or end > right:
            yield f"'{text}' reaches from {start:.0f} to {end:.0f} of 0 to {right:.0f}"
        for other, from_, to, line, _ in found[:i]:
            if text != other and abs(y - line) < size * 0.7 and start < to and from_ < end:
                yield f"'{text}' and '{other}' lie on each other"


def main():
    files = sorted(glob.glob(os.path.join(sys.argv[1], "docs", "**", "*.svg"), recursive=True))
    wrong = [f"{os.path.relpath(path, sys.argv[1])}: {fault}" for path in files for fault in faults(path)]
    print("\n".join(wrong or [f"{len(files)} pictures, whose words have room"]))
    return len(wrong) > 0 or len(files) == 0


sys.exit(main())
