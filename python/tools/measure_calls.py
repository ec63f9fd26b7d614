# SPDX-License-Identifier: MIT
"""What a call from Python costs: python python/tools/measure_calls.py [MODEL.onnx [THREADS]]

Times one linear layer by the library's forward pass alone, by a plan's run, and by a model's run; and a model's run beside onnxruntime's,
in turns, where a file is given and onnxruntime is installed. The best of nine rounds, in microseconds.
"""

import sys
import time

import numpy as np

import sdlf
from sdlf import nn


def best(call, count, rounds=9):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - start) / count)
    return 1e6 * min(times)


def small():
    model = sdlf.Model.sequential((16,), [nn.Linear(8)]).use("cpu", threads=1)
    x = np.zeros((1, 16), np.float32)
    plan = model.plan(1, threads=1)
    plan.run(x)
    forward, plan_run, model_run = (best(call, 20000) for call in (plan.forward, lambda: plan.run(x), lambda: model.run(x)))
    print(f"one linear layer, 16 to 8: forward {forward:.2f} us, plan.run {plan_run:.2f} us, model.run {model_run:.2f} us")


def compare(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    model = sdlf.Model.from_onnx(path).use("cpu", threads=threads)
    entry = session.get_inputs()[0]
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in entry.shape]
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    theirs = session.run(None, {entry.name: x})[0]
    ours = model.run(x)
    ours = ours if isinstance(ours, np.ndarray) else next(iter(ours.values()))
    print(f"{path}: largest difference {np.abs(ours - theirs).max():.2g} of a range of {np.ptp(theirs):.3g}")
    rounds = [(best(lambda: model.run(x), 20, 1), best(lambda: session.run(None, {entry.name: x}), 20, 1)) for _ in range(9)]
    print(f"  sdlf {min(r[0] for r in rounds):.0f} us, onnxruntime {min(r[1] for r in rounds):.0f} us, {threads} threads")


small()
if len(sys.argv) > 1:
    compare(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
