#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutate small ONNX models field by field, and compare SDLF's results with onnxruntime's.

    scripts/mutate-onnx.py [--peer build/tests/onnx/onnx_peer] [--seed 1] [--cases 2000] [--first 0] [--seconds 600]
                           [--only Conv] [--calculator reference --calculator cpu] [--list refused] [--keep FOLDER] [--all] [--networks]

A model starts as one of the ONNX project's node tests, as one of the models of a node that scripts/compare-operators.py draws, as a drawn
graph that is quantised or has operators of ai.onnx.ml or com.microsoft, or as a random network. One to four things in it change: an
attribute, a size, a type, elements, what is a constant and what an input, which value a node reads, the opset, whether the batch is open;
nodes are appended to its values; a plan may have three samples of a model of one. Case N of a seed is always the same: --first N
--cases 1 runs only it.

Random networks are of 3 to 14 nodes, and what the last block has beyond, as people export them: convolutions with normalisation, activation and residual
sums, groups of few channels, scales by channel, squeeze-excite, pixel and channel shuffles, poolings, channels last in between, attention as separate
operators, samples that are doubled and joined again, classifier heads; some with pairs of QuantizeLinear and DequantizeLinear, some with an open batch,
some of one sample in a plan of three (scripts/mutations/networks.py, blocks.py, attention.py). With --networks there is nothing else, and nothing in
them changes: what plans fuse, fold and lay out is compared with nodes that run one by one. Values stay about 1, so that tolerances are narrow.

    same        every output is that of onnxruntime, or else of the reference evaluator of the package onnx
    refused     SDLF rejects the model with a reason
    lenient     SDLF runs a model that onnxruntime rejects
    differs     an output differs, and the reference evaluator does not agree with SDLF
    unlike      the calculators' results differ
    failed      a model that was built does not run
    broken      a signal, more than five seconds, more than 700 MB, or an error without a message

differs, unlike, failed and broken are findings. Those with NaN, infinities or values beyond 1e9, with discontinuous functions of rounded
values, and in cases where onnxruntime is known to deviate are listed separately ("doubtful") and are no failures, like refusals. The first
three of a kind are described (--all: every one), and --keep leaves their models in a folder. The exit status is 1 after a finding. Needs
numpy, onnx and onnxruntime; without them it says so and exits with 77.
"""
import argparse
import collections
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

try:
    from mutations import judge, programs
    from mutations.changes import change
    from mutations.sources import Networks, Sources
except ImportError as missing:
    print(f"{missing}: nothing is compared")
    sys.exit(77)

FINDINGS = ("differs", "unlike", "failed", "broken")
SCRIPT_FAILED = 3  # exit status of a worker


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="build/tests/onnx/onnx_peer", help="the program that runs models")
    parser.add_argument("--calculator", action="append", help="default: reference and cpu")
    parser.add_argument("--seed", type=int, default=1, help="other models")
    parser.add_argument("--cases", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so long")
    parser.add_argument("--only", action="append", help="an operator; default: all")
    parser.add_argument("--list", action="append", default=[], help="further outcomes to describe")
    parser.add_argument("--all", action="store_true", help="describe every case of a kind, not only three")
    parser.add_argument("--networks", action="store_true", help="only random networks, unchanged")
    parser.add_argument("--keep", help="leave models of findings in this folder")
    arguments = parser.parse_args()
    arguments.calculator = arguments.calculator or ["reference", "cpu"]
    if not os.access(arguments.peer, os.X_OK):
        parser.error(f"--peer {arguments.peer}: there is no such program; build the target onnx_peer")
    return arguments


def judge_case(case, sdlf, folder):
    """(outcome, why, doubtful?)"""
    path = programs.save(case, folder)
    answers = [(peer.calculator, *peer.run(path, folder, case.batch or -case.samples)) for peer in sdlf]
    for calculator, outcome, why in answers:
        if outcome == "broken":
            return outcome, f"{calculator}: {why}", False
    if len({outcome for _, outcome, _ in answers}) > 1:
        return "unlike", "; ".join(f"{c}: {o} {w if o != 'ran' else ''}" for c, o, w in answers), False
    first = answers[0]
    theirs = programs.run_onnxruntime(case)
    if first[1] == "failed" and theirs[0] == "ran" and not (case.samples > 0 and "was expected to be" in first[2]):
        return "failed", f"{first[0]}: {first[2]}", judge.is_doubtful(case, [])
    if first[1] != "ran":
        return ("refused" if theirs[0] == "ran" else "refused by all"), first[2], False
    allowed = judge.tolerance(case)
    for calculator, _, outputs in answers[1:]:
        apart = judge.difference(outputs, first[2], allowed)
        if apart is not None:
            return "unlike", f"{calculator} of {first[0]}: {apart}", judge.is_doubtful(case, outputs)
    if theirs[0] == "ran":
        theirs = "ran", [judge.as_declared(case, outputs) for outputs in theirs[1]]
        apart = judge.difference_of_samples(first[2], theirs[1], allowed)
        if apart is None:
            return "same", "", False
    whole = programs.run_onnxruntime(case, together=True) if case.samples > 0 else ("refused", "")
    if whole[0] == "ran" and judge.difference(first[2], judge.as_declared(case, whole[1][0]), allowed) is None:
        return "same", "", False
    evaluated = programs.run_evaluator(case)
    if evaluated[0] == "ran" and judge.difference_of_samples(first[2], evaluated[1], allowed) is None:
        return "same", "", False
    if theirs[0] == "ran":
        return "differs", apart, judge.is_doubtful(case, sum(theirs[1], first[2]))
    if evaluated[0] == "ran" and case.samples == 0 and "NOT_IMPLEMENTED" in theirs[1]:  # otherwise it accepts invalid models
        apart = judge.difference_of_samples(first[2], evaluated[1], allowed)
        return "differs", "evaluator: " + apart, judge.is_doubtful(case, sum(evaluated[1], first[2]))
    return "lenient", f"{theirs[1]} | {evaluated[1]}", False


def work(arguments, first, sources, pipe, folder):
    """Runs the cases from that one on, reporting line by line: another program may end this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, resource.RLIM_INFINITY))
    sdlf = [programs.Sdlf(arguments.peer, calculator) for calculator in arguments.calculator]
    with os.fdopen(pipe, "w") as out:
        for n in range(first, arguments.first + arguments.cases):
            r = random.Random(f"{arguments.seed} {n}")
            case = sources.draw(r)
            if not arguments.networks:
                change(case, r)
            case.finish()
            out.write(json.dumps({"case": n, "text": str(case)}) + "\n")
            out.flush()
            outcome, why, doubtful = judge_case(case, sdlf, folder)
            if arguments.keep and outcome in FINDINGS:
                to = os.path.join(arguments.keep, f"{arguments.seed}-{n}")
                shutil.copytree(folder, to, dirs_exist_ok=True)
            out.write(json.dumps({"case": n, "outcome": outcome, "why": why, "doubtful": doubtful, "kinds": case.kinds()}) + "\n")
            out.flush()
        for peer in sdlf:
            peer.stop()


