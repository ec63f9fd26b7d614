#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""browser.py SDLF PICTURE [FOLDER]: the page of `sdlf serve` in a browser, with a pen, a picture of a two, and nonsense.

FOLDER: where screenshots go. Without a Chromium, or in a build that serves no pages, it is skipped (77).
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from chromium import Browser, Program  # noqa: E402

SAID = "document.getElementById('said').textContent"
ROWS = "[...document.querySelectorAll('#classes tr')].map(r => [r.cells[0].textContent, parseFloat(r.cells[1].textContent)])"


def draw(browser, strokes, release=True):
    """Lines in the drawing area, whose corners are (0,0) and (1,1)."""
    x, y, width, height = browser.value("(b => [b.x, b.y, b.width, b.height])(document.getElementById('canvas').getBoundingClientRect())")
    for stroke in strokes:
        points = [(x + width * a, y + height * b) for a, b in stroke]
        browser.mouse("Moved", *points[0])
        browser.mouse("Pressed", *points[0])
        for (a, b), (c, d) in zip(points, points[1:]):
            for k in range(1, 6):
                browser.mouse("Moved", a + (c - a) * k / 5, b + (d - b) * k / 5)
        if release:
            browser.mouse("Released", *points[-1])


def shows_what_is_drawn(browser, folder):
    assert browser.value(SAID) == "Nothing drawn yet."
    draw(browser, [[(0.5, 0.2), (0.5, 0.8)]], release=False)
    browser.wait(f"{ROWS}.length === 10")  # while the pen is down
    browser.mouse("Released", 200, 200)
    browser.wait(f"{SAID}.startsWith('Most likely 1,')")
    rows = browser.value(ROWS)
    assert rows[0][0] == "1" and abs(sum(r[1] for r in rows) - 100) < 1, rows
    assert [r[1] for r in rows] == sorted((r[1] for r in rows), reverse=True)
    widths = browser.value("[...document.querySelectorAll('.bar')].map(b => b.getBoundingClientRect().width)")
    assert len(widths) == 10 and widths[0] == max(widths)
    assert browser.wait("[...document.querySelectorAll('#layers img')].filter(i => i.complete && i.naturalWidth > 0 && i.alt).length") >= 3
    browser.screenshot(os.path.join(folder, "drawn.png"))
    browser.click("#clear")
    browser.wait(f"{SAID} === 'Nothing drawn yet.' && {ROWS}.length === 0")
    draw(browser, [[(0.25, 0.2), (0.75, 0.2), (0.45, 0.85)]])
    browser.wait(f"{SAID}.startsWith('Most likely 7,')")


def takes_pictures(browser, picture, folder):
    browser.click("#clear")
    browser.drop("#canvas", picture)
    browser.wait(f"{SAID}.startsWith('Most likely 2,')")
    browser.wait("canvas.getContext('2d').getImageData(0, 0, 280, 280).data.some((v, i) => i % 4 < 3 && v > 0)")  # where a drawing would be
    browser.screenshot(os.path.join(folder, "dropped.png"))
    browser.click("#clear")
    browser.choose("#file", picture)
    browser.wait(f"{SAID}.startsWith('Most likely 2,')")
    browser.drop("#canvas", os.path.abspath(__file__))
    browser.wait(f"{SAID}.startsWith('the picture')")  # says what is wrong with it


def keyboard_reaches_everything(browser):
    seen = set()
    for _ in range(4):  # around the page, from wherever the focus was
        for kind in ("keyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        seen.add(browser.value("document.activeElement.id"))
    assert {"clear", "file"} <= seen, seen


def only_its_own_page_is_answered(browser, address):
    root, token = address.rstrip("/").rsplit("/", 1)
    for path in ("/", "/" + token[:-1] + ("0" if token[-1] != "0" else "1") + "/", "/page.js"):
        try:
            urllib.request.urlopen(root + path)
            raise AssertionError(f"{path} is answered without the token")
        except urllib.error.HTTPError as problem:
            assert problem.code == 404, path
    browser.open("data:text/html,<p>another site</p>")
    sent = f"fetch({json.dumps(address + 'classify')}, {{method: 'POST', body: 'x'}}).then(() => 'answered', () => 'refused')"
    assert browser.value(sent) == "refused"


def main(sdlf, picture, folder):
    weights = os.path.join(folder, "lenet5.safetensors")
    with Browser() as browser:
        subprocess.run([sdlf, "train", "--net", "lenet5", "--data", "digits:4000", "--epochs", "3", "--quiet", "--out", weights], check=True)
        with Program(sdlf, "serve", "--weights", weights) as served:
            browser.open(served.address)
            shows_what_is_drawn(browser, folder)
            takes_pictures(browser, picture, folder)
            keyboard_reaches_everything(browser)
            assert not [c for c in browser.complaints if "400 (Bad Request)" not in c], browser.complaints
            browser.open(served.address)
            served.interrupt()
            assert served.end() == 130
            draw(browser, [[(0.2, 0.2), (0.8, 0.8)]])
            browser.wait(f"{SAID} === 'The program does not answer: has it ended?'")
        with Program(sdlf, "serve", "--weights", weights) as served:
            only_its_own_page_is_answered(browser, served.address)
    print("A digit is drawn, a picture dropped and chosen; others are refused.")


if len(sys.argv) > 3:
    main(sys.argv[1], sys.argv[2], sys.argv[3])
else:
    with tempfile.TemporaryDirectory() as made:
        main(sys.argv[1], sys.argv[2], made)
