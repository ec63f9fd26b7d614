#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do scripts/measure-convolutions.py and scripts/convolution-page.py measure, go on, stop in time, and write what was measured?

    test_measure_convolutions.py SCRIPTS SDLF
"""
import json
import os
import subprocess
import sys
import tempfile

SCRIPTS, SDLF = sys.argv[1:]
PAGE = """# A page

![chart](pictures/convolution-simple_cnn-cpu.svg)

<!-- table: layers simple_cnn-cpu rungs=naive,auto unit=us -->
stale
<!-- end -->
<!-- table: totals missing -->
stays
<!-- end -->
<!-- table: behind comparison-cuda rival=PyTorch -->
<!-- end -->
<!-- table: comparison comparison-cuda -->
<!-- end -->
"""
COMPARISON = """| ms | batch | fp32: auto |
|---|---|---|
| vgg16 | 1 | 0.55 |

auto is the fastest in 1 of 3 convolutions that all ran
networks block1 depthwise, batch 1, fp32: auto 4.8 us, PyTorch 2.6
networks block1 depthwise, batch 32, tf32: auto 72.4 us, cudnn 80.0, PyTorch 36.1
networks conv2_2, batch 32, tf32: auto 313.7 us, cudnn 311.5
| ms | batch | fp32: auto |
|---|---|---|
| side 31 | 1 | 0.01 |
"""


def run(script, *words):
    return subprocess.run([sys.executable, os.path.join(SCRIPTS, script), "--sdlf", SDLF, *words], capture_output=True, text=True, check=False)


def expect(condition, done):
    if not condition:
        sys.exit(f"{' '.join(done.args)}\nstatus {done.returncode}\n{done.stdout}{done.stderr}")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def keys(value):
    """Every key in a JSON value."""
    found = set(value) if isinstance(value, dict) else set()
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        found |= keys(part)
    return found


def told(report, done):
    """Does the page tell what each key of a report is?"""
    text = read(os.path.join(SCRIPTS, os.pardir, "docs", "guides", "convolution.md"))
    missing = [key for key in sorted(keys(report)) if f"`{key}`" not in text]
    if missing:
        sys.exit(f"docs/guides/convolution.md says nothing of {', '.join(missing)}")
    expect(len(keys(report)) > 30, done)


def measuring(out):
    words = ("--out", out, "--only", "simple_cnn-cpu")
    done = run("measure-convolutions.py", *words, "--limit", "0.001")
    expect(done.returncode == 3 and "cut" in done.stdout and os.listdir(out) == [], done)
    done = run("measure-convolutions.py", *words)
    expect(done.returncode == 0 and "ok" in done.stdout, done)
    report = json.loads(read(os.path.join(out, "simple_cnn-cpu.json")))
    expect(report["workload"] == "simple_cnn" and len(report["rungs"]) > 3, done)
    told(report, done)
    done = run("measure-convolutions.py", *words)
    expect(done.returncode == 0 and "is there" in done.stdout, done)
    done = run("measure-convolutions.py", "--only", "simple_cnn-abacus")
    expect(done.returncode == 2 and "expected some of" in done.stderr, done)


def page(folder, out):
    os.mkdir(os.path.join(folder, "pictures"))
    path, chart = os.path.join(folder, "page.md"), os.path.join(folder, "pictures", "convolution-simple_cnn-cpu.svg")
    write(path, PAGE)
    write(os.path.join(out, "comparison-cuda.txt"), COMPARISON)
    words = ("--measured", out, "--page", path)
    done = run("convolution-page.py", *words, "--check")
    expect(done.returncode == 1 and "is not what the reports say" in done.stdout and read(path) == PAGE, done)
    done = run("convolution-page.py", *words)
    text = read(path)
    expect(done.returncode == 0 and "missing.json is not there" in done.stdout and "stale" not in text and "stays" in text, done)
    expect("| us | [`naive`](#naive) | `auto` | floor | `auto` of floor |" in text, done)
    expect("| conv: 1x28x28, 32 of 5x5 | " in text, done)
    expect("| block1 depthwise | 4.8 / 2.6 | 72.4 / 36.1 |" in text and "conv2_2" not in text, done)
    expect("| vgg16 | 1 | 0.55 |\n| side 31 | 1 | 0.01 |" in text, done)
    expect(read(chart).startswith("<?xml") and "simple_cnn on cpu" in read(chart), done)
    done = run("convolution-page.py", *words, "--check")
    expect(done.returncode == 0, done)
    write(os.path.join(out, "simple_cnn-cpu.json"), "{}")
    done = run("convolution-page.py", *words)
    expect(done.returncode == 1, done)


def main():
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "measured")
        measuring(out)
        page(folder, out)


if __name__ == "__main__":
    main()
