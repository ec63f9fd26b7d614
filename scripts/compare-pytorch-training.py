#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Epochs of simple_cnn, in SDLF, in PyTorch and in JAX: one run, one machine, the same training of the same network.

    scripts/compare-pytorch-training.py [--sdlf build/sdlf] [--device cuda|cpu] [--batch 16,64,128,1024] [--math fp32,tf32,bf16]
                                        [--case tf32:16,fp32:64] [--way eager,nhwc,compile,graph,graph-nhwc,graph-compile,jax] [--json FILE]

All start from the same weights (sdlf's, for seed 1), use the same samples in the same order (that of sdlf_shuffle_order), including
the shorter last batch, and train with SGD, momentum 0.9, a constant rate and the mean cross-entropy of each batch. The table has
their losses over the last epoch: if they differ by more than rounding, the trainings differ, and the script fails.

`sdlf train` runs by itself and reports the seconds of each epoch. The others hold the data set on the device as uint8; a step takes its
part of the order, gathers and normalises the samples, runs forward and backward, updates the weights, and adds to the sum of losses; the
host waits at the epoch's end. Creating the order is excluded from their time, but included in sdlf's. Their modes:

    eager          PyTorch in eager mode
    nhwc           channels last
    compile        all but the update by torch.compile
    graph          the whole step a CUDA graph; graph-nhwc and graph-compile: that of the two above
    jax            JAX, where it is installed: the whole epoch one lax.scan

tf32 and bf16 are torch.backends' TF32 and torch.autocast with float32 weights (in JAX, matrix products of default precision, and 16-bit
operands); the CPU computes fp32. Programs take turns, --rounds times; a figure is the median over all epochs but the first of each
turn. With --ahead, torch.compile runs beforehand, for all cases in parallel, and its code is kept in a folder until the end: saves time
if there are enough CPU cores. To pin everything to some CPU cores, start this with taskset.

