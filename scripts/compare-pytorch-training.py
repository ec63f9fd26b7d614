#!/usr/bin/env python3
"""Epochs of simple_cnn, here and in PyTorch: one run, one machine, the same training of the same network.

    scripts/compare-pytorch-training.py [--sdlf build/sdlf] [--device cuda|cpu] [--batch 16,64,128,1024] [--math fp32,tf32,bf16]
                                        [--way eager,nhwc,compile,graph,graph-nhwc,graph-compile] [--json FILE]

Both programs start from the same weights (sdlf's, for seed 1), take the same samples in the same order (that of sdlf_shuffle_order), the
shorter last batch too, and train with SGD, momentum 0.9, a constant rate and the mean cross-entropy of each batch. Their losses over
the last epoch stand in the table: where they differ by more than rounding, something else was trained, and the script fails.

`sdlf train` runs by itself and tells the seconds of each epoch. PyTorch holds the data set on the device as uint8; a step takes its
part of the order, gathers and normalises the samples, runs forward and backward, updates the weights, and adds to the sum of losses; the
host waits at the epoch's end. Making the order is left out of its time, and is part of sdlf's. Its ways:

    eager          as it is written
    nhwc           channels last
    compile        forward and loss by torch.compile
    graph          the whole step a CUDA graph; graph-nhwc and graph-compile: that of the two above

tf32 and bf16 are torch.backends' TF32 and torch.autocast with float32 weights; the CPU computes fp32. The programs take turns, --rounds
times; a figure is the median over all epochs but the first of each turn. To pin both to some processors, start this with taskset.

A line for each batch and mode: milliseconds of an epoch of each, the way that was PyTorch's fastest, and what all ways took. Needs torch.
"""
import gzip
import json
import math
import os
import statistics
import sys
import tempfile
import time

import comparing

MODES = ["fp32", "tf32", "bf16"]
WAYS = ["eager", "nhwc", "compile", "graph", "graph-nhwc", "graph-compile"]
SEED, STREAM_SHUFFLE = 1, 1  # sdlf's default, and SDLF_STREAM_SHUFFLE of <sdlf/random.h>
RATE, MOMENTUM = 0.01, 0.9
ALIKE = {"fp32": 0.01, "tf32": 0.02, "bf16": 0.05}  # of the loss: sums in another order, and rounded factors, over an epoch or more
TORCH_NAMES = {"conv2d": "0", "fully_connected": "4", "fully_connected_2": "6"}  # in the nn.Sequential below


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="where both compute")
    parser.add_argument("--batch", "--batches", type=comparing.counts, metavar="N,...", default="16,64,128,1024", help="samples a step")
    parser.add_argument("--math", "--modes", type=comparing.one_of(*MODES), metavar="MODE,...", default=None,
                        help="default: all; fp32 on the CPU")
    parser.add_argument("--way", "--ways", type=comparing.one_of(*WAYS), metavar="WAY,...", default=None,
                        help="PyTorch's, of which the fastest counts; default: all, without graphs on the CPU")
    parser.add_argument("--data", metavar="DIR", help="MNIST's files; default: pictures that are made up")
    parser.add_argument("--samples", type=comparing.count, metavar="N", default=60000, help="of an epoch")
    parser.add_argument("--epochs", type=comparing.count, metavar="N", default=4, help="of a turn, 2 or more")
    parser.add_argument("--rounds", type=comparing.count, metavar="N", default=1, help="turns of each")
    parser.add_argument("--threads", type=comparing.count, metavar="N", default=len(os.sched_getaffinity(0)), help="of both, on the CPU")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    options.math = options.math or (["fp32"] if on_cpu else MODES)
    options.way = options.way or [way for way in WAYS if not (on_cpu and way.startswith("graph"))]
    if options.epochs < 2:
        parser.error("--epochs: the first of a turn is not counted, so there must be 2 or more")
    if on_cpu and options.math != ["fp32"]:
        parser.error("--math: the CPU computes fp32 alone")
    if on_cpu and any(way.startswith("graph") for way in options.way):
        parser.error("--way: there are no CUDA graphs on the CPU")
    return options


