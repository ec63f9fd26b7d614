# SPDX-License-Identifier: MIT
"""Weights files go both ways between SDLF and the safetensors library (NumPy, and PyTorch where it is there).

    python3 safetensors_python.py path/to/safetensors_peer

Exit code 77: skipped, because a package is missing.
"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors
    import safetensors.numpy
except ImportError as missing:
    print(f"skipped: {missing}; try: {sys.executable} -m pip install numpy safetensors")
    sys.exit(77)

SHAPES = {"conv2d.weight": (2, 1, 3, 3), "conv2d.bias": (2,), "fc.weight": (3, 72), "fc.bias": (3,)}


def numbers(position, shape):
    """What safetensors_peer.c calls number()."""
    elements = numpy.arange(int(numpy.prod(shape)))
    return ((31 * position + 7 * elements) % 128).reshape(shape).astype(numpy.float32)


def read_what_sdlf_wrote(path):
    found = safetensors.numpy.load_file(path)
    expected = {name: numbers(i, shape) for i, (name, shape) in enumerate(SHAPES.items())}
    expected |= {f"optimizer.0.{name}": numbers(i, shape) + 128 for i, (name, shape) in enumerate(SHAPES.items())}
    assert set(found) == set(expected), sorted(found)
    for name, values in expected.items():
        assert found[name].dtype == numpy.float32 and found[name].shape == values.shape, name
        assert numpy.array_equal(found[name], values), name
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    network = json.loads(metadata["sdlf.network"])
    assert [layer["type"] for layer in network["layers"]] == ["conv2d", "fully_connected", "softmax"], network
    assert json.loads(metadata["sdlf.training"])["step"] == 12
    assert json.loads(metadata["sdlf.normalization"]) == {"mean": 0.125, "scale": 4.0}


def check(peer, path):
    subprocess.run([peer, "check", path], check=True)


def write_for_sdlf(peer, path):
    for dtype in (numpy.float32, numpy.float64, numpy.float16):
        tensors = {name: numbers(i, shape).astype(dtype) for i, (name, shape) in enumerate(SHAPES.items())}
        safetensors.numpy.save_file(tensors, path, metadata={"format": "np"})
        check(peer, path)


def go_through_torch(peer, written, path):
    try:
        import torch
        import safetensors.torch
    except ImportError as missing:
        print(f"without PyTorch: {missing}")
        return
    tensors = safetensors.torch.load_file(written)
    for i, (name, shape) in enumerate(SHAPES.items()):
        assert torch.equal(tensors[name], torch.from_numpy(numbers(i, shape))), name
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        safetensors.torch.save_file({name: tensors[name].to(dtype) for name in SHAPES}, path)
        check(peer, path)


def main():
    peer = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        written, path = os.path.join(folder, "sdlf.safetensors"), os.path.join(folder, "python.safetensors")
        subprocess.run([peer, "write", written], check=True)
        read_what_sdlf_wrote(written)
        write_for_sdlf(peer, path)
        go_through_torch(peer, written, path)
    print(f"safetensors {safetensors.__version__}: files agree both ways")


main()
