#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inference on one GPU, here and in PyTorch: one run, one machine, the same networks, batches and precision.

    scripts/compare-pytorch-gpu.py [--sdlf build/sdlf] [--folder FOLDER] [--net vgg16,mobilenet_v2,resnet18] [--batch 1,32]
                                   [--math fp64,fp32,tf32,fp16] [--calculator cuda,cudnn] [--way eager,graph,nhwc,compile]

SDLF reads the networks of scripts/compare-onnxruntime.py from FOLDER (they are exported there if they are not yet) and replays one
captured graph. PyTorch runs them in float64, float32 with and without TF32, and float16, and of its ways the fastest counts:
eager, a CUDA graph, a CUDA graph channels last, and compiled, within a CUDA graph; cuDNN may race its algorithms. Both are timed on data that lie
on the device, five runs after each other before the host waits, the median of fifteen such. cudnn takes the algorithms that won a
race of its own. SDLF's fp16 stores float16 where its plan says so (docs/guides/cuda-storage.md), with float32 sums; PyTorch's stores float16.

A line for each network, batch and mode: milliseconds of each, PyTorch's best, and its ratio to `cuda`. Needs torch and torchvision with CUDA,
and onnx for networks that are not there yet.
"""
import copy
import json
import os
import statistics
import sys
import tempfile

import comparing
import imagenet

MODES = ["fp64", "fp32", "tf32", "fp16"]


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--folder", default=os.path.join(tempfile.gettempdir(), "sdlf-onnx"), help="where the ONNX files are")
    parser.add_argument("--net", "--nets", type=comparing.texts, metavar="NAME,...", default="vgg16,mobilenet_v2,resnet18",
                        help="torchvision's names, and timm.NAME")
    parser.add_argument("--batch", "--batches", type=comparing.counts, metavar="N,...", default="1,32", help="pictures at a time")
    parser.add_argument("--math", "--modes", type=comparing.one_of(*MODES), metavar="MODE,...", default=",".join(MODES),
                        help="fp64 is float64, of MobileNetV2 one by one alone")
    parser.add_argument("--calculator", "--calculators", type=comparing.texts, metavar="NAME,...", default="cuda,cudnn",
                        help="SDLF's; ratios are to the first")
    parser.add_argument("--way", "--ways", type=comparing.one_of("eager", "graph", "nhwc", "compile"), metavar="WAY,...",
                        default="eager,graph,nhwc,compile", help="PyTorch's, of which the fastest counts")
    comparing.Record.arguments(parser)
    return parser.parse_args()


def wanted(options):
    """(network, batch, mode); float64 of MobileNetV2 one by one alone."""
    for net in options.net:
        for batch in options.batch:
            for mode in options.math:
                if mode != "fp64" or (net == "mobilenet_v2" and batch == 1):
                    yield net, batch, mode


# ---- SDLF ----

def sdlf_milliseconds(options, calculator, net, batch, mode):
    command = [options.sdlf, "bench", "model", imagenet.exported(net, options.folder), "--json", "--calculator", calculator, "--batch", str(batch),
               "--repeats", "15", "--together", "5"]
    command += ["--dtype", "float64"] if mode == "fp64" else ["--math", mode]
    with tempfile.TemporaryDirectory() as folder:
        if calculator == "cudnn":
            command += ["--plan-file", os.path.join(folder, "plan.json")]
        try:
            return json.loads(comparing.run(command))["seconds"] * 1e3
        except comparing.Failed as failed:  # a calculator that is not there leaves its column empty
            print(failed, file=sys.stderr)
            return float("nan")


# ---- PyTorch ----

def timed(torch, run):
    for _ in range(5):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(15):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for _ in range(5):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 5)
    return statistics.median(times)


def captured(torch, run):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def pytorch_way(torch, network, x, way):
    if way == "eager":
        return lambda: network(x)
    if way == "nhwc":  # a copy: the other ways keep their layout
        network, x = copy.deepcopy(network).to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if way == "compile":
        torch._dynamo.reset()
        network = torch.compile(network)
        for _ in range(3):
            network(x)
    return captured(torch, lambda: network(x))


def pytorch_milliseconds(torch, options, net, batch, mode):
    """The best of the ways, and which it was."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    dtype = {"fp64": torch.float64, "fp16": torch.float16}.get(mode, torch.float32)
    network, size = imagenet.network_of(net)
    network = network.to("cuda", dtype).eval()
    x = torch.randn(batch, 3, size, size, device="cuda", dtype=dtype)
    best, name = float("inf"), ""
    with torch.no_grad():
        for way in options.way:
            try:
                found = timed(torch, pytorch_way(torch, network, x, way))
            except Exception as error:  # a way that PyTorch has not for this one
                print(f"{net} {mode} {way}: {str(error)[:160]}", file=sys.stderr)
                continue
            if found < best:
                best, name = found, way
    return best, name


def main():
    options = arguments()
    torch = comparing.need("torch")
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here")
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}; PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}; milliseconds")
    calculators = options.calculator
    record = comparing.Record(options, "ms")
    print(f"{'network':<14} {'batch':>5} {'mode':<5} " + " ".join(f"{c:>9}" for c in calculators) + f" {'PyTorch':>9} {'way':<8} {'ratio':>6}")
    for net, batch, mode in wanted(options):
        ours = [sdlf_milliseconds(options, c, net, batch, mode) for c in calculators]
        theirs, way = pytorch_milliseconds(torch, options, net, batch, mode)
        print(f"{net:<14} {batch:>5} {mode:<5} " + " ".join(f"{t:>9.4f}" for t in ours) + f" {theirs:>9.4f} {way:<8} {theirs / ours[0]:>6.2f}",
              flush=True)
        record.add(f"{net}, batch {batch}, {mode}", ours[0], theirs, comparing.named("PyTorch", torch, "graph-nhwc" if way == "nhwc" else way))
    record.write()


if __name__ == "__main__":
    main()
