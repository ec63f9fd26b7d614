#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the ONNX project's own backend tests through SDLF.

    scripts/onnx-conformance.py --peer build/tests/onnx/onnx_peer [--calculator reference --calculator cpu]
                                [--table docs/reference/onnx-support.md] [--only Conv] [--list failed] [--constants]
                                [--data FOLDER] [--save FILE] [--load FILE]

The tests (a model, inputs and expected outputs each) come with the package `onnx` from PyPI (`pip install onnx`), which regenerates them in
each release since 1.18; without it the script says so and exits with 77. A test belongs to the operator in its name, else to the first node's.
It is

    passed        every element is within 1e-7 + 1e-3 |expected|, as in the ONNX project's own test runner
    unsupported   SDLF rejected the model with a reason
    failed        anything else

Tests with unusable expectations are left out (CORRECTED, which gives the reasons). Of the others some are outside the scope of SDLF, by the
types of their graphs' values and their operators (outside): sequences, optional values and maps, strings, random numbers. The share of the
rest that passes is given as a percentage.

--table writes the page: passed, failed and unsupported for every operator that SDLF knows; columns of calculators that are not
measured now are kept, and marked as of an earlier run. --save writes the outcomes to a file, and --load adds such a file's
outcomes to the table: those of a calculator on another machine. --data names a folder of node tests; a missing one is filled
with the package's. The exit status is 1 if any test failed.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

try:
    import onnx
    import onnx.backend.test
except ImportError:
    print("the package onnx is not there: nothing is tested")
    sys.exit(77)

FOLDER = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "node")


ROUNDED = "its expected output is rounded to float16 after every operation, which moves it by more than the tolerance; SDLF computes in float32"
SHORT = ROUNDED.replace("float16", "bfloat16")
CORNERS = ("its expected output divides by the fractional length scale * input - 1; PyTorch, whose align_corners this is, and onnxruntime "
           "divide by the output's length - 1")
NOISE = "where the result is 0 its expected output has what rounding left of it, which is more than the tolerance"
CORRECTED = {
    "resize_downsample_scales_cubic_align_corners": CORNERS,
    "resize_downsample_scales_linear_align_corners": CORNERS,
    "attention_4d_gqa_with_past_and_present_fp16": ROUNDED,
    "attention_4d_gqa_with_past_and_present_fp16_expanded": ROUNDED,
    "attention_3d_causal_bf16": SHORT,
    "attention_3d_causal_bf16_expanded": SHORT,
    "attention_4d_attn_mask_causal_bf16": SHORT,
    "attention_4d_attn_mask_causal_bf16_expanded": SHORT,
    "attention_4d_causal_bf16": SHORT,
    "attention_4d_causal_bf16_expanded": SHORT,
    "attention_4d_causal_padded_kv_bf16": SHORT,
    "attention_4d_causal_padded_kv_bf16_expanded": SHORT,
    "attention_4d_padded_kv_bf16": SHORT,
    "attention_4d_padded_kv_bf16_expanded": SHORT,
    "dft_inverse": NOISE,
    "dft_inverse_opset19": NOISE,
}


# Operators on values other than numeric tensors, and with random numbers, which differ between programs.
NO_TENSORS = re.compile("Sequence|Optional")
STRINGS = re.compile("String|Regex")
RANDOM = re.compile("Random|Bernoulli|Multinomial")

EARLIER = " Its column is of an earlier run, of the converters as they were then."