# ---- the data and their order ----

def idx(np, folder, name):
    """The array in an IDX file of bytes, or in that file packed by gzip."""
    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, "rb") as file:
            found = file.read()
    elif os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as file:
            found = file.read()
    else:
        sys.exit(f"{folder} has neither {name} nor {name}.gz")
    rank = found[3]
    shape = np.frombuffer(found, ">u4", rank, 4).astype(int)
    return np.frombuffer(found, np.uint8, offset=4 + 4 * rank).reshape(shape)


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes())


def pictures(np, options):
    """(M,28,28) and (M) uint8: MNIST's first, or a pattern for each of ten classes under noise."""
    if options.data:
        names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
        images, labels = (idx(np, options.data, name)[: options.samples] for name in names)
        if len(images) < options.samples:
            sys.exit(f"{options.data} has {len(images)} samples; --samples asks for {options.samples}")
        return images.copy(), labels.copy()  # PyTorch wants arrays that may be written
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 10, options.samples).astype(np.uint8)
    labels[: min(10, options.samples)] = np.arange(min(10, options.samples))
    patterns = rng.integers(0, 60, (10, 28, 28))
    return (patterns[labels] + rng.integers(0, 196, (options.samples, 28, 28))).astype(np.uint8), labels


def philox(np, seed, index, stream, step):
    """sdlf_philox4x32 of <sdlf/random.h> for an array of indices: four arrays of words."""
    low = np.uint64(0xFFFFFFFF)
    counter = [index & low, index >> np.uint64(32), np.full_like(index, stream), np.full_like(index, step)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [(second >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]), second & low,
                   (first >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def order(np, count, epoch):
    """sdlf_shuffle_order: samples sorted by 64-bit keys."""
    words = philox(np, SEED, np.arange(count, dtype=np.uint64), STREAM_SHUFFLE, epoch)
    return np.argsort((words[1] << np.uint64(32)) | words[0], kind="stable")


# ---- SDLF ----

def sdlf_train(options, folder, batch, *more):
    return [options.sdlf, "train", "--net", "simple_cnn", "--data", f"mnist:{folder}", "--no-test", "--quiet", "--batch", str(batch),
            "--seed", str(SEED), "--schedule", "constant", *more]


def first_weights(np, options, folder, count):
    """What sdlf begins with, by PyTorch's names, and how it normalises: of a training whose steps change nothing."""
    path = os.path.join(folder, "first.safetensors")
    comparing.run(sdlf_train(options, folder, count, "--epochs", "1", "--learning-rate", "1e-12", "--out", path,
                             "--calculator", options.device))
    with open(path, "rb") as file:
        found = file.read()
    end = 8 + int.from_bytes(found[:8], "little")
    header = json.loads(found[8:end])
    weights = {}
    for name, entry in header.items():
        layer, _, kind = name.rpartition(".")
        if layer not in TORCH_NAMES or kind not in ("weight", "bias"):
            continue
        begin, finish = entry["data_offsets"]
        weights[f"{TORCH_NAMES[layer]}.{kind}"] = np.frombuffer(found[end + begin:end + finish], np.float32).reshape(entry["shape"]).copy()
    return weights, json.loads(header["__metadata__"]["sdlf.normalization"])


def sdlf_turn(options, folder, batch, mode):
    """Seconds of each epoch, and the last one's loss."""
    log = os.path.join(folder, "log.json")
    more = ["--threads", str(options.threads)] if options.device == "cpu" else ["--math", mode]
    comparing.run(sdlf_train(options, folder, batch, "--epochs", str(options.epochs), "--learning-rate", str(RATE), "--no-save",
                             "--calculator", options.device, "--log", log, "--log-steps", "0", *more))
    with open(log, encoding="utf-8") as file:
        epochs = [line for line in map(json.loads, file) if line["event"] == "epoch"]
    return [epoch["seconds"] for epoch in epochs], epochs[-1]["loss"]


# ---- PyTorch ----

class Training:
    """simple_cnn in PyTorch, trained in one of its ways."""

    def __init__(self, torch, options, way, mode, data, weights):
        self.torch, self.device, self.way, self.mode = torch, options.device, way, mode
        self.memory = torch.channels_last if way.endswith("nhwc") else torch.contiguous_format
        images, labels, self.mean, self.scale = data
        self.images = torch.from_numpy(images).unsqueeze(1).to(self.device)
        self.labels = torch.from_numpy(labels.astype("int64")).to(self.device)
        self.order = torch.zeros(len(labels), dtype=torch.int64, device=self.device)
        self.cursor = torch.zeros((), dtype=torch.int64, device=self.device)
        self.loss = torch.zeros((), dtype=torch.float64, device=self.device)
        nn = torch.nn
        self.net = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                 nn.Linear(32 * 14 * 14, 1024), nn.ReLU(), nn.Linear(1024, 10))
        self.net.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        self.net.to(self.device, memory_format=self.memory)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=RATE, momentum=MOMENTUM)
        self.forward = self.forward_and_loss
        if way.endswith("compile"):
            torch._dynamo.reset()
            self.forward = torch.compile(self.forward_and_loss, dynamic=False)
        self.replay = {}

    def forward_and_loss(self, x, labels):
        with self.torch.autocast(self.device, self.torch.bfloat16, enabled=self.mode == "bf16"):
            return self.torch.nn.functional.cross_entropy(self.net(x).float(), labels)

    def step(self, batch):
        torch = self.torch
        rows = self.order.index_select(0, self.cursor + torch.arange(batch, device=self.device))
        x = (self.images.index_select(0, rows).float() - self.mean) * self.scale
        loss = self.forward(x.contiguous(memory_format=self.memory), self.labels.index_select(0, rows))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=not self.way.startswith("graph"))
        self.loss += loss.detach() * batch
        self.cursor += batch

    def capture(self, batch):
        """Make a CUDA graph of a step, and undo what the steps before it did."""
        torch = self.torch
        before = [parameter.detach().clone() for parameter in self.net.parameters()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.cursor.zero_()
                self.step(batch)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        self.cursor.zero_()
        with torch.cuda.graph(graph):
            self.step(batch)
        with torch.no_grad():
            for parameter, value in zip(self.net.parameters(), before):
                parameter.copy_(value)
                self.optimizer.state[parameter]["momentum_buffer"].zero_()
        self.replay[batch] = graph

    def prepare(self, batches):
        """All that is set up once, outside of the time."""
        if self.way.startswith("graph"):
            for batch in batches:
                self.capture(batch)

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def epoch(self, batches, wanted):
        """Seconds, and the mean loss."""
        self.order.copy_(self.torch.from_numpy(wanted))
        self.cursor.zero_()
        self.loss.zero_()
        self.wait()
        start = time.perf_counter()
        for batch in batches:
            if batch in self.replay:
                self.replay[batch].replay()
            else:
                self.step(batch)
        self.wait()
        return time.perf_counter() - start, float(self.loss) / sum(batches)


def pytorch_turn(torch, options, way, mode, batch, data, weights, orders):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
    count = len(data[1])
    batches = [min(batch, count - first) for first in range(0, count, batch)]
    training = Training(torch, options, way, mode, data, weights)
    training.prepare(sorted(set(batches)))
    found = [training.epoch(batches, wanted) for wanted in orders]
    return [seconds for seconds, _ in found], found[-1][1]


# ---- both ----

def compared(torch, options, folder, data, weights, orders, batch, mode):
    """Times of all turns: {"sdlf": [...], way: [...]}, and losses likewise; ways that PyTorch has not for this are left out, and told."""
    times, losses = {"sdlf": []}, {}
    ways = list(options.way)
    for _ in range(options.rounds):
        seconds, losses["sdlf"] = sdlf_turn(options, folder, batch, mode)
        times["sdlf"] += seconds[1:]
        for way in list(ways):
            try:
                seconds, losses[way] = pytorch_turn(torch, options, way, mode, batch, data, weights, orders)
            except Exception as error:  # no compiler, no memory
                print(f"batch {batch} {mode}: {way} did not run: {str(error).strip().splitlines()[0][:160]}", file=sys.stderr)
                ways.remove(way)
                continue
            times.setdefault(way, []).extend(seconds[1:])
    return times, losses


def row(batch, mode, times, losses):
    medians = {name: statistics.median(found) for name, found in times.items()}
    theirs = {name: seconds for name, seconds in medians.items() if name != "sdlf"}
    way = min(theirs, key=theirs.get) if theirs else None
    own = losses["sdlf"]
    unlike = [name for name, loss in losses.items() if not abs(loss - own) <= ALIKE[mode] * max(abs(own), 0.01)]
    return {"batch": batch, "math": mode, "sdlf_seconds": medians["sdlf"], "pytorch_seconds": theirs, "way": way,
            "ratio": theirs[way] / medians["sdlf"] if way else None, "losses": losses, "unlike": unlike}


def print_row(found):
    if found["way"] is None:
        print(f"{found['batch']:>6} {found['math']:<5} {found['sdlf_seconds'] * 1e3:>9.1f} {'-':>9}", flush=True)
        return
    best, way = found["pytorch_seconds"][found["way"]], found["way"]
    ways = ", ".join(f"{name} {seconds * 1e3:.1f}" for name, seconds in found["pytorch_seconds"].items())
    print(f"{found['batch']:>6} {found['math']:<5} {found['sdlf_seconds'] * 1e3:>9.1f} {best * 1e3:>9.1f} {way:<13} {found['ratio']:>6.2f} "
          f"{found['losses']['sdlf']:>8.4f} {found['losses'][way]:>8.4f}  {ways}", flush=True)


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    np, torch = comparing.need("numpy"), comparing.need("torch")
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here; --device cpu compares on the CPU")
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    else:
        torch.backends.cudnn.benchmark = True
    machine = f"{options.threads} CPU threads" if options.device == "cpu" else torch.cuda.get_device_name()
    print(f"simple_cnn, an epoch of {options.samples:,} samples; {machine}; PyTorch {torch.__version__}; milliseconds, {options.epochs - 1} epochs "
          f"in {options.rounds} turn(s) of each")
    print(f"{'batch':>6} {'mode':<5} {'sdlf':>9} {'PyTorch':>9} {'way':<13} {'ratio':>6} {'loss':>8} {'theirs':>8}  all ways")
    rows = []
    images, labels = pictures(np, options)
    orders = [order(np, options.samples, epoch) for epoch in range(options.epochs)]
    with tempfile.TemporaryDirectory() as folder:
        write_idx(os.path.join(folder, "train-images-idx3-ubyte"), images)
        write_idx(os.path.join(folder, "train-labels-idx1-ubyte"), labels)
        try:
            weights, normal = first_weights(np, options, folder, min(options.samples, 1024))
            data = (images, labels, normal["mean"], normal["scale"])
            for mode in options.math:
                for batch in options.batch:
                    rows.append(row(batch, mode, *compared(torch, options, folder, data, weights, orders, batch, mode)))
                    print_row(rows[-1])
        except comparing.Failed as failed:
            sys.exit(str(failed))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"samples": options.samples, "device": options.device, "machine": machine, "threads": options.threads,
                       "pytorch": torch.__version__, "epochs": options.epochs, "rounds": options.rounds, "rows": rows}, file, indent=2)
            file.write("\n")
    for found in rows:
        for name in found["unlike"]:
            print(f"batch {found['batch']} {found['math']}: {name} ended with a loss of {found['losses'][name]:.6g}, sdlf with "
                  f"{found['losses']['sdlf']:.6g}: they did not train alike", file=sys.stderr)
    sys.exit(any(found["unlike"] or math.isnan(found["sdlf_seconds"]) for found in rows))


if __name__ == "__main__":
    main()
