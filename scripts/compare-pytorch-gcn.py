#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One graph convolution with log-softmax, SDLF and PyTorch: one run, one machine, the same threads, sizes and precision.

    scripts/compare-pytorch-gcn.py [--sdlf build/sdlf] [--calculator cpu|cuda] [--threads N] [--graph uniform,rmat,hub,snap:FILE]
                                   [--hidden 16,32] [--repeats N]

Both compute log_softmax(A (X W)) with 128 features and --hidden outputs per node. PyTorch's A is a CSR tensor with self loops, from the
same file, or drawn by the same rule (its draws differ); `hub` is an edge list created here, in which one node has a tenth of all edges.

On the CPU the median of whole runs is reported, PyTorch's in eager mode; OMP_PROC_BIND=true pins the threads of both to CPU cores. On a
GPU every figure is the time of one run among many queued one after another, between two events or two clock readings: X W (PyTorch's is
cuBLAS's), A H (cuSPARSE's), and the whole, PyTorch's eagerly and as a replayed CUDA graph.
"""
import gzip
import os
import random
import statistics
import tempfile
import time
import warnings

import comparing

NODES, EDGES = 281903, 2312497
TOGETHER = 20  # runs on a GPU between two events
PROCESSORS = os.sched_getaffinity(0)


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--calculator", default="cpu", choices=("cpu", "cuda"), help="where both compute")
    parser.add_argument("--threads", type=comparing.count, metavar="N", default=len(os.sched_getaffinity(0)),
                        help="of both programs, on the CPU")
    parser.add_argument("--graph", "--graphs", type=comparing.texts, metavar="NAME,...", default="uniform,rmat",
                        help="uniform, rmat, hub, snap:FILE")
    parser.add_argument("--hidden", type=comparing.counts, metavar="N,...", default="16", help="outputs of a node")
    parser.add_argument("--repeats", type=comparing.count, metavar="N", default=15, help="samples, whose median is taken")
    return parser.parse_args()


def run_sdlf(options, graph, dtype, hidden, *more):
    """The report of `sdlf gcn infer`."""
    command = [options.sdlf, "gcn", "infer", "--json", "--graph", graph, "--dtype", dtype, "--calculator", options.calculator,
               "--hidden", str(hidden), "--repeats", str(options.repeats), *more]
    if options.calculator == "cpu":
        command += ["--threads", str(options.threads)]
    return comparing.report(command, preexec_fn=lambda: os.sched_setaffinity(0, PROCESSORS))  # not the affinity of PyTorch's thread


def rmat_edges(torch):
    """R-MAT: chooses a quarter of the matrix with probabilities 0.57, 0.19, 0.19, 0.05, then a quarter of that quarter, and so on."""
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


def write_hub(path):
    """One node with a tenth of all edges, and the rest drawn uniformly."""
    draw = random.Random(1)
    with open(path, "w", encoding="ascii") as file:
        file.write(f"# Nodes: {NODES}\n")
        for edge in range(EDGES):
            start = NODES // 2 if edge % 10 == 0 else draw.randrange(NODES)
            file.write(f"{start}\t{draw.randrange(NODES)}\n")


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


def operands(torch, structure, dtype, hidden, device):
    rows, columns, nodes = structure
    own = torch.arange(nodes)
    index = torch.stack([torch.cat([rows, own]), torch.cat([columns, own])])
    matrix = torch.sparse_coo_tensor(index, torch.rand(index.shape[1], dtype=dtype), (nodes, nodes)).coalesce().to_sparse_csr()
    x, w = torch.rand(nodes, 128, dtype=dtype), torch.rand(128, hidden, dtype=dtype)
    return matrix.to(device), x.to(device), w.to(device)


def milliseconds_on_cpu(torch, options, matrix, x, w):
    times = []
    for run in range(options.repeats + 3):
        start = time.perf_counter()
        torch.nn.functional.log_softmax(matrix @ (x @ w), 1)
        if run >= 3:
            times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def milliseconds_on_gpu(torch, options, compute):
    times = []
    for run in range(options.repeats + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(TOGETHER):
            compute()
        end.record()
        torch.cuda.synchronize()
        if run >= 3:
            times.append(start.elapsed_time(end) / TOGETHER)
    return statistics.median(times)


def replayed(torch, compute):
    """A CUDA graph of it, or None if it cannot be captured."""
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                compute()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            compute()
        return graph.replay
    except RuntimeError:
        torch.cuda.synchronize()
        return None


def compare_on_cpu(torch, options, graph, structure, hidden):
    for dtype, kind in (("f64", torch.float64), ("f32", torch.float32)):
        ours = run_sdlf(options, graph, dtype, hidden)["ms"]
        theirs = milliseconds_on_cpu(torch, options, *operands(torch, structure, kind, hidden, "cpu"))
        print(f"{os.path.basename(graph):<18} {dtype:<5} {hidden:>5} {ours:8.1f} {theirs:8.1f} {theirs / ours:6.2f}x", flush=True)


def compare_on_gpu(torch, options, graph, structure, hidden):
    log_softmax = torch.nn.functional.log_softmax
    for dtype, kind in (("f64", torch.float64), ("f32", torch.float32)):
        ours, apart = (run_sdlf(options, graph, dtype, hidden, *more) for more in ((), ("--no-fusion",)))
        matrix, x, w = operands(torch, structure, kind, hidden, "cuda")
        h = x @ w
        parts = [milliseconds_on_gpu(torch, options, part) for part in (lambda: x @ w, lambda: matrix @ h)]
        eager = milliseconds_on_gpu(torch, options, lambda: log_softmax(matrix @ (x @ w), 1))
        graphed = replayed(torch, lambda: log_softmax(matrix @ (x @ w), 1))
        graphed = milliseconds_on_gpu(torch, options, graphed) if graphed else float("nan")
        gemm, spmm = (step["ms"] for step in apart["steps"][:2])
        best = min(eager, graphed) if graphed == graphed else eager
        print(f"{os.path.basename(graph):<18} {dtype:<5} {hidden:>5}  {gemm:8.4f} {parts[0]:8.4f}  {spmm:8.4f} {parts[1]:8.4f} "
              f"{parts[1] / spmm:6.2f}x  {ours['queued_ms']:8.4f} {eager:8.4f} {graphed:8.4f} {best / ours['queued_ms']:6.2f}x",
              flush=True)


def main():
    options = arguments()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch = comparing.need("torch")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    on_gpu = options.calculator == "cuda"
    where = torch.cuda.get_device_name() if on_gpu else f"{options.threads} CPU threads"
    print(f"log_softmax(A (X W)), 128 -> hidden, {where}, median ms; PyTorch {torch.__version__}")
    if on_gpu:
        print(f"{'':<31}{'X W':>10} {'PyTorch':>8} {'A H':>9} {'PyTorch':>8} {'ratio':>7} {'whole':>9} {'eager':>8} {'graph':>8} {'ratio':>7}")
    else:
        print(f"{'graph':<18} {'dtype':<5} {'width':>5} {'SDLF':>8} {'PyTorch':>8} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for graph in options.graph:
            if graph == "hub":
                graph = f"snap:{folder}/hub"
                write_hub(f"{folder}/hub")
            structure = edges_of(torch, graph)
            for hidden in options.hidden:
                (compare_on_gpu if on_gpu else compare_on_cpu)(torch, options, graph, structure, hidden)


if __name__ == "__main__":
    main()
