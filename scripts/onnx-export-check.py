#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare exported networks, run by onnxruntime, with SDLF's own results.

    scripts/onnx-export-check.py --peer build/tests/onnx/onnx_export_peer [--opset 17 --opset 22]

The peer exports the built-in networks, and networks that together contain every layer (tests/onnx/export_cases.c), and writes inputs and
outputs. Each model is checked by onnx.checker with full shape inference, then run by onnxruntime, for a batch of 1 and of 3 if the file
leaves the batch open. An element may differ by 1e-5 + 1e-5 |expected|, other types not at all. Without --opset, each network is written in
the lowest opset that suffices, then all in 22. Without the packages onnx, onnxruntime and numpy the script says so and exits with 77; with
1 if something differs.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
except ImportError as error:
    print(f"skipped: the package {error.name} is not there, nothing is compared")
    sys.exit(77)


def differences(folder, case, newest):
    """The errors of one exported network, as lines; None if this onnxruntime is too old for it."""
    path = os.path.join(folder, case + ".onnx")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if model.opset_import[0].version > newest:
        return None
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    wrong = []
    batches = sorted({os.path.basename(file).split(".")[1] for file in glob.glob(os.path.join(folder, case + ".*.npy"))})
    for batch in batches:
        def values(kind):
            start = os.path.join(folder, f"{case}.{batch}.{kind}.")
            return {file[len(start):-4]: numpy.load(file) for file in glob.glob(glob.escape(start) + "*.npy")}
        names = [entry.name for entry in session.get_inputs()]
        inputs = {name: value for name, value in values("input").items() if name in names}
        expected = values("output")
        outputs = [entry.name for entry in session.get_outputs()]
        missing = [name for name in outputs if name not in expected]
        wrong += [f"batch {batch}: SDLF has no output {name}" for name in missing]
        for name, found in zip(outputs, session.run(outputs, inputs)):
            if name not in expected:
                continue
            wrong += [f"batch {batch}, {name}: {line}" for line in compare(found, expected[name])]
    if not batches:
        wrong.append("the peer wrote no values")
    return wrong


def compare(found, expected):
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return [f"{found.dtype} {found.shape}, and {expected.dtype} {expected.shape} was expected"]
    if expected.dtype.kind != "f":
        return [] if numpy.array_equal(found, expected) else ["elements differ"]
    if numpy.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True):
        return []
    return [f"elements differ by up to {numpy.max(numpy.abs(found - expected)):.3g}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="the program onnx_export_peer")
    parser.add_argument("--opset", type=int, action="append", help="only in this opset; may be given more than once")
    arguments = parser.parse_args()
    newest = onnx.defs.onnx_opset_version()
    failed = compared = 0
    for opset in arguments.opset or [0, 22]:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([arguments.peer, folder, str(opset)], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode != 0:
                print(f"the peer failed in opset {opset}")
                return 1
            for case in done.stdout.split():
                try:
                    wrong = differences(folder, case, newest)
                except Exception as error:  # of the checker or of onnxruntime, which have many kinds
                    wrong = [f"{type(error).__name__}: {str(error)[:500]}"]
                if wrong is None:
                    print(f"opset {opset or 'lowest'}  {case}: newer than this onnx")
                    continue
                compared += 1
                failed += bool(wrong)
                for line in wrong:
                    print(f"opset {opset or 'lowest'}  {case}: {line}")
    print(f"{compared} networks in onnxruntime {onnxruntime.__version__}: {compared - failed} agree, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
