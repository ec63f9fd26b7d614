#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare the cuda calculator's convolutions with cuDNN, on all workloads of `sdlf bench conv`, and print tables in Markdown.

    scripts/compare-convolutions.py [--sdlf build/sdlf] [--workload study,networks] [--batch 1,32]
                                    [--math fp32,tf32] [--calculator cuda] [--against cudnn] [--seconds 0.03] [--side N]
                                    [--torch] [--each] [--no-check]

`auto` is a plan's choice; `cudnn` is the cudnn calculator's choice, on the same operands, in replayed CUDA graphs. With --torch each convolution
is also run by PyTorch in a CUDA graph, in NCHW and channels last, with cuDNN's own search (torch.backends.cudnn.benchmark), and the faster of the
two counts. Ratios above 1: auto is faster. --each lists the convolutions where it is not. A network's row is the sum over its layers; the study's,
over three strides. A competitor that did not run all convolutions of a row has no sum in it; the missing ones and the reasons are listed below,
and are not counted. The exit status is 1 if a result was wrong, or a run was incomplete.
"""
import json
import statistics
import sys

import comparing

SDLF = "auto"


def measure(arguments, workload, batch, math):
    """The report of one run, and whether it succeeded: the report is written even if a rung is wrong."""
    words = [arguments.sdlf, "bench", "conv", "--calculator", arguments.calculator, "--against", arguments.against, "--rung", "auto",
             "--rung", arguments.against + ":auto", "--workload", workload, "--batch", str(batch), "--math", math,
             "--seconds", str(arguments.seconds), "--repeats", "9", "--json", "-"]
    if arguments.no_check:
        words.append("--no-check")
    if arguments.side:
        words += ["--side", str(arguments.side)]
    done = comparing.attempt(words)
    if not done.stdout:
        sys.exit(done.stderr.strip() or "no output: " + " ".join(words))
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
    report = json.loads(done.stdout)
    return report, done.returncode == 0 and not report["interrupted"]


def torch_seconds(shape, math):
    """PyTorch's time of one convolution: the better layout, the median of 5 replays of a CUDA graph of 2 ms or 100 runs."""
    torch = comparing.need("torch")

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
            return torch.nn.functional.conv2d(x, w, stride=shape["stride"], padding=shape["padding"],
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


def times_of(convolution, against, math, with_torch):
    """{who: seconds} of one convolution, and {who: reason} for those that did not run it."""
    times, refused = {}, {}
    for rung in convolution["rungs"]:
        who = SDLF if rung["rung"] == SDLF else against
        if rung["ran"]:
            times[who] = rung["seconds"]
        else:
            refused[who] = rung["why"]
    if with_torch:
        times["PyTorch"] = torch_seconds(convolution["shape"], math)
    return times, refused


def rows_of(report, arguments, math):
    """{row: {who: seconds}}, for those that ran all convolutions of the row; [(name, {who: seconds}, {who: reason})] for each convolution."""
    rows, lacking, each = {}, {}, []
    for convolution in report["convolutions"]:
        times, refused = times_of(convolution, arguments.against, math, arguments.torch)
        each.append((convolution["name"], times, refused))
        row = convolution["row"] if report["workload"] in ("study", "networks") else report["workload"]
        total = rows.setdefault(row, {})
        lacking.setdefault(row, set()).update(refused)
        for who, seconds in times.items():
            total[who] = total.get(who, 0) + convolution["layers"] * seconds
    for row, total in rows.items():
        for who in lacking[row]:
            total.pop(who, None)
    return rows, each


def shown(seconds):
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 1 else f"{value:.4f}"


def cells(times, rivals):
    own = times.get(SDLF)
    out = [shown(own) if own else "-"]
    for rival in rivals:
        out.append(shown(times[rival]) if rival in times else "-")
        out.append(f"{times[rival] / own:.2f}" if own and rival in times else "-")
    return out


def read_arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--workload", type=comparing.texts, metavar="NAME,...", default="study,networks", help="as sdlf bench conv has them")
    parser.add_argument("--batch", type=comparing.counts, metavar="N,...", default="1,32", help="images at a time")
    parser.add_argument("--math", type=comparing.one_of("fp32", "tf32", "fp16", "bf16"), metavar="MODE,...", default="fp32,tf32",
                        help="math modes, columns each")
    parser.add_argument("--calculator", default="cuda", help="whose choice is `auto`")
    parser.add_argument("--against", default="cudnn", help="the calculator to compare with")
    parser.add_argument("--seconds", type=comparing.seconds, metavar="S", default=0.03, help="of a convolution, about")
    parser.add_argument("--side", type=comparing.count, metavar="N", help="images of another side than the workload's")
    parser.add_argument("--torch", action="store_true", help="PyTorch, too")
    parser.add_argument("--each", action="store_true", help="list the convolutions where another is faster")
    parser.add_argument("--no-check", action="store_true", help="do not compare results with reference's")
    arguments = parser.parse_args()
    if arguments.torch and not set(arguments.math) <= {"fp32", "tf32"}:
        parser.error("--torch runs float32 tensors: --math may be fp32 and tf32 beside it")
    return arguments


class Tally:
    """The notes below the table."""

    def __init__(self, arguments):
        self.rivals = [arguments.against] + (["PyTorch"] if arguments.torch else [])
        self.fastest, self.slower, self.left_out = 0, [], []

    def add(self, where, times, refused):
        self.left_out += [f"{where}: {who} did not run: {why}" for who, why in refused.items()]
        if refused:
            return
        faster = [f"{rival} {1e6 * times[rival]:.1f}" for rival in self.rivals if times[rival] < times[SDLF]]
        self.fastest += not faster
        if faster:
            self.slower.append(f"{where}: auto {1e6 * times[SDLF]:.1f} us, {', '.join(faster)}")

    def print(self, with_each):
        print(f"\nauto is the fastest in {self.fastest} of {self.fastest + len(self.slower)} convolutions that all ran")
        if with_each and self.slower:
            print("\n".join(self.slower))
        if self.left_out:
            print(f"\nnot counted, and not in the sums, {len(self.left_out)}:\n" + "\n".join(self.left_out))


def main():
    arguments = read_arguments()
    tally, whole = Tally(arguments), True
    heads = [f"{math}: auto" if i == 0 else text for math in arguments.math
             for i, text in enumerate([SDLF] + [text for rival in tally.rivals for text in (rival, "ratio")])]
    print("| ms | batch | " + " | ".join(heads) + " |\n|---|---|" + "---|" * len(heads))
    for workload in arguments.workload:
        for batch in arguments.batch:
            found = []
            for math in arguments.math:
                report, well = measure(arguments, workload, batch, math)
                whole = whole and well
                found.append(rows_of(report, arguments, math))
            for row in found[0][0]:
                print(f"| {row} | {batch} | " + " | ".join(
                    cell for rows, _ in found for cell in cells(rows.get(row, {}), tally.rivals)) + " |", flush=True)
            for math, (_, each) in zip(arguments.math, found):
                for name, times, refused in each:
                    tally.add(f"{workload} {name}, batch {batch}, {math}", times, refused)
    tally.print(arguments.each)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
