#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure how well a network trained only on `digits` reads real handwriting.

    scripts/measure-digits.py --mnist DIR [--epochs N] [--seeds N]
    scripts/measure-digits.py --sheet docs/digits.png

The first form trains a small network on the 60,000 training digits and tests it on digits' own 10,000 and on the test set
of MNIST, whose two gzipped files are in DIR. It needs PyTorch. The second form draws the contact sheet of the
documentation. Both compile the data set with the C compiler (CC, or cc) and need NumPy.
"""
import argparse
import ctypes
import gzip
import os
import pathlib
import struct
import subprocess
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAIN, TEST = 0, 1  # sdlf_split


def load_library(folder):
    sources = sorted((ROOT / "datasets").glob("digits*.c"))
    sources += [ROOT / "framework" / name for name in ("dtype.c", "heap.c", "shape.c", "status.c", "tensor.c")]
    library = os.path.join(folder, "digits.so")
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{ROOT}"]
    subprocess.check_call([os.environ.get("CC", "cc"), *flags, f"-I{ROOT}/framework/include", *map(str, sources),
                           "-o", library, "-lpthread", "-lm"])
    return ctypes.CDLL(library)


def draw(library, count, split, seed=1):
    images, labels = np.zeros((count, 28, 28), np.uint8), np.zeros(count, np.int64)
    for i in range(count):
        place = ctypes.c_void_p(images.ctypes.data + 784 * i)
        library.digit_draw(place, ctypes.c_uint64(seed), split, ctypes.c_int64(i))
        labels[i] = library.digit_label(ctypes.c_uint64(seed), split, ctypes.c_int64(i))
    return images, labels


def read_mnist_test(folder):
    images = gzip.open(os.path.join(folder, "t10k-images-idx3-ubyte.gz")).read()
    labels = gzip.open(os.path.join(folder, "t10k-labels-idx1-ubyte.gz")).read()
    return (np.frombuffer(images, np.uint8)[16:].reshape(-1, 28, 28),
            np.frombuffer(labels, np.uint8)[8:].astype(np.int64))


def train(images, labels, epochs, seed, batch=128):
    """Two convolutions and two fully connected layers; Adam with a one-cycle learning rate. No augmentation."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(16, 32, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
    x, y, steps = normalise(images), torch.from_numpy(labels), len(images) // batch
    optimizer = torch.optim.Adam(net.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * steps)
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for step in range(steps):
            chosen = order[step * batch:(step + 1) * batch]
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[chosen]), y[chosen]).backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def normalise(images):
    import torch

    return torch.from_numpy((images.astype(np.float32) - 33.3) / 78.6)[:, None]


def confusion(net, images, labels):
    import torch

    matrix = np.zeros((10, 10), np.int64)
    with torch.no_grad():
        for i in range(0, len(images), 1000):
            found = net(normalise(images[i:i + 1000])).argmax(1).numpy()
            np.add.at(matrix, (labels[i:i + 1000], found), 1)
    return matrix


def measure(library, arguments):
    images, labels = draw(library, 60000, TRAIN)
    sets = {"digits": draw(library, 10000, TEST), "mnist": read_mnist_test(arguments.mnist)}
    accuracies, total = {name: [] for name in sets}, np.zeros((10, 10), np.int64)
    for seed in range(arguments.seeds):
        net = train(images, labels, arguments.epochs, seed)
        for name, (test_images, test_labels) in sets.items():
            matrix = confusion(net, test_images, test_labels)
            accuracies[name].append(matrix.trace() / matrix.sum())
            if name == "mnist":
                total += matrix
        print(f"seed {seed}", *(f" {name} {100 * found[-1]:.2f}%" for name, found in accuracies.items()), flush=True)
    for name, found in accuracies.items():
        print(f"{name}: {100 * np.mean(found):.2f}%, mean of {len(found)} seeds after {arguments.epochs} epochs")
    print("mnist, rows true, columns found, all seeds:", total, sep="\n")


def write_sheet(library, path, columns=24):
    """Black on white, one row per digit, 16 grey levels."""
    images, labels = draw(library, 10 * columns, TRAIN)
    rows = [np.hstack(images[labels == digit]) for digit in range(10)]
    sheet = 255 - np.vstack(rows) // 16 * 17
    height, width = sheet.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + sheet[y].tobytes() for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                                   + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", metavar="DIR", help="folder of the MNIST test set")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sheet", metavar="PNG", help="draw the contact sheet there")
    arguments = parser.parse_args()
    if not arguments.mnist and not arguments.sheet:
        parser.error("one of --mnist and --sheet is needed")
    with tempfile.TemporaryDirectory() as folder:
        library = load_library(folder)
        if arguments.sheet:
            write_sheet(library, arguments.sheet)
        if arguments.mnist:
            measure(library, arguments)


if __name__ == "__main__":
    main()
