#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""browser.py SDLF [FOLDER]: the page of `sdlf train --serve` in a browser: curves that grow, and the buttons Save and Stop.

FOLDER: where screenshots go. Without a Chromium, or in a build that serves no pages, it is skipped (77).
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from chromium import Browser, Program  # noqa: E402

SAID = "document.getElementById('said').textContent"
NOW = "(document.getElementById('now') || {textContent: ''}).textContent"
CURVE = "(f => f ? f.querySelectorAll('svg path, svg polyline').length + f.querySelector('svg').outerHTML.length : 0)(document.querySelector('#live figure'))"


def shows_curves_that_grow(browser, folder):
    browser.wait(f"{NOW}.startsWith('Epoch ')")
    first, length = browser.value(NOW), browser.wait(CURVE)
    browser.wait(f"{NOW} !== {first!r} && {CURVE} !== {length}")  # it asks again by itself
    figures = browser.value("[...document.querySelectorAll('#live figcaption')].map(f => f.textContent)")
    assert {"Loss", "Accuracy", "Learning rate", "Speed"} <= set(figures), figures
    browser.wait("document.body.innerText.includes('sdlf train --data digits:2000')")  # the command that repeats it
    browser.screenshot(os.path.join(folder, "curves.png"))


def main(sdlf, folder):
    weights = os.path.join(folder, "lenet5.safetensors")
    words = [sdlf, "train", "--net", "lenet5", "--data", "digits:2000", "--epochs", "100000", "--serve"]
    with Browser() as browser:
        with Program(*words, "--out", weights) as training:
            browser.open(training.address)
            shows_curves_that_grow(browser, folder)
            before = os.stat(weights).st_mtime_ns if os.path.exists(weights) else 0
            browser.click("#save")
            browser.wait("document.body.innerText.includes('Saved after step ')")
            browser.wait(f"{SAID} === ''")  # and no longer that it will be
            assert os.stat(weights).st_mtime_ns > before
            browser.click("#stop")
            assert training.end() == 130
            browser.wait(f"{SAID} === 'The program has ended. What it showed last stays here.'")
            assert browser.value("[...document.querySelectorAll('button')].every(b => b.disabled)") and browser.value(CURVE)
        subprocess.run([sdlf, "eval", "--weights", weights, "--data", "digits:500"], check=True, stdout=subprocess.DEVNULL)
        browser.complaints.clear()  # that the program is gone
        with Program(*words, "--no-save") as training:
            browser.open(training.address)
            browser.wait("document.body.innerText.includes('Nothing is kept, as --no-save asks.')")
            assert browser.value("document.getElementById('save').disabled && !document.getElementById('stop').disabled")
            assert not browser.complaints, browser.complaints
    print("Curves grow while it trains; the run is saved and stopped from the page.")


if len(sys.argv) > 2:
    main(sys.argv[1], sys.argv[2])
else:
    with tempfile.TemporaryDirectory() as made:
        main(sys.argv[1], made)
