#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training on several GPUs, SDLF and PyTorch's DistributedDataParallel: one run, one machine, the same networks and batches.

    scripts/compare-ddp.py [--sdlf build/sdlf] [--devices 0,1] [--case resnet50:64,resnet18:64,simple_cnn:1024] [--math bf16]
                           [--way eager,compile,graph] [--json FILE]
    scripts/compare-ddp.py --device cpu --devices 0,0 --case simple_cnn:64 --math fp32

Weak scaling: each GPU has the batch of the case. `sdlf bench scaling --devices` trains on random values, with SGD and momentum;
PyTorch does the same, on a batch in device memory, channels last, with a fused SGD: one process for one GPU without DDP, and one for
each of them with it, by torchrun and NCCL (on a CPU: gloo). Its modes, of which the fastest counts for each number of GPUs: eager;
compile, by torch.compile; graph, the whole step, all-reduces included, as a CUDA graph. bf16 is torch.autocast with float32 weights,
and SDLF's --math bf16. A figure is the median of --repeats times --steps steps, of the slowest rank.

Prints a line of a Markdown table for each case: samples a second on one device and on all, the speed-up, and the ratio of both
programs on all. Needs torch.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import comparing

WAYS = ["eager", "compile", "graph"]
WARM = 12  # warm-up steps; DDP rebuilds its buckets after the first, and a graph needs 11
SHAPES = {"resnet18": ((3, 224, 224), 1000), "resnet50": ((3, 224, 224), 1000), "simple_cnn": ((1, 28, 28), 10)}


def case(text):
    """`resnet50:64` as ("resnet50", 64), for type=."""
    net, _, batch = text.partition(":")
    return comparing.one_of(*SHAPES)(net)[0], comparing.count(batch)


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--devices", type=comparing.texts, metavar="LIST", default="0,1", help="as of sdlf train")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="what they are")
    parser.add_argument("--case", "--cases", type=lambda text: [case(word) for word in comparing.texts(text)], metavar="NET:BATCH,...",
                        default="resnet50:64,resnet18:64,simple_cnn:1024", help="samples a step of each device")
    parser.add_argument("--math", choices=["fp32", "tf32", "bf16"], default="bf16", help="of both")
    parser.add_argument("--way", "--ways", type=comparing.one_of(*WAYS), metavar="WAY,...", default=None,
                        help="PyTorch's (default: all; eager,compile on a CPU)")
    parser.add_argument("--steps", type=comparing.count, default=20, help="that are timed together")
    parser.add_argument("--repeats", type=comparing.count, default=7, help="times that this is done")
    parser.add_argument("--timeout", type=comparing.seconds, default=300, help="seconds for one way of PyTorch")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, with all of sdlf's")
    parser.add_argument("--worker", metavar="NET:BATCH:WAY", help="what torchrun runs; prints seconds of a step")
    options = parser.parse_args()
    if len(options.devices) < 2 and not options.worker:
        parser.error("argument --devices: expected two at least")
    if options.way is None:
        options.way = WAYS if options.device == "cuda" else WAYS[:2]
    if options.device == "cpu" and "graph" in options.way:
        parser.error("argument --way: graphs are a GPU's")
    return options


# ---- PyTorch, in a process for each device ----

def resnet(torch, bottleneck, depths):
    nn = torch.nn

    def convolution(inputs, outputs, kernel, stride=1):
        return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            self.outputs = 4 * width if bottleneck else width
            if bottleneck:
                parts = [*convolution(inputs, width, 1), nn.ReLU(inplace=True), *convolution(width, width, 3, stride),
                         nn.ReLU(inplace=True), *convolution(width, self.outputs, 1)]
            else:
                parts = [*convolution(inputs, width, 3, stride), nn.ReLU(inplace=True), *convolution(width, width, 3)]
            self.trunk = nn.Sequential(*parts)
            self.side = nn.Sequential(*convolution(inputs, self.outputs, 1, stride)) if stride > 1 or inputs != self.outputs else nn.Identity()

        def forward(self, x):
            return torch.relu_(self.trunk(x) + self.side(x))

    layers = [*convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            layers.append(Block(channels, 64 << stage, 2 if stage > 0 and i == 0 else 1))
            channels = layers[-1].outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def network(torch, name):
    if name != "simple_cnn":
        return resnet(torch, name == "resnet50", (3, 4, 6, 3) if name == "resnet50" else (2, 2, 2, 2))
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32 * 14 * 14, 1024),
                         nn.ReLU(inplace=True), nn.Linear(1024, 10))


def make_step(torch, options, name, batch, way, device, ranks):
    """One training step, as a function."""
    shape, classes = SHAPES[name]
    cuda = options.device == "cuda"
    layout = torch.channels_last
    net = network(torch, name).to(device, memory_format=layout).train()
    if ranks > 1:
        net = torch.nn.parallel.DistributedDataParallel(net, [device.index] if cuda else None, gradient_as_bucket_view=True,
                                                        static_graph=way != "graph")
    run = torch.compile(net, dynamic=False) if way == "compile" else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9, **({"fused": True} if cuda else {}))
    pictures = torch.randn(batch, *shape, device=device).contiguous(memory_format=layout)
    labels = torch.randint(0, classes, (batch,), device=device)

    def step():
        with torch.autocast(options.device, torch.bfloat16, enabled=options.math == "bf16", cache_enabled=way != "graph"):
            loss = torch.nn.functional.cross_entropy(run(pictures).float(), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=ranks == 1)

    return step


