#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare SDLF with onnxruntime, operator by operator, at every opset in which the operator's meaning changed.

    scripts/compare-operators.py [--peer build/tests/onnx/onnx_peer] [--calculator cpu] [--only Conv] [--cases 12] [--seed 1]
                                 [--list unsupported] [--keep FOLDER]

For each operator models of one node are drawn at random (attributes, shapes, which inputs are constants), at each version of the
operator from opset 7 to 22. Both programs get the same input. An element may differ by 1e-5 + 1e-4 of onnxruntime's.
Models that onnxruntime rejects do not count. The exit status is 1 if any case failed. Needs numpy, onnx and onnxruntime.

Cases in which onnxruntime 1.31 deviates from the standard are not drawn: "same" padding with dilations, or with windows smaller
than their stride, windows larger than the padded input, the mask of a Dropout before opset 12.
Nor are nearest-element scales that hit the middle of two elements only in some precisions.
"""
import argparse
import collections
import concurrent.futures
import os
import sys

try:
    import onnxruntime

    from operators.drawing import reseed
    from operators.families import FAMILIES, versions
    from operators.running import run
except ImportError as missing:
    print(f"{missing}: nothing is compared")
    sys.exit(77)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="build/tests/onnx/onnx_peer", help="the program that runs one model")
    parser.add_argument("--calculator", default="cpu", help="whose kernels run")
    parser.add_argument("--only", action="append", help="an operator; default: all")
    parser.add_argument("--cases", type=int, default=12, help="models for each operator and version")
    parser.add_argument("--seed", type=int, default=1, help="other models")
    parser.add_argument("--list", action="append", default=["failed"], help="outcomes to list one by one")
    parser.add_argument("--keep", help="leave the last model in this folder")
    arguments = parser.parse_args()
    unknown = set(arguments.only or []) - {kind for kinds in FAMILIES.values() for kind in kinds.split()}
    if unknown:
        parser.error(f"--only {sorted(unknown)[0]}: no case of it is drawn")
    if not os.access(arguments.peer, os.X_OK):
        parser.error(f"--peer {arguments.peer}: there is no such program; build the target onnx_peer")
    return arguments


def main():
    arguments = read_arguments()
    todo = []
    for draw, kinds in FAMILIES.items():
        for kind in kinds.split():
            for opset in versions(kind) if not arguments.only or kind in arguments.only else []:
                reseed(f"{arguments.seed} {kind} {opset}")
                todo += [draw(kind, opset) for _ in range(arguments.cases)]
    total, reasons = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(1 if arguments.keep else 2) as workers:
        outcomes = workers.map(lambda case: run(arguments.peer, arguments.calculator, case, arguments.keep), todo)
        for case, (outcome, why) in zip(todo, outcomes):
            total[outcome] += 1
            if outcome in arguments.list:
                print(f"{outcome}: {case}: {why.split('model.onnx: ', 1)[-1]}", flush=True)
            if outcome == "unsupported":
                reasons[f"{case.kind}: {why.split('model.onnx: ', 1)[-1].split('): ', 1)[-1]}"] += 1
    print(f"{arguments.calculator}: {len(todo)} models: {total['passed']} passed, {total['failed']} failed, "
          f"{total['unsupported']} unsupported, {total['refused']} refused by onnxruntime {onnxruntime.__version__}")
    for reason, count in reasons.most_common(20):
        print(f"  {count:4} {reason}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
