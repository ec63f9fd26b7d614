#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Images a second from a folder, SDLF and PyTorch's DataLoader: one run, one machine, the same files and number of workers.

    scripts/compare-loader.py [--sdlf build/sdlf] [--folder DIR] [--pictures N] [--workers 2] [--rounds 5] [--json FILE]

The job is that of a training epoch: JPEG files of 500x375 pixels are decoded, a random crop of 8% to 100% of the area is resized to
224x224, half of them are flipped, all are normalised, in batches of 64 in a new order. torchvision: ImageFolder, RandomResizedCrop, flip,
ToTensor (or, if faster, decode_image and the v2 transforms on tensors), Normalize, a DataLoader with --workers persistent processes;
SDLF: `sdlf train --cache 1` with a network that only averages, with --workers threads; its time is that of the whole epoch. Both take
turns and the median counts. --folder: your own images, one subfolder per class; without it N are drawn, of clouds, stripes, discs and
noise, as JPEG of quality 90 with chroma at half the resolution.

Prints a table: images a second of both and the ratio. Needs torch, torchvision, pillow and numpy.
"""
import json
import os
import statistics
import sys
import tempfile
import time

import comparing

SIDE, BATCH, HEIGHT, WIDTH = 224, 64, 375, 500


def draw(generator, numpy):
    """One image: clouds of several sizes in a colour each, stripes, discs and a little noise."""
    down, right = numpy.mgrid[0:HEIGHT, 0:WIDTH].astype(numpy.float32)
    picture = numpy.zeros((HEIGHT, WIDTH, 3), numpy.float32)
    for size in (4, 9, 20, 45):
        cells = generator.random((size + 2, size + 2, 3), dtype=numpy.float32)
        y, x = down * size / HEIGHT, right * size / WIDTH
        top, left = y.astype(int), x.astype(int)
        v, h = (y - top)[..., None], (x - left)[..., None]
        mixed = ((cells[top, left] * (1 - h) + cells[top, left + 1] * h) * (1 - v) +
                 (cells[top + 1, left] * (1 - h) + cells[top + 1, left + 1] * h) * v)
        picture += mixed * 120 / size**0.5
    angle, wave = generator.random() * 3.14, generator.random() * 0.5 + 0.02
    picture += (30 * numpy.sin((down * numpy.sin(angle) + right * numpy.cos(angle)) * wave))[..., None]
    for _ in range(6):
        y, x, r = generator.random() * HEIGHT, generator.random() * WIDTH, 10 + generator.random() * 80
        picture[(down - y)**2 + (right - x)**2 < r * r] += generator.random(3, dtype=numpy.float32) * 160 - 80
    picture += generator.normal(0, 6, picture.shape).astype(numpy.float32)
    return picture.clip(0, 255).astype(numpy.uint8)


def make(folder, count):
    numpy, image = comparing.need("numpy"), comparing.need("PIL.Image")
    generator = numpy.random.default_rng(1)
    for name in ("a", "b"):
        os.makedirs(os.path.join(folder, name))
    for i in range(count):
        path = os.path.join(folder, "ab"[i % 2], f"{i:05d}.jpg")
        image.fromarray(draw(generator, numpy)).save(path, quality=90, subsampling=2)


def listed(folder):
    """A data set's files and classes, without an error for files that are not images."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [(os.path.join(folder, name, file), label) for label, name in enumerate(classes)
            for file in sorted(os.listdir(os.path.join(folder, name)))]


class Tensors:
    """Decodes images to uint8 tensors and transforms these."""

    def __init__(self, folder):
        from torchvision.transforms import v2
        import torch
        self.files = listed(folder)
        self.change = v2.Compose([v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(),
                                  v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        from torchvision.io import ImageReadMode, decode_image
        path, label = self.files[i]
        return self.change(decode_image(path, mode=ImageReadMode.RGB)), label


def peer(folder, workers, way):
    """An epoch of the DataLoader, as a function that returns images a second."""
    torch = comparing.need("torch")
    from torchvision import datasets, transforms
    torch.set_num_threads(1)
    if way == "tensors":
        data = Tensors(folder)
    else:
        data = datasets.ImageFolder(folder, transforms.Compose([
            transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.25] * 3)]))
    loader = torch.utils.data.DataLoader(data, BATCH, shuffle=True, num_workers=workers, persistent_workers=True)

    def epoch():
        seen, start = 0, time.perf_counter()
        for pictures, _ in loader:
            seen += len(pictures)
        return seen / (time.perf_counter() - start)

    return epoch


NETWORK = {"name": "mean", "input": {"name": "image", "shape": [3, SIDE, SIDE]},
           "layers": [{"type": "global_avg_pool2d"}, {"type": "flatten"}, {"type": "fully_connected", "units": 2}]}


def ours(program, folder, workers, work):
    """An epoch of `sdlf train`: images a second, from its log."""
    net, log = os.path.join(work, "mean.json"), os.path.join(work, "log.jsonl")
    network = dict(NETWORK)
    network["layers"][-1]["units"] = sum(entry.is_dir() for entry in os.scandir(folder))
    with open(net, "w", encoding="utf-8") as file:
        json.dump(network, file)
    comparing.run([program, "train", "--data", f"folder:{folder}", "--net", net, "--cache", "1", "--workers", str(workers),
                   "--batch", str(BATCH), "--threads", "1", "--augment-resized-crop", "0.08", "--augment-flip", "--epochs", "2",
                   "--no-test", "--no-save", "--quiet", "--log", log])
    with open(log, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    os.remove(log)
    epoch = [line for line in lines if line["event"] == "epoch"][-1]  # the first is a warm-up, as for the peer
    return epoch["samples"] / epoch["seconds"]


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--folder", metavar="DIR", help="pictures, in a subfolder for each class")
    parser.add_argument("--pictures", type=comparing.count, default=1500, help="to draw, without --folder")
    parser.add_argument("--workers", type=comparing.count, default=len(os.sched_getaffinity(0)), help="of both")
    parser.add_argument("--rounds", type=comparing.count, default=5, help="turns of each")
    parser.add_argument("--json", metavar="FILE", help="write the figures there")
    return parser.parse_args()


def main():
    options = arguments()
    comparing.need("torchvision")
    with tempfile.TemporaryDirectory() as work:
        folder = options.folder
        if folder is None:
            folder = os.path.join(work, "pictures")
            make(folder, options.pictures)
        ways = {"torchvision, PIL": peer(folder, options.workers, "pil"),
                "torchvision, tensors": peer(folder, options.workers, "tensors"),
                "SDLF": lambda: ours(options.sdlf, folder, options.workers, work)}
        found = {way: [] for way in ways}
        for way in list(ways)[:2]:
            ways[way]()  # the workers start
        for _ in range(options.rounds):
            for way, epoch in ways.items():
                found[way].append(epoch())
    rates = {way: statistics.median(rates) for way, rates in found.items()}
    best = max(rate for way, rate in rates.items() if way != "SDLF")
    print(f"| {options.workers} workers | pictures/s |\n|---|---|")
    for way, rate in rates.items():
        print(f"| {way} | {rate:,.0f} |")
    print(f"| ratio to the faster | {rates['SDLF'] / best:.2f} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"workers": options.workers, "rates": rates, "all": found, "ratio": rates["SDLF"] / best}, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
