#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Does scripts/compare-pytorch-training.py take turns, add up, notice what was not the same training, and say what is missing?

    test_compare_pytorch_training.py SCRIPT SDLF

The script's parts are called with pretended programs. With NumPy, sdlf's first weights are read and its order is made; with PyTorch too (and JAX,
where it is installed), all train on the CPU, and must end with the same loss.
"""
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import tempfile
import types
from contextlib import redirect_stderr

import checking
from checking import check

script, sdlf = (os.path.abspath(word) for word in sys.argv[1:3])
sys.path.insert(0, os.path.dirname(script))
loader = importlib.machinery.SourceFileLoader("compared_training", script)
training = importlib.util.module_from_spec(importlib.util.spec_from_loader("compared_training", loader))
loader.exec_module(training)
import training_data  # noqa: E402 beside the script


def wrong_words_are_told():
    for words, text in ((["--batch", "16,x"], "expected a whole number from 1 on, found 'x'"),
                        (["--math", "fp64"], "expected some of fp32,tf32,bf16, found 'fp64'"),
                        (["--epochs", "1"], "there must be 2 or more"),
                        (["--device", "cpu", "--math", "tf32"], "the CPU computes fp32 alone"),
                        (["--case", "tf32"], "expected a whole number from 1 on, found ''"),
                        (["--case", "fp64:16"], "expected some of fp32,tf32,bf16, found 'fp64'"),
                        (["--device", "cpu", "--case", "bf16:16"], "the CPU computes fp32 alone"),
                        (["--device", "cpu", "--way", "graph"], "no CUDA graphs on the CPU")):
        code, _, said = checking.run(script, *words)
        check(f"{' '.join(words)} is refused", code == 2 and text in said, said)
    code, said, _ = checking.run(script, "--help")
    check("--help says what is compared", code == 0 and "sdlf_shuffle_order" in said, said)


def programs_take_turns():
    turns = []
    seconds = {"sdlf": [9, 0.2, 0.4], "eager": [9, 0.6, 0.6], "graph": [9, 0.3, 0.3]}

    def pretended_sdlf(options, folder, batch, mode):
        turns.append("sdlf")
        return seconds["sdlf"], 1.0

    def pretended_other(modules, options, way, mode, *rest):
        turns.append(way)
        if way == "compile":
            raise RuntimeError("no compiler\nat all")
        return seconds[way], 1.0 if way == "graph" else 1.5

    training.sdlf_turn, training.other_turn = pretended_sdlf, pretended_other
    options = types.SimpleNamespace(rounds=2, way=["eager", "compile", "graph"])
    said = io.StringIO()
    with redirect_stderr(said):
        times, losses = training.compared(None, options, "", None, None, None, 64, "fp32")
    check("in turns, without what did not run", turns == ["sdlf", "eager", "compile", "graph", "sdlf", "eager", "graph"], turns)
    check("which is told", "batch 64 fp32: compile did not run: no compiler" in said.getvalue(), said.getvalue())
    check("first epochs are not counted", times == {"sdlf": [0.2, 0.4] * 2, "eager": [0.6] * 4, "graph": [0.3] * 4}, times)
    row = training.row(64, "fp32", times, losses)
    check("the fastest way counts", row["way"] == "graph" and abs(row["ratio"] - 1) < 1e-9, row)
    check("a loss that differs is noticed", row["unlike"] == ["eager"], row)
    row = training.row(64, "fp32", {"sdlf": [1.0]}, {"sdlf": 1.0})
    check("without PyTorch there is no ratio", row["way"] is None and row["ratio"] is None and row["unlike"] == [], row)


def sdlf_is_understood(numpy, folder):
    words = training_data.philox(numpy, 0, numpy.zeros(1, numpy.uint64), 0, 0)
    check("philox is that of its paper", [int(word[0]) for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], words)
    options = types.SimpleNamespace(sdlf=sdlf, samples=64, data=None, device="cpu")
    images, labels = training.pictures(numpy, options)
    for name, array in (("images-idx3", images), ("labels-idx1", labels)):
        training.write_idx(os.path.join(folder, f"train-{name}-ubyte"), array)
    again, same = training.pictures(numpy, types.SimpleNamespace(samples=50, data=folder))
    check("the pictures are read as they were written", (again == images[:50]).all() and (same == labels[:50]).all())
    weights, normal = training.first_weights(numpy, options, folder, 64)
    check("weights are found by their names", {name: value.shape for name, value in weights.items()} == {
        "0.weight": (32, 1, 5, 5), "0.bias": (32,), "4.weight": (1024, 6272), "4.bias": (1024,), "6.weight": (10, 1024), "6.bias": (10,)})
    check("and how samples are normalised", 0 < normal["mean"] < 255 and 0 < normal["scale"] < 1, normal)


def both_train_alike(folder):
    path = os.path.join(folder, "report.json")
    code, said, errors = checking.run(script, "--sdlf", sdlf, "--device", "cpu", "--samples", "80", "--batch", "32", "--epochs", "2", "--threads", "2",
                                      "--way", "eager,nhwc,jax", "--json", path)
    check("both end with the same loss, shorter last batch included", code == 0, said + errors)
    with open(path, encoding="utf-8") as file:
        row = json.load(file)["rows"][0]
    losses = row["losses"]
    check("to five digits", all(abs(loss - losses["sdlf"]) < 1e-5 * losses["sdlf"] for loss in losses.values()), losses)
    check("and each took some time", row["sdlf_seconds"] > 0 and min(row["other_seconds"].values()) > 0, row)
    check("JAX is compared, or told to be missing", ("jax" in losses) != ("jax did not run: JAX is not installed" in errors), errors)


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"skipped  what needs {name}: it is not installed")
        return None


wrong_words_are_told()
numpy = module("numpy")
with tempfile.TemporaryDirectory() as work:
    if numpy:
        sdlf_is_understood(numpy, work)
    if numpy and module("torch"):
        both_train_alike(work)
programs_take_turns()
checking.conclude()
