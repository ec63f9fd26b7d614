#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does scripts/compare-convolutions.py add up what was run, leave out what was not, and say so?

    test_compare_convolutions.py SCRIPT SDLF

A stand-in for sdlf gives reports in which a rung refuses a layer; sdlf itself is run on the CPU.
"""
import json
import os
import sys
import tempfile

import checking
from checking import check

script, sdlf = sys.argv[1:3]


def run(*words):
    return checking.run(script, *words)


def convolution(name, row, layers, own, rival):
    def rung(name, seconds):
        return {"rung": name, "ran": True, "seconds": seconds} if seconds else {"rung": name, "ran": False, "why": "takes 3x3 alone"}

    return {"name": name, "row": row, "layers": layers, "rungs": [rung("auto", own), rung("reference", rival)]}


def stand_in(folder, convolutions, interrupted=False, code=0):
    """A program that prints this report."""
    path = os.path.join(folder, "sdlf")
    with open(path, "w", encoding="utf-8") as file:
        report = json.dumps({"workload": "vgg16", "interrupted": interrupted, "convolutions": convolutions})
        file.write(f"#!/bin/sh\ncat << 'END'\n{report}\nEND\nexit {code}\n")
    os.chmod(path, 0o755)
    return ["--sdlf", path, "--workload", "vgg16", "--batch", "1", "--math", "fp32", "--calculator", "cpu", "--against", "reference"]


def rows_add_up(folder):
    whole = [convolution("a", "a", 2, 1e-3, 2e-3), convolution("b", "b", 1, 2e-3, 1e-3)]
    code, said, _ = run(*stand_in(folder, whole), "--each")
    check("a row is the sum over its layers", code == 0 and "| vgg16 | 1 | 4.00 | 5.00 | 1.25 |" in said, said)
    check("who is faster is counted", "auto is the fastest in 1 of 2 convolutions" in said, said)
    check("and told", "vgg16 b, batch 1, fp32: auto 2000.0 us, reference 1000.0" in said, said)
    check("nothing is left out", "did not run" not in said, said)


def what_was_not_run_is_in_no_sum(folder):
    lacking = [convolution("a", "a", 2, 1e-3, 2e-3), convolution("b", "b", 1, 2e-3, None)]
    code, said, _ = run(*stand_in(folder, lacking))
    check("a rival that did not run all has no sum", code == 0 and "| vgg16 | 1 | 4.00 | - | - |" in said, said)
    check("what it did not run is told", "vgg16 b, batch 1, fp32: reference did not run: takes 3x3 alone" in said, said)
    check("and not counted", "auto is the fastest in 1 of 1 convolutions" in said, said)
    lacking = [convolution("a", "a", 1, None, 2e-3), convolution("b", "b", 1, 2e-3, 3e-3)]
    code, said, _ = run(*stand_in(folder, lacking))
    check("nor has auto", code == 0 and "| vgg16 | 1 | - | 5.00 | - |" in said, said)


def failures_show(folder):
    whole = [convolution("a", "a", 2, 1e-3, 2e-3)]
    check("a wrong result", run(*stand_in(folder, whole, code=1))[0] == 1)
    check("a run that was stopped", run(*stand_in(folder, whole, interrupted=True))[0] == 1)
    code, _, said = run("--sdlf", os.path.join(folder, "none"))
    check("a program that is not there", code == 1 and "there is no such program" in said, said)
    code, _, said = run("--batch", "1,x")
    check("a batch that is none", code == 2 and "expected a whole number from 1 on, found 'x'" in said, said)
    code, _, said = run("--math", "fp8")
    check("an unknown mode", code == 2 and "expected some of fp32,tf32,fp16,bf16, found 'fp8'" in said, said)
    code, _, said = run("--torch", "--math", "bf16")
    check("PyTorch in a mode that it is not run in", code == 2 and "--torch runs float32 tensors" in said, said)


def sdlf_is_understood():
    code, said, errors = run("--sdlf", sdlf, "--workload", "study", "--side", "15", "--batch", "1,2", "--math", "fp32", "--calculator", "cpu",
                             "--against", "reference", "--seconds", "0.001")
    rows = [line.split("|")[1:-1] for line in said.splitlines() if line.startswith("| side 15")]
    check("sdlf's report is read", code == 0 and len(rows) == 2, said + errors)
    check("and has all times", all(float(cell) > 0 for row in rows for cell in row[1:]), rows)
    code, _, errors = run("--sdlf", sdlf, "--workload", "study", "--calculator", "abacus", "--batch", "1", "--math", "fp32")
    check("its message is passed on", code == 1 and "abacus" in errors, errors)


with tempfile.TemporaryDirectory() as work:
    script, sdlf = os.path.abspath(script), os.path.abspath(sdlf)
    rows_add_up(work)
    what_was_not_run_is_in_no_sum(work)
    failures_show(work)
    sdlf_is_understood()
checking.conclude()
