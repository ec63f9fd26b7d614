#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps of any network, SDLF and PyTorch: one run, one machine, the same threads or GPU, batch and precision.

    scripts/compare-pytorch-networks.py NET ... [--sdlf build/sdlf] [--shape 3,32,32 | --length 128] [--batch 128] [--steps N] [--rounds N]
                                        [--device cpu|cuda] [--threads N] [--math fp32,tf32,bf16] [--way eager,nhwc,graph,...]

NET is a built-in name or a network file (JSON), of convolutions, attention, recurrent layers, normalisations, poolings, activations,
additions and fully connected layers. Its data are random images of --shape, or, with --length, a text of random characters, of which each
predicts the next. `sdlf train` draws the weights and writes them with the network's description; PyTorch's module is built from both, and
must give the same probabilities, or the script fails. Then both train on data in memory (on a GPU: in its memory, images as uint8), with
SGD and momentum. A figure is the median of --rounds turns; for sdlf, a step of `sdlf bench network`, which draws and normalises its
batches; PyTorch reuses one prepared batch. PyTorch's attention is scaled_dot_product_attention. PyTorch's modes: eager; nhwc, channels last; with the suffix compile by
torch.compile, with the prefix graph as a CUDA graph of the step. tf32 and bf16 are torch.backends' TF32 and torch.autocast.
"""
import os
import statistics
import sys
import tempfile
import time

import comparing
import torch_network
from training_data import write_idx

WAYS = ["eager", "nhwc", "compile", "nhwc-compile", "graph", "graph-nhwc", "graph-compile", "graph-nhwc-compile"]
ALIKE = 1e-4  # of a probability


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("nets", nargs="+", metavar="NET", help="a built-in name, or a network file")
    parser.add_argument("--shape", type=comparing.counts, metavar="C,H,W", default="3,32,32", help="of the pictures")
    parser.add_argument("--length", type=comparing.count, help="of sequences of characters, instead of pictures")
    parser.add_argument("--classes", type=comparing.count, help="of the labels (default: 10), or different characters (64)")
    parser.add_argument("--batch", type=comparing.count, default=128, help="samples a step")
    parser.add_argument("--steps", type=comparing.count, default=10, help="of a turn")
    parser.add_argument("--rounds", type=comparing.count, default=3, help="turns of each program")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where both compute")
    parser.add_argument("--threads", type=comparing.count, default=len(os.sched_getaffinity(0)), help="of both, on a CPU")
    parser.add_argument("--math", type=comparing.one_of("fp32", "tf32", "bf16"), default="fp32", help="of both, on a GPU")
    parser.add_argument("--way", type=comparing.one_of(*WAYS), default=None, help="default: eager,nhwc; on a GPU graph,graph-nhwc")
    comparing.Record.arguments(parser)
    options = parser.parse_args()
    if len(options.shape) != 3:
        parser.error("argument --shape: expected C,H,W")
    if options.classes is None:
        options.classes = 64 if options.length else 10
    if options.length and options.classes > 90:
        parser.error("argument --classes: a text has 90 characters or less here")
    if options.way is None:
        options.way = ["graph", "graph-nhwc"] if options.device == "cuda" else ["eager", "nhwc"]
    if options.device == "cpu" and (options.math != ["fp32"] and options.math != "fp32"):
        parser.error("argument --math: a CPU computes fp32")
    if options.device == "cpu" and any(way.startswith("graph") for way in options.way):
        parser.error("argument --way: graphs are a GPU's")
    if isinstance(options.math, str):
        options.math = [options.math]
    return options


def write_pictures(np, options, folder, samples):
    os.mkdir(folder)
    rng = np.random.default_rng(1)
    for stem, count in (("train", samples), ("t10k", options.classes)):
        labels = rng.integers(0, options.classes, count).astype(np.uint8)
        labels[: min(count, options.classes)] = np.arange(min(count, options.classes))
        write_idx(f"{folder}/{stem}-images-idx4-ubyte", rng.integers(0, 256, (count, *options.shape), dtype=np.uint8))
        write_idx(f"{folder}/{stem}-labels-idx1-ubyte", labels)
    return f"mnist:{folder}"


def write_text(np, options, folder, samples):
    """A text of at least so many sequences to train with; the split for testing takes a part of it."""
    os.mkdir(folder)
    characters = np.random.default_rng(1).integers(0, options.classes, (samples + 2) * (options.length + 1) * 5 // 4 + options.classes)
    characters[: options.classes] = np.arange(options.classes)
    with open(f"{folder}/text.txt", "wb") as file:
        file.write((characters + 33).astype(np.uint8).tobytes())
    return f"text:{folder}/text.txt,length={options.length}"


def make_module(np, torch, options, net, folder):
    """PyTorch's module, after a check of its outputs against sdlf's."""
    weights, x, y = f"{folder}/weights.safetensors", f"{folder}/x.npy", f"{folder}/y.npy"
    comparing.run([options.sdlf, "train", "--net", net, "--data", options.few, "--epochs", "1", "--batch", "8",
                   "--learning-rate", "0.001", "--quiet", "-o", weights])
    module = torch_network.module(torch, *torch_network.read(np, weights))
    rng = np.random.default_rng(2)
    shape = (1, options.length) if options.length else (1, *options.shape)
    sample = (rng.integers(0, options.classes, shape) if options.length else rng.standard_normal(shape)).astype(np.float32)
    np.save(x, sample)
    comparing.run([options.sdlf, "run", weights, "--input", x, "--output", y])
    with torch.no_grad():
        expected = torch.softmax(module(torch.from_numpy(sample).to(torch.int64 if options.length else torch.float32)), -1).numpy()
    off = float(abs(np.load(y).reshape(expected.shape) - expected).max())
    if not off < ALIKE:
        sys.exit(f"{net}: sdlf's and PyTorch's probabilities differ by {off:.2g}: these are two networks")
    return module


def sdlf_step(options, net, math):
    command = [options.sdlf, "bench", "network", "--net", net, "--data", options.all, "--calculator", options.device, "--batch",
               str(options.batch), "--steps", str(options.steps), "--repeats", "1", "--copy-size", "1MB", "--json"]
    command += ["--math", math] if options.device == "cuda" else ["--threads", str(options.threads)]
    return comparing.report(command)["epoch"]["seconds"] / options.steps


class Training:
    """A training step of PyTorch in one mode."""

    def __init__(self, torch, options, module, math, way):
        self.torch, self.cuda = torch, options.device == "cuda"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = math == "tf32"
        torch.backends.cudnn.benchmark = True
        layout = torch.channels_last if "nhwc" in way else torch.contiguous_format
        net = module.to(options.device, memory_format=layout).train()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9, **({"fused": True} if self.cuda else {}))
        def draw(below, *shape, **dtype):
            return torch.randint(0, below, (options.batch, *shape), device=options.device, **dtype)

        if options.length:
            data, labels = draw(options.classes, options.length), draw(options.classes, options.length)
        else:
            data, labels = draw(256, *options.shape, dtype=torch.uint8), draw(options.classes)

        def loss():
            x = data if options.length else ((data.float() - 127.5) / 64).contiguous(memory_format=layout)
            with torch.autocast(options.device, torch.bfloat16, enabled=math == "bf16"):
                scores = net(x)
            return torch.nn.functional.cross_entropy(scores.reshape(labels.numel(), options.classes).float(), labels.flatten())

        made = torch.compile(loss, dynamic=False) if "compile" in way else loss

        def step():
            made().backward()
            optimizer.step()
            optimizer.zero_grad()

        self.step = step
        for _ in range(3):
            step()
        if way.startswith("graph"):
            self.record()

    def record(self):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self.step = graph.replay

    def seconds(self, steps):
        if self.cuda:
            self.torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        if self.cuda:
            self.torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps


def compare(np, torch, options, net, folder, math, record):
    module = make_module(np, torch, options, net, folder)
    ways = {way: Training(torch, options, module, math, way) for way in options.way[:1]}
    ours, theirs = [], {way: [] for way in options.way}
    for _ in range(options.rounds):
        ours.append(sdlf_step(options, net, math))
        for way in options.way:
            if way not in ways:
                ways[way] = Training(torch, options, make_module(np, torch, options, net, folder), math, way)
            theirs[way].append(ways[way].seconds(options.steps))
    mine, found = statistics.median(ours), {way: statistics.median(times) for way, times in theirs.items()}
    best = min(found.values())
    all_ways = ", ".join(f"{way} {seconds * 1e3:.2f}" for way, seconds in found.items())
    name = os.path.basename(net).removesuffix(".json")
    print(f"{name:<20} {math:>5} {mine * 1e3:>10.2f} {best * 1e3:>10.2f} {best / mine:>6.2f}x  {all_ways}", flush=True)
    job = f"{name}, batch {options.batch}" + (f", {math}" if options.device == "cuda" else "")
    record.add(job, mine * 1e3, best * 1e3, comparing.named("PyTorch", torch, min(found, key=found.get)))


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    np, torch = comparing.need("numpy"), comparing.need("torch")
    torch.set_num_threads(options.threads)
    where = "a GPU" if options.device == "cuda" else f"{options.threads} CPU threads"
    sample = f"sequences of {options.length}" if options.length else ",".join(map(str, options.shape))
    print(f"{sample}, batch {options.batch}, {where}; ms a training step; PyTorch {torch.__version__}")
    print(f"{'network':<20} {'math':>5} {'SDLF':>10} {'PyTorch':>10} {'ratio':>7}  its ways")
    record = comparing.Record(options, "ms")
    with tempfile.TemporaryDirectory() as folder:
        write = write_text if options.length else write_pictures
        options.few = write(np, options, f"{folder}/few", options.classes)
        options.all = write(np, options, f"{folder}/all", options.batch * options.steps)
        for net in options.nets:
            for math in options.math:
                try:
                    compare(np, torch, options, net, folder, math, record)
                except comparing.Failed as failed:
                    sys.exit(str(failed))
    record.write()


if __name__ == "__main__":
    main()