def captured(torch, step):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def work(options):
    """One rank of torchrun, or the only process: prints the median seconds of a step."""
    torch = comparing.need("torch")
    name, batch, way = options.worker.split(":")
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    cuda = options.device == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.math == "tf32"
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda", int(options.devices[rank])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // len(options.devices)))
    if ranks > 1:
        torch.distributed.init_process_group("nccl" if cuda else "gloo", **({"device_id": device} if cuda else {}))
    wait = torch.cuda.synchronize if cuda else lambda: None
    side = torch.cuda.Stream() if cuda else None
    with torch.cuda.stream(side):  # for graphs, DDP must be created and warmed up on a side stream
        step = make_step(torch, options, name, int(batch), way, device, ranks)
        for _ in range(WARM):
            step()
        wait()
    if way == "graph":
        step = captured(torch, step)
    times = []
    for _ in range(options.repeats):
        if ranks > 1:
            torch.distributed.barrier()
        wait()
        start = time.perf_counter()
        for _ in range(options.steps):
            step()
        wait()
        took = torch.tensor((time.perf_counter() - start) / options.steps, device=device, dtype=torch.float64 if not cuda else torch.float32)
        if ranks > 1:
            torch.distributed.all_reduce(took, torch.distributed.ReduceOp.MAX)
        times.append(took.item())
    if rank == 0:
        print(json.dumps({"seconds": statistics.median(times)}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # a graph that contains NCCL all-reduces prevents closing its communicator


# ---- both, side by side ----

def ddp_seconds(options, name, batch, ranks):
    """Seconds of a step in the fastest mode, and which one that is."""
    best, best_way = float("inf"), ""
    for way in options.way:
        # pylint: disable=consider-using-with
        words = [os.path.abspath(__file__), "--worker", f"{name}:{batch}:{way}", "--device", options.device, "--devices",
                 ",".join(options.devices), "--math", options.math, "--steps", str(options.steps), "--repeats", str(options.repeats)]
        launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else [sys.executable]
        environment = {**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
        try:
            done = subprocess.run(launch + words, capture_output=True, text=True, check=True, timeout=options.timeout, env=environment)
            found = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])["seconds"]
        except (subprocess.SubprocessError, IndexError) as failed:
            lines = str(getattr(failed, "stderr", "") or failed).strip().splitlines()
            errors = [line for line in lines if "Error" in line]
            print(f"{name} on {ranks}, {way}: {(errors or lines)[-1][:300]}", file=sys.stderr)
            continue
        if found < best:
            best, best_way = found, way
    return best, best_way


def sdlf_report(options, name, batch):
    """The weak-scaling output of `sdlf bench scaling`: its first and last line, and all of it."""
    command = [options.sdlf, "bench", "scaling", "--devices", ",".join(options.devices), "--calculator", options.device, "--net", name, "--batch",
               str(batch), "--steps", str(options.steps), "--repeats", str(options.repeats), "--json"]
    if name != "simple_cnn":
        command += ["--shape", "x".join(map(str, SHAPES[name][0])), "--classes", str(SHAPES[name][1])]
    command += ["--math", options.math] if options.device == "cuda" else []
    report = comparing.report(command)
    return report["weak"][0], report["weak"][-1], report


def main():
    options = arguments()
    if options.worker:
        work(options)
    torch = comparing.need("torch")
    cuda = options.device == "cuda"
    if cuda and torch.cuda.device_count() < len(options.devices):
        sys.exit(f"PyTorch finds {torch.cuda.device_count()} GPUs here, and --devices names {len(options.devices)}")
    count = len(options.devices)
    what = f"{count} times {torch.cuda.get_device_name()}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}" if cuda else f"CPU, {count} ranks"
    print(f"{what}; PyTorch {torch.__version__}; {options.math}; samples a second\n")
    print(f"| network, batch of each | sdlf, 1 | sdlf, {count} | times | PyTorch, 1 | PyTorch, {count} | times | sdlf / PyTorch on {count} |")
    print("|---|---|---|---|---|---|---|---|")
    figures = []
    for name, batch in options.case:
        one, all_, report = sdlf_report(options, name, batch)
        ours = [one["samples_per_second"], all_["samples_per_second"]]
        found = [ddp_seconds(options, name, batch, ranks) for ranks in (1, count)]
        theirs = [batch / found[0][0], count * batch / found[1][0]]
        print(f"| {name}, {batch} | {ours[0]:,.0f} | {ours[1]:,.0f} | {ours[1] / ours[0]:.2f} | {theirs[0]:,.0f} ({found[0][1]}) | "
              f"{theirs[1]:,.0f} ({found[1][1]}) | {theirs[1] / theirs[0] if theirs[0] else 0:.2f} | {ours[1] / theirs[1] if theirs[1] else 0:.2f} |",
              flush=True)
        figures.append({"network": name, "batch": batch, "devices": options.devices, "math": options.math, "sdlf": ours, "pytorch": theirs,
                        "ways": [found[0][1], found[1][1]], "scaling": report})
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
