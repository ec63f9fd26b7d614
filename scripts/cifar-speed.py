#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains cifar_fast on CIFAR-10 with several seeds, and prints each run's accuracy without and with test-time augmentation, its seconds of
training (as `sdlf train` reports: without opening the data and without tests; nothing is compiled) and its total time from the program's
start; then means and deviations.

    scripts/cifar-speed.py --sdlf build/release/sdlf --data folder:/data/cifar10 --seeds 25 --calculator cuda --math fp16
    scripts/cifar-speed.py --sdlf build/release/sdlf --data folder:/data/subset --seeds 2 --batch 500 -- --epochs 4

What follows -- goes to `sdlf train`. The published recipe: 90.7% with --tta shift, on the JPEG-compressed files, 94.0% on the lossless ones."""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time


def run(command):
    """The program's output and seconds; ends the script with its message if it fails."""
    start = time.monotonic()
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout, time.monotonic() - start


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def accuracy_of(sdlf, weights, data, views, place):
    out, _ = run([sdlf, "eval", "--weights", weights, "--data", data, "--tta", views, "--json", *place])
    return 100 * json.loads(out)["accuracy"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdlf", default="build/release/sdlf")
    parser.add_argument("--data", required=True, help="folder:DIR or cifar10:DIR")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--calculator", default="cpu")
    parser.add_argument("--math", default="fp32")
    parser.add_argument("--json", help="write the figures there")
    parser.add_argument("rest", nargs="*", help="options of sdlf train, behind --")
    options = parser.parse_args()
    place = ["--calculator", options.calculator]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        weights, log = pathlib.Path(folder, "cifar.safetensors"), pathlib.Path(folder, "log.jsonl")
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            log.unlink(missing_ok=True)
            _, whole = run([options.sdlf, "train", "--net", "cifar_fast", "--data", options.data, "--seed", seed, "--no-test", "--quiet",
                            "--out", weights, "--log", log, "--math", options.math, *place, *options.rest])
            epochs = [line["seconds"] for line in lines_of(log) if line["event"] == "epoch"]
            one = {"seed": seed, "seconds": sum(epochs), "first_epoch": epochs[0], "whole": whole}
            for views in ("none", "shift"):
                one[views] = accuracy_of(options.sdlf, weights, options.data, views, place)
            runs.append(one)
            print(f"seed {seed:4}  {one['none']:6.2f}%  with views {one['shift']:6.2f}%  training {one['seconds']:.3f} s "
                  f"(first epoch {one['first_epoch']:.3f})  whole program {whole:.2f} s", flush=True)
    print()
    for key, unit, title in (("none", "%", "accuracy"), ("shift", "%", "accuracy, --tta shift"), ("seconds", " s", "training"),
                             ("whole", " s", "whole program, from a cold start")):
        values = [one[key] for one in runs]
        spread = statistics.stdev(values) if len(values) > 1 else 0
        print(f"{title:34} mean {statistics.mean(values):.3f}{unit}  deviation {spread:.3f}  from {min(values):.3f} to {max(values):.3f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"options": vars(options), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
