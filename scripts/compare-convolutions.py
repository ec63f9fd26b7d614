#!/usr/bin/env python3
"""Hold the cuda calculator's convolutions against cuDNN, on all workloads of `sdlf bench conv`, and print tables in Markdown.

    scripts/compare-convolutions.py [--sdlf build/sdlf] [--workload study,networks] [--batch 1,32]
                                    [--math fp32,tf32] [--calculator cuda] [--against cudnn] [--seconds 0.03] [--side N]
                                    [--torch] [--each] [--no-check]

`auto` is what a plan takes; `cudnn` what the cudnn calculator takes, on the same operands, by replayed recordings. With --torch each
convolution is also run by PyTorch in a CUDA graph, row-major and channels last, with cuDNN's own search on
(torch.backends.cudnn.benchmark), and the faster of the two is taken. Ratios above 1: auto is faster. --each adds the convolutions where it is not.
A network's row is the sum over its layers; of the study, over three strides.
"""
import argparse
import json
import subprocess
import sys


def measure(arguments, workload, batch, math):
    """The report of one run."""
    words = [arguments.sdlf, "bench", "conv", "--calculator", arguments.calculator, "--against", arguments.against, "--rung", "auto",
             "--rung", arguments.against, "--workload", workload, "--batch", str(batch), "--math", math, "--seconds", str(arguments.seconds),
             "--repeats", "9", "--json", "-"]
    if arguments.no_check:
        words.append("--no-check")
    if arguments.side:
        words += ["--side", str(arguments.side)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(done.stderr or "no output: " + " ".join(words))
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
    return json.loads(done.stdout)


def torch_seconds(shape, math):
    """PyTorch's time of one convolution: the better layout, the median of 5 replays of a CUDA graph of 2 ms or 100 runs."""
    import statistics
    import torch
    import torch.nn.functional as functional

    def elapsed(work):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 1e3

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = math == "tf32"
    best = float("inf")
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(shape["x"], device="cuda").contiguous(memory_format=layout)
        w = torch.randn(shape["filters"], device="cuda").contiguous(memory_format=layout)

        def run():
            return functional.conv2d(x, w, stride=shape["stride"], padding=shape["padding"],
                                     dilation=shape["dilation"], groups=shape["groups"])

        with torch.no_grad():
            with torch.cuda.stream(torch.cuda.Stream()):
                run()
                run()
            torch.cuda.synchronize()
            once = elapsed(run)
            count = int(min(100, max(2, 2e-3 / once)))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    run()
        best = min(best, statistics.median([elapsed(graph.replay) / count for _ in range(6)][1:]))
        del graph
    return best


def rows_of(report, math, with_torch):
    """{row: {who: milliseconds}} and the list of (name, {who: microseconds}) of single convolutions."""
    rows, each = {}, []
    for convolution in report["convolutions"]:
        times = {rung["rung"]: rung["seconds"] for rung in convolution["rungs"] if rung["ran"]}
        if with_torch:
            times["PyTorch"] = torch_seconds(convolution["shape"], math)
        each.append((convolution["name"], times))
        row = convolution["row"] if report["workload"] in ("study", "networks") else report["workload"]
        total = rows.setdefault(row, {})
        for who, seconds in times.items():
            total[who] = total.get(who, 0) + convolution["layers"] * seconds
    return rows, each


def shown(seconds):
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.4f}"


def cells(times, rivals):
    if "auto" not in times:
        return ["-"] * (1 + 2 * len(rivals))
    out = [shown(times["auto"])]
    for rival in rivals:
        out += [shown(times[rival]), f"{times[rival] / times['auto']:.2f}"] if rival in times else ["-", "-"]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sdlf", default="build/sdlf")
    parser.add_argument("--workload", default="study,networks")
    parser.add_argument("--batch", default="1,32")
    parser.add_argument("--math", default="fp32,tf32")
    parser.add_argument("--calculator", default="cuda")
    parser.add_argument("--against", default="cudnn")
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--side", type=int)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--no-check", action="store_true")
    arguments = parser.parse_args()
    if arguments.torch and not set(arguments.math.split(",")) <= {"fp32", "tf32"}:
        parser.error("--torch runs float32 tensors: --math may be fp32 and tf32 beside it")
    maths, rivals = arguments.math.split(","), [arguments.against] + (["PyTorch"] if arguments.torch else [])
    heads = [f"{math}: auto" if i == 0 else text for math in maths
             for i, text in enumerate(["auto"] + [text for rival in rivals for text in (rival, "ratio")])]
    print("| ms | batch | " + " | ".join(heads) + " |\n|---|---|" + "---|" * len(heads))
    slower, ran = [], 0
    for workload in arguments.workload.split(","):
        for batch in arguments.batch.split(","):
            found = [rows_of(measure(arguments, workload, batch, math), math, arguments.torch) for math in maths]
            for row in found[0][0]:
                print(f"| {row} | {batch} | " + " | ".join(
                    cell for rows, _ in found for cell in cells(rows.get(row, {}), rivals)) + " |", flush=True)
            for math, (_, each) in zip(maths, found):
                for name, times in each:
                    ran += 1
                    faster = [f"{rival} {1e6 * times[rival]:.1f}" for rival in rivals
                              if rival in times and times[rival] < times.get("auto", float("inf"))]
                    if faster:
                        slower.append(f"{workload} {name}, batch {batch}, {math}: auto "
                                      f"{1e6 * times.get('auto', float('nan')):.1f} us, {', '.join(faster)}")
    print(f"\nauto is the fastest in {ran - len(slower)} of {ran} convolutions")
    if arguments.each:
        print("\n".join(slower))


if __name__ == "__main__":
    main()
