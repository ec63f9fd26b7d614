#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An epoch of training simple_cnn, SDLF and PyTorch: one run, one machine, the same threads, batches and precision.

    scripts/compare-pytorch.py [--sdlf build/sdlf] [--threads N] [--batch 16,64,128,1024] [--steps N]

Both train on batches in memory with SGD and momentum and report the median time of a step times the steps of 60,000
samples. PyTorch runs in eager mode on the CPU. To pin both to some CPU cores, start this with taskset.
"""
import math
import os
import statistics
import time

import comparing

SAMPLES = 60000


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--threads", type=comparing.count, metavar="N", default=len(os.sched_getaffinity(0)), help="of both programs")
    parser.add_argument("--batch", "--batches", type=comparing.counts, metavar="N,...", default="16,64,128,1024", help="samples a step")
    parser.add_argument("--steps", type=comparing.count, metavar="N", default=40, help="steps that are timed, at the least")
    comparing.Record.arguments(parser)
    return parser.parse_args()


def sdlf_epoch(options, batch):
    """Seconds of an epoch, and of its floor."""
    command = [options.sdlf, "bench", "--json", "--net", "simple_cnn", "--calculator", "cpu", "--batch", str(batch),
               "--threads", str(options.threads), "--steps", str(min(options.steps, SAMPLES // batch))]
    found = comparing.report(command)
    return found["epoch"]["seconds"], found["epoch"]["floor_seconds"]


def pytorch_epoch(torch, options, batch):
    nn, functional = torch.nn, torch.nn.functional
    net = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(32 * 14 * 14, 1024), nn.ReLU(), nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, labels = torch.rand(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    times = []
    for step in range(options.steps + 3):
        start = time.perf_counter()
        optimizer.zero_grad()
        functional.cross_entropy(net(x), labels).backward()
        optimizer.step()
        if step >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * math.ceil(SAMPLES / batch)


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch = comparing.need("torch")
    torch.set_num_threads(options.threads)
    print(f"simple_cnn, an epoch of {SAMPLES:,} samples, float32, {options.threads} CPU threads; PyTorch {torch.__version__}")
    print(f"{'batch':>6} {'SDLF s':>8} {'PyTorch s':>10} {'ratio':>7} {'floor s':>8} {'of floor':>9}")
    record = comparing.Record(options, "s")
    for batch in options.batch:
        ours, floor = sdlf_epoch(options, batch)
        theirs = pytorch_epoch(torch, options, batch)
        print(f"{batch:>6} {ours:>8.2f} {theirs:>10.2f} {theirs / ours:>6.2f}x {floor:>8.2f} {floor / ours:>8.0%}", flush=True)
        record.add(f"batch {batch}", ours, theirs, comparing.named("PyTorch", torch), floor=floor)
    record.write()


if __name__ == "__main__":
    main()