A line for each batch and mode: milliseconds of an epoch of sdlf, of the fastest other mode, and of all. Needs torch.
"""
import importlib
import json
import math
import os
import statistics
import sys
import tempfile

import comparing
import jax_training
import pytorch_training
from pytorch_training import RATE
from training_data import SEED, order, pictures, write_idx

MODES = ["fp32", "tf32", "bf16"]
WAYS = ["eager", "nhwc", "compile", "graph", "graph-nhwc", "graph-compile", "jax"]
ALIKE = {"fp32": 0.01, "tf32": 0.02, "bf16": 0.05}  # of the loss: other summation orders, and rounded operands, over an epoch or more
TORCH_NAMES = {"conv2d": "0", "fully_connected": "4", "fully_connected_2": "6"}  # in pytorch_training.py's nn.Sequential


def case(text):
    """`tf32:16` as (16, "tf32"), for type=."""
    mode, _, batch = text.partition(":")
    return comparing.count(batch), *comparing.one_of(*MODES)(mode)


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="where both compute")
    parser.add_argument("--batch", "--batches", type=comparing.counts, metavar="N,...", default="16,64,128,1024", help="samples a step")
    parser.add_argument("--math", "--modes", type=comparing.one_of(*MODES), metavar="MODE,...", default=None,
                        help="default: all; fp32 on the CPU")
    parser.add_argument("--case", "--cases", type=lambda text: [case(word) for word in comparing.texts(text)], metavar="MODE:BATCH,...",
                        default=None, help="these alone, instead of all batches in all modes")
    parser.add_argument("--way", "--ways", type=comparing.one_of(*WAYS), metavar="WAY,...", default=None,
                        help="the others', of which the fastest counts; default: all, without graphs on the CPU")
    parser.add_argument("--ahead", action="store_true", help="compile before, all cases side by side")
    parser.add_argument("--data", metavar="DIR", help="MNIST's files; default: pictures that are made up")
    parser.add_argument("--samples", type=comparing.count, metavar="N", default=60000, help="of an epoch")
    parser.add_argument("--epochs", type=comparing.count, metavar="N", default=4, help="of a turn, 2 or more")
    parser.add_argument("--rounds", type=comparing.count, metavar="N", default=1, help="turns of each")
    parser.add_argument("--threads", type=comparing.count, metavar="N", default=len(os.sched_getaffinity(0)), help="of both, on the CPU")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    comparing.Record.arguments(parser)
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    options.math = options.math or (["fp32"] if on_cpu else MODES)
    options.way = options.way or [way for way in WAYS if not (on_cpu and way.startswith("graph"))]
    options.case = options.case or [(batch, mode) for mode in options.math for batch in options.batch]
    if options.epochs < 2:
        parser.error("--epochs: the first of a turn is not counted, so there must be 2 or more")
    if on_cpu and any(mode != "fp32" for mode in [*options.math, *(mode for _, mode in options.case)]):
        parser.error("--math: the CPU computes fp32 alone")
    if on_cpu and any(way.startswith("graph") for way in options.way):
        parser.error("--way: there are no CUDA graphs on the CPU")
    return options


# ---- SDLF ----

def sdlf_train(options, folder, batch, *more):
    return [options.sdlf, "train", "--net", "simple_cnn", "--data", f"mnist:{folder}", "--no-test", "--quiet", "--batch", str(batch),
            "--seed", str(SEED), "--schedule", "constant", *more]


def first_weights(np, options, folder, count):
    """sdlf's initial weights, by PyTorch's names, and its normalisation: from a training whose steps change nothing."""
    path = os.path.join(folder, "first.safetensors")
    comparing.run(sdlf_train(options, folder, count, "--epochs", "1", "--learning-rate", "1e-12", "--out", path,
                             "--calculator", options.device))
    with open(path, "rb") as file:
        found = file.read()
    end = 8 + int.from_bytes(found[:8], "little")
    header = json.loads(found[8:end])
    weights = {}
    for name, entry in header.items():
        layer, _, kind = name.rpartition(".")
        if layer not in TORCH_NAMES or kind not in ("weight", "bias"):
            continue
        begin, finish = entry["data_offsets"]
        weights[f"{TORCH_NAMES[layer]}.{kind}"] = np.frombuffer(found[end + begin:end + finish], np.float32).reshape(entry["shape"]).copy()
    return weights, json.loads(header["__metadata__"]["sdlf.normalization"])


def sdlf_turn(options, folder, batch, mode):
    """Seconds of each epoch, and the last one's loss."""
    log = os.path.join(folder, "log.json")
    more = ["--threads", str(options.threads)] if options.device == "cpu" else ["--math", mode]
    comparing.run(sdlf_train(options, folder, batch, "--epochs", str(options.epochs), "--learning-rate", str(RATE), "--no-save",
                             "--calculator", options.device, "--log", log, "--log-steps", "0", *more))
    with open(log, encoding="utf-8") as file:
        epochs = [line for line in map(json.loads, file) if line["event"] == "epoch"]
    return [epoch["seconds"] for epoch in epochs], epochs[-1]["loss"]


# ---- all of them ----

def batches_of(options, batch):
    """The sizes of an epoch's batches, including the shorter last one."""
    return [min(batch, options.samples - first) for first in range(0, options.samples, batch)]


def other_turn(modules, options, way, mode, batch, *training):
    torch, jax = modules
    if way == "jax":
        if jax is None:
            raise RuntimeError("JAX is not installed")
        return jax_training.turn(jax, mode, batches_of(options, batch), *training)
    return pytorch_training.turn(torch, options.device, way, mode, batches_of(options, batch), *training)


def compared(modules, options, folder, data, weights, orders, batch, mode):
    """Times of all turns: {"sdlf": [...], way: [...]}, and losses likewise; modes that are unavailable are left out and reported."""
    times, losses = {"sdlf": []}, {}
    ways = list(options.way)
    for _ in range(options.rounds):
        seconds, losses["sdlf"] = sdlf_turn(options, folder, batch, mode)
        times["sdlf"] += seconds[1:]
        for way in list(ways):
            try:
                seconds, losses[way] = other_turn(modules, options, way, mode, batch, data, weights, orders)
            except Exception as error:  # no compiler, no memory
                print(f"batch {batch} {mode}: {way} did not run: {str(error).strip().splitlines()[0][:160]}", file=sys.stderr)
                ways.remove(way)
                continue
            times.setdefault(way, []).extend(seconds[1:])
    return times, losses


