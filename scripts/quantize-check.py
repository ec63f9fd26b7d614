#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare networks written by 'sdlf quantize', run by onnxruntime, with SDLF's results for the same files.

    scripts/quantize-check.py --sdlf build/sdlf

A network is trained briefly, then quantised in every mode. Each file is checked by onnx.checker with full shape inference, and run by
onnxruntime. With weights only, outputs may differ by 1e-5 of their range; with activations, by the effect of one quantisation step: 0.02, and
with uint8 onnxruntime's optimised graph must contain no floating-point convolution or matrix product. With int8 (--signed) onnxruntime
computes some convolutions in floats, so ties between two integers round differently, and the differences propagate: 0.1. Without the packages
onnx, onnxruntime and numpy the script says so and exits with 77; with 1 if something differs.
"""
import argparse
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

WEIGHTS_ONLY = [["--weights-only", "int8"], ["--weights-only", "int8", "--per-tensor"], ["--weights-only", "int4"],
                ["--weights-only", "int4", "--block", "16"]]
ACTIVATIONS = [[], ["--per-tensor"], ["--signed"], ["--calibration", "percentile"], ["--calibration", "entropy"], ["--opset", "22"]]


def session_of(path, optimised):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.optimized_model_filepath = optimised
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(sdlf, weights, words, folder, x):
    """(largest difference relative to the range, floating-point operators)."""
    path, output, optimised = (os.path.join(folder, name) for name in ("q.onnx", "y.npy", "optimised.onnx"))
    subprocess.run([sdlf, "quantize", weights, "-o", path] + words, check=True, stdout=subprocess.DEVNULL)
    onnx.checker.check_model(path, full_check=True)
    session = session_of(path, optimised)
    expected = session.run(None, {session.get_inputs()[0].name: numpy.load(x)})[0]
    subprocess.run([sdlf, "run", path, "--input", x, "--output", output], check=True, stdout=subprocess.DEVNULL)
    kinds = [node.op_type for node in onnx.load(optimised).graph.node]
    return numpy.abs(numpy.load(output) - expected).max() / numpy.ptp(expected), sum(kind in ("Conv", "Gemm", "MatMul") for kind in kinds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdlf", default="build/sdlf")
    sdlf = os.path.abspath(parser.parse_args().sdlf)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for net in ("lenet5", "resnet20"):
            weights, x = os.path.join(folder, net + ".safetensors"), os.path.join(folder, "x.npy")
            subprocess.run([sdlf, "train", "--net", net, "--data", "digits:300", "--epochs", "1", "--out", weights], check=True,
                           stdout=subprocess.DEVNULL)
            exported = os.path.join(folder, net + ".onnx")
            subprocess.run([sdlf, "export", weights, "-o", exported], check=True, stdout=subprocess.DEVNULL)
            shape = onnx.load(exported).graph.input[0].type.tensor_type.shape
            numpy.save(x, numpy.random.default_rng(3).normal(size=[dim.dim_value or 1 for dim in shape.dim]).astype(numpy.float32))
            for words in WEIGHTS_ONLY + ACTIVATIONS:
                only, signed = words[:1] == ["--weights-only"], "--signed" in words
                difference, floats = check(sdlf, weights, words, folder, x)
                wrong = not difference <= (1e-5 if only else 0.1 if signed else 0.02) or (not only and not signed and floats > 0)
                failed += wrong
                print(f"{'WRONG' if wrong else 'ok   '}  {net:9} {' '.join(words) or 'plain':40} {difference:.1e} of the range, {floats} in floats")
    return 1 if failed else 0


sys.exit(main())