class Tally:
    """The outcomes of all cases."""

    def __init__(self, arguments):
        self.arguments, self.total, self.seen, self.kinds = arguments, collections.Counter(), collections.Counter(), collections.Counter()
        self.doubtful = collections.Counter()

    def add(self, answer, text):
        outcome = answer["outcome"]
        self.total[outcome] += 1
        for kind in set(answer["kinds"]):
            self.kinds[kind] += 1
        finding = outcome in FINDINGS
        if finding and answer["doubtful"]:
            self.doubtful[outcome] += 1
        if not finding and outcome not in self.arguments.list:
            return
        gist = re.sub(r"-?\d[\d.e+-]*", "#", answer["why"].split("): ", 1)[-1] if not finding else answer["why"])[:90]
        mark = (outcome, answer["doubtful"], answer["kinds"][0] if finding and answer["kinds"] else "", gist)
        self.seen[mark] += 1
        if self.seen[mark] <= 3 or self.arguments.all:
            print(f"{outcome}{' (doubtful)' if answer['doubtful'] else ''}: case {answer['case']} of seed {self.arguments.seed}: "
                  f"{answer['why']}\n    {text}", flush=True)

    def say(self, count, seconds):
        findings = sum(self.total[f] - self.doubtful[f] for f in FINDINGS)
        words = ", ".join(f"{n} {outcome}" for outcome, n in self.total.most_common())
        print(f"seed {self.arguments.seed}: {count} models of {len(self.kinds)} operators in {seconds:.0f} s: {words}; "
              f"findings {findings}, and {sum(self.doubtful.values())} doubtful ones")
        elsewhere = self.total["ended another program"]
        if elsewhere > 3 and elsewhere > count / 20:
            print(f"{elsewhere} of {count} models ended another program: too many for this to tell much")
            return 1
        return 1 if findings else 0


def supervise(arguments, sources, tally, folder):
    """Starts a worker, and another one if it ends or hangs in a program other than SDLF. Returns the number of cases."""
    n, end = arguments.first, time.monotonic() + arguments.seconds
    last = arguments.first + arguments.cases
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    while n < last and time.monotonic() < end and not stopped:
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reads)
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            status = SCRIPT_FAILED
            try:
                work(arguments, n, sources, writes, folder)
                status = 0
            except Exception:
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writes)
        text, rest = "", b""
        while n < last and time.monotonic() < end and not stopped:
            if not select.select([reads], [], [], 8 * programs.SECONDS)[0]:
                break
            part = os.read(reads, 1 << 16)
            if part == b"":
                break
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                text = answer.get("text", text)
                if "outcome" in answer:
                    tally.add(answer, text)
                    n += 1
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
        _, status = os.waitpid(child, 0)
        os.close(reads)
        if os.waitstatus_to_exitcode(status) == SCRIPT_FAILED:
            sys.exit(f"seed {arguments.seed}, case {n}: this script failed, as said above")
        if n < last and time.monotonic() < end and not stopped:
            tally.add({"case": n, "outcome": "ended another program", "why": f"{status}", "doubtful": False, "kinds": []}, text)
            n += 1
    return n - arguments.first


def main():
    arguments = read_arguments()
    known = subprocess.run([arguments.peer, "--operators"], capture_output=True, text=True, check=True).stdout
    kinds = {line.split()[0] for line in known.splitlines()} | {"ArrayFeatureExtractor", "Binarizer"}
    sources = Networks() if arguments.networks else Sources(kinds, set(arguments.only) if arguments.only else None)
    if not arguments.networks and not sources.tests and not sources.families:
        sys.exit(f"--only {arguments.only[0]}: no model has it")
    tally, start = Tally(arguments), time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        count = supervise(arguments, sources, tally, folder)
    return tally.say(count, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
