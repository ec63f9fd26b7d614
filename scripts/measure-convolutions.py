#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure everything that docs/guides/convolution-algorithms.md shows, on this machine, in one go.

    scripts/measure-convolutions.py [--sdlf build/sdlf] [--out build/convolution] [--only PART,...] [--limit 540] [--again] [--page]

Each part is one run of `sdlf bench conv` (or of compare-convolutions.py) and writes one file to the folder OUT. A part whose file exists is not run
again, so that the same command resumes a run that was cut, or that had no time for all parts; --again repeats the parts. Everything takes at most
--limit seconds: a part gets its own time, or what is left of the total, is stopped after that, and writes no file. Parts that this machine cannot
run (without a GPU, without PyTorch) are reported.

--page then copies all files of OUT to docs/measured, and has scripts/convolution-page.py write tables and charts from them.
The exit status is 1 if a part failed, 3 if none failed and one was cut.
"""
import json
import os
import shutil
import subprocess
import sys
import time

import comparing

HERE = os.path.dirname(os.path.abspath(__file__))

# Name, seconds at most, words. On a GPU a sample is short and runs vary little.
CUDA = ["--calculator", "cuda", "--seconds", "0.02", "--repeats", "9"]
PARTS = {
    "example-cpu": (20, ["--shape", "1x64x112x112", "--kernel", "128x3x3", "--padding", "1"]),
    "simple_cnn-cpu": (30, ["--workload", "simple_cnn"]),
    "vgg16-cpu": (150, ["--workload", "vgg16"]),
    "mobilenetv2-cpu": (90, ["--workload", "mobilenetv2", "--seconds", "0.25"]),
    "study-cpu": (120, ["--workload", "study", "--seconds", "0.3"]),
    "simple_cnn-cuda": (30, ["--workload", "simple_cnn", *CUDA]),
    "vgg16-cuda": (60, ["--workload", "vgg16", *CUDA]),
    "vgg16-cuda-tf32": (60, ["--workload", "vgg16", "--math", "tf32", *CUDA]),
    "mobilenetv2-cuda": (60, ["--workload", "mobilenetv2", *CUDA]),
    "mobilenetv2-cuda-32": (90, ["--workload", "mobilenetv2", "--batch", "32", "--no-check", *CUDA]),
    "mobilenetv2-cuda-tf32-32": (90, ["--workload", "mobilenetv2", "--math", "tf32", "--batch", "32", "--no-check", *CUDA]),
    "study-cuda": (60, ["--workload", "study", *CUDA]),
    "comparison-cuda": (240, ["--no-check", "--seconds", "0.006", "--each", "--torch"]),
}


def compares(part):
    return part.startswith("comparison")


def command(part, sdlf, path):
    words = PARTS[part][1]
    if compares(part):
        return [sys.executable, os.path.join(HERE, "compare-convolutions.py"), "--sdlf", sdlf, *words]
    return [sdlf, "bench", "conv", *words, "--json", path]


def run(part, sdlf, path, seconds):
    """The outcome of a part: `ok`, or the reason it failed; `cut` if it was stopped. Its file appears complete or not at all."""
    unfinished = path + ".part"
    try:
        done = subprocess.run(command(part, sdlf, unfinished), capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "cut"
    if done.returncode != 0:
        return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    if compares(part):
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    os.replace(unfinished, path)
    return "ok"


def calculators(sdlf):
    """The calculators that can be opened here."""
    listed = comparing.report([sdlf, "info", "--json"])
    return {calculator["name"] for calculator in listed["calculators"] if calculator["usable"]}


def store(path, folder):
    """Copies a file of OUT to those of the page: a report with a line for each convolution, so that diffs are readable."""
    name = os.path.join(folder, os.path.basename(path))
    if not path.endswith(".json"):
        shutil.copy(path, name)
        return
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    convolutions = ",\n".join(json.dumps(convolution) for convolution in report.pop("convolutions"))
    with open(name, "w", encoding="utf-8") as file:
        file.write(json.dumps(report)[:-1] + ', "convolutions": [\n' + convolutions + "\n]}\n")


def known(text):
    return comparing.one_of(*PARTS)(text)


def read_arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--out", metavar="FOLDER", default="build/convolution", help="where the files go")
    parser.add_argument("--only", type=known, metavar="PART,...", default=",".join(PARTS), help="these parts")
    parser.add_argument("--limit", type=comparing.seconds, metavar="S", default=540, help="seconds, of all parts together")
    parser.add_argument("--again", action="store_true", help="run parts whose file is there, too")
    parser.add_argument("--page", action="store_true", help="bring the page up to date with what there is then")
    return parser.parse_args()


def measure(arguments):
    """The numbers of failed and of cut parts."""
    begun, failed, cut, here = time.monotonic(), 0, 0, calculators(arguments.sdlf)
    os.makedirs(arguments.out, exist_ok=True)
    for part in arguments.only:
        path = os.path.join(arguments.out, part + (".txt" if compares(part) else ".json"))
        left, most = arguments.limit - (time.monotonic() - begun), PARTS[part][0]
        calculator = "cuda" if "cuda" in part else "cpu"
        start = time.monotonic()
        if os.path.exists(path) and not arguments.again:
            outcome = "is there"
        elif calculator not in here:
            outcome = f"not here: there is no {calculator} calculator"
        elif left < 1:
            outcome = "cut"
        else:
            outcome = run(part, arguments.sdlf, path, min(left, most))
            failed += outcome not in ("ok", "cut")
        cut += outcome == "cut"
        print(f"{part:26} {time.monotonic() - start:6.1f} s  {outcome}", flush=True)
    return failed, cut


def main():
    arguments = read_arguments()
    failed, cut = measure(arguments)
    if arguments.page:
        measured = os.path.join(HERE, os.pardir, "docs", "measured")
        os.makedirs(measured, exist_ok=True)
        for name in sorted(os.listdir(arguments.out)):
            if name.endswith((".json", ".txt")):
                store(os.path.join(arguments.out, name), measured)
        root = os.path.normpath(os.path.join(HERE, os.pardir))
        done = subprocess.run([sys.executable, os.path.join(HERE, "convolution-page.py"), "--sdlf", os.path.abspath(arguments.sdlf)], cwd=root,
                              check=False)
        failed += done.returncode != 0
    if cut:
        print("The same command goes on with what was cut.")
    return 1 if failed else 3 if cut else 0


if __name__ == "__main__":
    sys.exit(main())