def values_and_nodes(graph):
    """All values that the graph declares, and its nodes, including those of subgraphs."""
    values, nodes = [*graph.input, *graph.output, *graph.value_info], list(graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner = values_and_nodes(attribute.g)
                values += inner[0]
                nodes += inner[1]
    return values, nodes


def outside(name, graph):
    """The reason why the test is outside the scope of SDLF; else None."""
    values, nodes = values_and_nodes(graph)
    operators = " ".join(node.op_type for node in nodes)
    kinds = {value.type.WhichOneof("value") for value in values} - {"tensor_type", "sparse_tensor_type", None}
    if kinds or NO_TENSORS.search(operators):
        return "sequences, optional values and maps"
    if STRINGS.search(operators) or any(value.type.tensor_type.elem_type == onnx.TensorProto.STRING for value in values):
        return "strings"
    drops = name.startswith("training_dropout") and "zero_ratio" not in name # the dropped elements are one program's draws
    return "random numbers" if drops or RANDOM.search(operators) else None


def write_message(path, value, info):
    """A tensor, sequence or map as stored in the package's own files."""
    from onnx import numpy_helper
    message = value if isinstance(value, onnx.TensorProto) else None
    if message is None and info.type.HasField("tensor_type"):
        message = numpy_helper.from_array(value, info.name)
    with open(path, "wb") as file: # nothing for values other than tensors: such tests are not run
        file.write(message.SerializeToString() if message is not None else b"")


def generate(root):
    """Write the package's node tests."""
    from onnx.backend.test.case import node
    for case in node.collect_testcases():
        graph = case.model.graph
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = os.path.join(root, case.name, f"test_data_set_{number}")
            os.makedirs(data, exist_ok=True)
            for what, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                for i, (value, info) in enumerate(zip(values, infos)):
                    write_message(os.path.join(data, f"{what}_{i}.pb"), value, info)
        onnx.save(case.model, os.path.join(root, case.name, "model.onnx"))


def cases(root, only):
    """(operator, name, model, folders of data, why it is outside) of every node test."""
    for folder in sorted(glob.glob(os.path.join(root, "test_*"))):
        path = os.path.join(folder, "model.onnx")
        data = sorted(glob.glob(os.path.join(folder, "test_data_set_*")))
        if not os.path.exists(path) or not data or os.path.basename(folder)[5:] in CORRECTED:
            continue
        model = onnx.load(path, load_external_data=False)
        types = [node.op_type for node in model.graph.node]
        standard = all(node.domain in ("", "ai.onnx") for node in model.graph.node)
        if not types or not standard:
            continue
        operator = types[0] if len(set(types)) == 1 else operator_of(os.path.basename(folder), types)
        if only and operator not in only:
            continue
        name = os.path.basename(folder)[5:]
        yield operator, name, path, data, outside(name, model.graph)


def operator_of(name, types):
    """Tests that expand an operator into others are named after it: test_elu_expanded..."""
    if "_expanded" in name:
        return "(spelled out in others)"
    return types[0]


class Peer:
    """A process that runs one test after the other, and is restarted if a test ends it."""

    def __init__(self, words, calculator):
        self.command = [*words, calculator, "1e-3", "1e-7", "-"]
        self.process = None

    def answer(self, path, data):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                            text=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        timer = threading.Timer(120, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write("\t".join([path, *data]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        timer.cancel()
        words = line.strip().split(" ", 1)
        if words[0] in ("passed", "failed", "unsupported"):
            return words[0], words[1] if len(words) > 1 else ""
        self.process.kill()
        code, self.process = self.process.wait(), None
        return "failed", f"the program ended with status {code}, or took more than two minutes"

    def close(self):
        if self.process is not None:
            self.process.communicate()


def run(peer, calculator, part):
    program = Peer(peer, calculator)
    results = [(operator, name, *program.answer(path, data)) for operator, name, path, data, _ in part]
    program.close()
    return results


def run_all(peer, calculator, all_cases, jobs):
    """Outcomes in the order of the cases, which are distributed over several processes in turn."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(lambda i: run(peer, calculator, all_cases[i::jobs]), range(jobs)))
    return [parts[i % jobs][i // jobs] for i in range(len(all_cases))]


def share(results, apart):
    """'1720 of 1778 (96.7%)': the passed ones among the tests that are not outside."""
    inside = [outcome for _, name, outcome, _ in results if name not in apart]
    passed = inside.count("passed")
    return f"{passed} of {len(inside)} ({100 * passed / max(len(inside), 1):.1f}%)"


def known_operators(peer):
    done = subprocess.run([peer, "--operators"], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def count(results):
    counts = collections.defaultdict(collections.Counter)
    for operator, _, outcome, _ in results:
        counts[operator][outcome] += 1
    return counts


def shorten(reason):
    """The error message, without the file's path on this machine."""
    reason = reason.split(".onnx: ", 1)[-1].split(".pb: ", 1)[-1]
    return reason.replace("|", "\\|")[:200]


def kind(reason):
    """The feature that an unsupported test requires."""
    if "training_mode" in reason:
        return "their expected output is what one program's random numbers left"
    if "no tensor" in reason:
        return "sequences and optional values, which are no tensors"
    if re.search("uint64|string", reason):
        return "element types that SDLF has not: uint64 and strings"
    return "an operator that SDLF has, in a type that it has"


def kept_columns(path, calculators):
    """From an existing page: {calculator: (its line, {operator: cell})} for those that are not measured now."""
    try:
        with open(path, encoding="utf-8") as page:
            lines = page.read().splitlines()
    except FileNotFoundError:
        return {}
    header = next((line for line in lines if line.startswith("| operator | opsets |")), "")
    columns = [cell.strip() for cell in header.strip("|").split("|")]
    kept = {}
    for at, calculator in enumerate(columns[2:], 2):
        if calculator in calculators:
            continue
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.count("|") == len(columns) + 1]
        said = next((line for line in lines if line.startswith(f"- `{calculator}`:")), f"- `{calculator}`: not measured now.")
        if EARLIER not in said:
            said += EARLIER
        kept[calculator] = said, {row[0]: row[at] for row in cells}
    return kept


def write_table(path, known, results, calculators, apart):
    rows, reasons = [], []
    kept = kept_columns(path, calculators)
    by_calculator = {c: count(results[c]) for c in calculators}
    operators = sorted(set(known) | {o for c in calculators for o in by_calculator[c] if o in known})
    for operator in operators:
        cells = []
        for c in calculators:
            n = by_calculator[c][operator]
            cells.append(f"{n['passed']} / {n['failed']} / {n['unsupported']}")
        cells += [column.get(operator, "") for _, column in kept.values()]
        rows.append(f"| {operator} | {known[operator]} | " + " | ".join(cells) + " |")
    for operator, name, outcome, why in results[calculators[0]]:
        if operator in known and outcome != "passed":
            reasons.append(f"| {operator} | {name} | {outcome} | {shorten(why)} |")
    totals = {c: collections.Counter(o for op, _, o, _ in results[c] if op in known) for c in calculators}
    others = {c: collections.Counter(o for op, _, o, _ in results[c] if op not in known) for c in calculators}
    head = f"""# ONNX operators

Made by `scripts/onnx-conformance.py --table` with the backend node tests of onnx {onnx.__version__}: for each operator that
SDLF converts the opsets that it is read in, and how many of its tests passed / failed / are unsupported. [onnx.md](onnx.md)
says how models are read.

"""
    with open(path, "w", encoding="utf-8") as out:
        out.write(head)
        for c in calculators:
            t, o = totals[c], others[c]
            out.write(f"- `{c}`: **{share(results[c], apart)} passed** of all tests but those of "
                      f"{', '.join(f'{what} ({n})' for what, n in sorted(collections.Counter(apart.values()).items()))}. "
                      f"Of the tests of these operators {t['passed']} passed, {t['failed']} failed, "
                      f"{t['unsupported']} are unsupported; of all others, most of them for operators that SDLF has not, "
                      f"{o['passed']} passed, {o['failed']} failed.\n")
        for said, _ in kept.values():
            out.write(said + "\n")
        columns = [*calculators, *kept]
        out.write("\n| operator | opsets | " + " | ".join(columns) + " |\n|---|---|" + "---|" * len(columns) + "\n")
        out.write("\n".join(rows) + "\n")
        if reasons:
            kinds = collections.Counter(kind(why) for operator, _, outcome, why in results[calculators[0]]
                                        if operator in known and outcome == "unsupported")
            out.write("\n## What is unsupported, and why\n\n" + "".join(f"- {n}: {what}.\n" for what, n in kinds.most_common()))
            out.write("\n| operator | test | | reason |\n|---|---|---|---|\n")
            out.write("\n".join(reasons) + "\n")
        out.write("\nLeft out:\n\n" + "".join(f"- {name}: {why}.\n" for name, why in CORRECTED.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="build/tests/onnx/onnx_peer", help="the program that runs one test")
    parser.add_argument("--calculator", action="append", help="default: reference and cpu")
    parser.add_argument("--table", help="the page to write")
    parser.add_argument("--only", action="append", help="an operator; default: all")
    parser.add_argument("--list", action="append", default=["failed"], help="outcomes to list one by one")
    parser.add_argument("--constants", action="store_true", help="make every input but the first a constant")
    parser.add_argument("--data", help="the folder of the node tests (default: the package's)")
    parser.add_argument("--save", help="a file for the outcomes")
    parser.add_argument("--load", action="append", default=[], help="a file of outcomes, for the table")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    calculators = arguments.calculator or ["reference", "cpu"]
    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data or (FOLDER if os.path.isdir(FOLDER) else folder)
        if not os.path.isdir(data) or data == folder:
            generate(data)
        return check(arguments, calculators, list(cases(data, arguments.only)))


def check(arguments, calculators, all_cases):
    if not all_cases:
        print(f"onnx {onnx.__version__} has no such node tests: nothing is tested")
        return 77
    known = known_operators(arguments.peer)
    apart = {name: what for _, name, _, _, what in all_cases if what}
    results, bad = {}, 0
    peer = [arguments.peer] + (["--constants"] if arguments.constants else [])
    for calculator in calculators:
        results[calculator] = run_all(peer, calculator, all_cases, arguments.jobs)
        total = collections.Counter(outcome for _, _, outcome, _ in results[calculator])
        mine = collections.Counter(o for op, _, o, _ in results[calculator] if op in known)
        for operator, name, outcome, why in results[calculator]:
            if outcome in arguments.list and (operator in known or outcome == "failed"):
                print(f"{calculator}: {operator}: {name}: {outcome}: {why}")
        print(f"{calculator}: {len(all_cases)} tests: {total['passed']} passed, {total['failed']} failed, "
              f"{total['unsupported']} unsupported; of operators that SDLF has: {mine['passed']} passed, "
              f"{mine['failed']} failed, {mine['unsupported']} unsupported; without sequences, strings and random "
              f"numbers {share(results[calculator], apart)} passed")
        bad += total["failed"]
    if arguments.save:
        with open(arguments.save, "w", encoding="utf-8") as out:
            json.dump(results, out)
    for path in arguments.load:
        with open(path, encoding="utf-8") as file:
            results.update(json.load(file))
    calculators = list(results)
    if arguments.table:
        write_table(arguments.table, known, results, calculators, apart)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
