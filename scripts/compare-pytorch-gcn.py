#!/usr/bin/env python3
"""One graph convolution with log-softmax, here and in PyTorch: one run, one machine, the same threads, sizes and precision.

    scripts/compare-pytorch-gcn.py [--sdlf build/sdlf] [--threads N] [--graphs uniform,rmat,snap:FILE] [--repeats N]

Both compute log_softmax(A (X W)) with 128 features and 16 outputs of a node and report the median of whole runs. PyTorch's A is a CSR
tensor with self loops, of the same file, or drawn by the same rule (its draws differ); its ordinary eager mode is timed. OMP_PROC_BIND=true
keeps the threads of both on processors of their own.
"""
import argparse
import gzip
import json
import os
import statistics
import subprocess
import time

NODES, EDGES = 281903, 2312497
PROCESSORS = os.sched_getaffinity(0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdlf", default="build/sdlf")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--graphs", default="uniform,rmat")
    parser.add_argument("--repeats", type=int, default=15)
    return parser.parse_args()


def sdlf_milliseconds(options, graph, dtype):
    command = [options.sdlf, "gcn", "infer", "--json", "--graph", graph, "--dtype", dtype, "--calculator", "cpu",
               "--threads", str(options.threads), "--repeats", str(options.repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, PROCESSORS))  # not those that PyTorch's thread is bound to
    return json.loads(done.stdout)["ms"]


def rmat_edges(torch):
    """The quarters of the matrix with the chances 0.57, 0.19, 0.19, 0.05, then a quarter of that quarter, and so on."""
    levels = (NODES - 1).bit_length()
    rows, columns = torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    while len(rows) < EDGES:
        row = torch.zeros(EDGES, dtype=torch.long)
        column = torch.zeros(EDGES, dtype=torch.long)
        for _ in range(levels):
            quarter = torch.multinomial(torch.tensor([0.57, 0.19, 0.19, 0.05]), EDGES, replacement=True)
            row, column = 2 * row + (quarter >= 2), 2 * column + quarter % 2
        inside = (row < NODES) & (column < NODES)
        rows, columns = torch.cat([rows, row[inside]]), torch.cat([columns, column[inside]])
    return rows[:EDGES], columns[:EDGES], NODES


def edges_of(torch, graph):
    torch.manual_seed(1)
    if graph == "uniform":
        return torch.randint(0, NODES, (EDGES,)), torch.randint(0, NODES, (EDGES,)), NODES
    if graph == "rmat":
        return rmat_edges(torch)
    path = graph.removeprefix("snap:")
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        pairs = [line.split() for line in file if line.strip() and line[0] not in "#%"]
    both = torch.tensor([[int(start), int(end)] for start, end in pairs])
    ids, numbered = torch.unique(both, return_inverse=True)
    return numbered[:, 0], numbered[:, 1], len(ids)


def pytorch_milliseconds(torch, options, structure, dtype):
    rows, columns, nodes = structure
    own = torch.arange(nodes)
    index = torch.stack([torch.cat([rows, own]), torch.cat([columns, own])])
    matrix = torch.sparse_coo_tensor(index, torch.rand(index.shape[1], dtype=dtype), (nodes, nodes)).coalesce().to_sparse_csr()
    x, w = torch.rand(nodes, 128, dtype=dtype), torch.rand(128, 16, dtype=dtype)
    times = []
    for run in range(options.repeats + 3):
        start = time.perf_counter()
        torch.nn.functional.log_softmax(matrix @ (x @ w), 1)
        if run >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import warnings
    import torch
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    print(f"log_softmax(A (X W)), 128 -> 16, {options.threads} CPU threads, median ms; PyTorch {torch.__version__}")
    print(f"{'graph':<24} {'dtype':<6} {'SDLF':>8} {'PyTorch':>8} {'ratio':>7}")
    for graph in options.graphs.split(","):
        structure = edges_of(torch, graph)
        for dtype, kind in (("f64", torch.float64), ("f32", torch.float32)):
            ours = sdlf_milliseconds(options, graph, dtype)
            theirs = pytorch_milliseconds(torch, options, structure, kind)
            print(f"{os.path.basename(graph):<24} {dtype:<6} {ours:8.1f} {theirs:8.1f} {theirs / ours:6.2f}x", flush=True)


if __name__ == "__main__":
    main()
