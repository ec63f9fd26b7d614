#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""simple_cnn trained by PyTorch, for scripts/compare-pytorch-training.py.

    scripts/pytorch_training.py DEVICE MODE SAMPLES BATCH ...

compiles the code of mode `compile` for these batches, without training: if TORCHINDUCTOR_CACHE_DIR names a folder, the next process
finds the code there.
"""
import os
import subprocess
import sys
import time

RATE, MOMENTUM = 0.01, 0.9
SHAPES = {"0.weight": (32, 1, 5, 5), "0.bias": (32,), "4.weight": (1024, 6272), "4.bias": (1024,), "6.weight": (10, 1024), "6.bias": (10,)}


class Training:
    """simple_cnn in PyTorch, trained in one of its modes."""

    def __init__(self, torch, device, way, mode, data, weights):
        self.torch, self.device, self.way, self.mode = torch, device, way, mode
        self.memory = torch.channels_last if way.endswith("nhwc") else torch.contiguous_format
        images, labels, self.mean, self.scale = data
        self.images = torch.from_numpy(images).unsqueeze(1).to(device)
        self.labels = torch.from_numpy(labels.astype("int64")).to(device)
        self.order = torch.zeros(len(labels), dtype=torch.int64, device=device)
        self.cursor = torch.zeros((), dtype=torch.int64, device=device)
        self.loss = torch.zeros((), dtype=torch.float64, device=device)
        nn = torch.nn
        self.net = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                 nn.Linear(32 * 14 * 14, 1024), nn.ReLU(), nn.Linear(1024, 10))
        self.net.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
        self.net.to(device, memory_format=self.memory)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=RATE, momentum=MOMENTUM, fused=True)
        self.forward = self.forward_and_loss
        if way.endswith("compile"):
            torch._dynamo.reset()
            self.forward = torch.compile(self.forward_and_loss, dynamic=False)
        self.replay = {}

    def forward_and_loss(self, rows):
        torch = self.torch
        x = (self.images.index_select(0, rows).float() - self.mean) * self.scale
        x = x.contiguous(memory_format=self.memory)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.mode == "bf16"):
            return torch.nn.functional.cross_entropy(self.net(x).float(), self.labels.index_select(0, rows))

    def step(self, batch):
        rows = self.order.index_select(0, self.cursor + self.torch.arange(batch, device=self.device))
        loss = self.forward(rows)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()  # cleared, so that the next backward pass need not accumulate
        self.loss += loss.detach() * batch
        self.cursor += batch

    def capture(self, batch):
        """Capture a CUDA graph of a step, and undo the steps before it."""
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
        """One-time setup, excluded from the time."""
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


def set_mode(torch, mode):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"


def turn(torch, device, way, mode, batches, data, weights, orders):
    """Seconds of each epoch, and the last one's loss."""
    set_mode(torch, mode)
    training = Training(torch, device, way, mode, data, weights)
    training.prepare(sorted(set(batches)))
    found = [training.epoch(batches, wanted) for wanted in orders]
    return [seconds for seconds, _ in found], found[-1][1]


# ---- compiling ahead ----

def compile_ahead(device, samples, cases, folder):
    """Compile for all (mode, batch sizes), each in a parallel process; the code is kept in the folder (or in that
    of TORCHINDUCTOR_CACHE_DIR), for this process too."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # otherwise each has a pool of workers, which all load torch
    commands = [[sys.executable, __file__, device, mode, str(samples), *map(str, batches)] for mode, batches in cases]
    started = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for command in commands]
    for command, process in zip(commands, running):
        _, errors = process.communicate()
        if process.returncode != 0:
            print(f"compiling ahead failed: {' '.join(command[1:])}: {errors.strip().splitlines()[-1:]}", file=sys.stderr)
    print(f"compiled ahead in {time.perf_counter() - started:.1f} s", file=sys.stderr)


def main():
    import numpy as np
    import torch
    device, mode, samples, batches = sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(word) for word in sys.argv[4:]]
    set_mode(torch, mode)
    data = (np.zeros((samples, 28, 28), np.uint8), np.zeros(samples, np.uint8), 0.5, 0.5)
    training = Training(torch, device, "compile", mode, data, {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()})
    for batch in batches:
        training.forward(training.order[:batch]).backward()
    training.wait()


if __name__ == "__main__":
    main()