def row(batch, mode, times, losses):
    medians = {name: statistics.median(found) for name, found in times.items()}
    theirs = {name: seconds for name, seconds in medians.items() if name != "sdlf"}
    way = min(theirs, key=theirs.get) if theirs else None
    own = losses["sdlf"]
    unlike = [name for name, loss in losses.items() if not abs(loss - own) <= ALIKE[mode] * max(abs(own), 0.01)]
    return {"batch": batch, "math": mode, "sdlf_seconds": medians["sdlf"], "other_seconds": theirs, "way": way,
            "ratio": theirs[way] / medians["sdlf"] if way else None, "losses": losses, "unlike": unlike}


def print_row(found):
    if found["way"] is None:
        print(f"{found['batch']:>6} {found['math']:<5} {found['sdlf_seconds'] * 1e3:>9.1f} {'-':>9}", flush=True)
        return
    best, way = found["other_seconds"][found["way"]], found["way"]
    ways = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in found["other_seconds"].items())
    print(f"{found['batch']:>6} {found['math']:<5} {found['sdlf_seconds'] * 1e3:>9.1f} {best * 1e3:>9.1f} {way:<13} {found['ratio']:>6.2f} "
          f"{found['losses']['sdlf']:>8.4f} {found['losses'][way]:>8.4f}  {ways}", flush=True)


def found_modules(options):
    """torch, and JAX if requested and installed, else None."""
    torch = comparing.need("torch")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here; --device cpu compares on the CPU")
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    else:
        torch.backends.cudnn.benchmark = True
    if "jax" not in options.way:
        return torch, None
    jax_training.set_up(options.device)
    try:
        return torch, importlib.import_module("jax")
    except ImportError:
        return torch, None


def measured(modules, options):
    """A row for every case, printed when measured."""
    np = comparing.need("numpy")
    images, labels = pictures(np, options)
    orders = [order(np, options.samples, epoch) for epoch in range(options.epochs)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if options.ahead and any(way.endswith("compile") for way in options.way):
            cases = [(mode, sorted(set(batches_of(options, batch)))) for batch, mode in options.case]
            pytorch_training.compile_ahead(options.device, options.samples, cases, os.path.join(folder, "compiled"))
        write_idx(os.path.join(folder, "train-images-idx3-ubyte"), images)
        write_idx(os.path.join(folder, "train-labels-idx1-ubyte"), labels)
        weights, normal = first_weights(np, options, folder, min(options.samples, 1024))
        data = (images, labels, normal["mean"], normal["scale"])
        for batch, mode in options.case:
            rows.append(row(batch, mode, *compared(modules, options, folder, data, weights, orders, batch, mode)))
            print_row(rows[-1])
    return rows


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    modules = torch, jax = found_modules(options)
    machine = f"{options.threads} CPU threads" if options.device == "cpu" else torch.cuda.get_device_name()
    others = f"PyTorch {torch.__version__}" + (f", JAX {jax.__version__}" if jax else "")
    print(f"simple_cnn, an epoch of {options.samples:,} samples; {machine}; {others}; milliseconds, {options.epochs - 1} epochs "
          f"in {options.rounds} turn(s) of each")
    print(f"{'batch':>6} {'mode':<5} {'sdlf':>9} {'fastest':>9} {'way':<13} {'ratio':>6} {'loss':>8} {'theirs':>8}  all ways")
    try:
        rows = measured(modules, options)
    except comparing.Failed as failed:
        sys.exit(str(failed))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"samples": options.samples, "device": options.device, "machine": machine, "threads": options.threads,
                       "others": others, "epochs": options.epochs, "rounds": options.rounds, "rows": rows}, file, indent=2)
            file.write("\n")
    record = comparing.Record(options, "ms")
    for found in rows:
        if found["way"] is not None:
            name = comparing.named("JAX", jax) if found["way"] == "jax" else comparing.named("PyTorch", torch, found["way"])
            record.add(f"batch {found['batch']}, {found['math']}", found["sdlf_seconds"] * 1e3, found["other_seconds"][found["way"]] * 1e3, name)
        for name in found["unlike"]:
            print(f"batch {found['batch']} {found['math']}: {name} ended with a loss of {found['losses'][name]:.6g}, sdlf with "
                  f"{found['losses']['sdlf']:.6g}: they did not train alike", file=sys.stderr)
    record.write()
    sys.exit(any(found["unlike"] or math.isnan(found["sdlf_seconds"]) for found in rows))


if __name__ == "__main__":
    main()
