# SPDX-License-Identifier: MIT
"""The programs that run a case: SDLF, onnxruntime, and the ONNX project's reference evaluator."""
import os
import resource
import select
import subprocess
import time
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

SECONDS, MEGABYTES = 5, 700  # limits for a small model


def unlimited():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Sdlf:
    """A process that runs one model after another, and is restarted if a model ends it."""

    def __init__(self, peer, calculator):
        self.command, self.calculator, self.process = [peer, "--write", calculator, "-"], calculator, None
        self.errors = None

    def start(self, folder):
        self.errors = os.path.join(folder, f"{self.calculator}.stderr")
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            preexec_fn=unlimited, env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stdin.close()
        self.process = None

    def peak(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return next((int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")), 0)

    def seconds(self):
        """The CPU time of the process."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as status:
            fields = status.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def line(self):
        """The answer, or None after the time limit, which is six times as long if a busy machine gave the process little CPU time."""
        said, begun, end = b"", self.seconds(), time.monotonic() + 6 * SECONDS
        while not said.endswith(b"\n"):
            ready = select.select([self.process.stdout], [], [], SECONDS)[0]
            if not ready and (self.seconds() - begun > 0.8 * SECONDS or time.monotonic() > end):
                return None
            if not ready:
                continue
            part = os.read(self.process.stdout.fileno(), 65536)
            if part == b"":
                break
            said += part
        return said.decode(errors="replace")

    def ended(self, when):
        code = self.process.wait()
        try:
            self.stop()
        except BrokenPipeError:
            self.process = None
        with open(self.errors, encoding="utf-8", errors="replace") as errors:
            return "broken", f"{when}ended with {code} {errors.read()[:3000]}"

    def run(self, path, folder, batch):
        """('ran', outputs), ('refused', why) or ('broken', how)."""
        if self.process is None:
            self.start(folder)
        words = [path, folder] + ([str(batch)] if batch != 0 else [])
        try:
            self.process.stdin.write(("\t".join(words) + "\n").encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.ended("after its answer to the model before, ")
        said = self.line()
        if said is None:
            self.stop()
            return "broken", f"takes more than {SECONDS} s"
        if not said.endswith("\n"):
            return self.ended("")
        peak = self.peak()
        if peak > MEGABYTES:
            self.stop()
            return "broken", f"takes {peak:.0f} MB"
        outcome, why = said.strip("\n").split(" ", 1) if " " in said else (said, "")
        why = why.replace(path, "MODEL")
        if "\n" in why or (outcome != "passed" and len(why) < 8):
            return "broken", f"no clear line: {why}"
        if outcome == "unsupported":
            return "refused", why
        if outcome != "passed":
            return "failed", why
        outputs, i = [], 0
        while os.path.exists(os.path.join(folder, f"{self.calculator}_{i}.npy")):
            name = os.path.join(folder, f"{self.calculator}_{i}.npy")
            outputs.append(np.load(name))
            os.remove(name)
            i += 1
        return "ran", outputs


def save(case, folder):
    path = os.path.join(folder, "model.onnx")
    with open(path, "wb") as out:
        out.write(case.model.SerializeToString())
    for i, value in enumerate(case.graph.input):
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as out:
            out.write(numpy_helper.from_array(case.feeds[value.name], value.name).SerializeToString())
    return path


def run_onnxruntime(case, together=False):
    """('ran', outputs of each sample) or ('refused', why). `together`: as one batch, if the file leaves the batch open."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = case.model
    if together:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for value in model.graph.input:
            dims = value.type.tensor_type.shape.dim
            if len(dims) > 0 and dims[0].dim_value == 1 and case.feeds[value.name].shape[0] == case.samples:
                dims[0].dim_param = "N"
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        if together:
            return "ran", [session.run(None, case.feeds)]
        return "ran", [session.run(None, case.of_sample(i)) for i in range(max(1, case.samples))]
    except Exception as refusal:  # pylint: disable=broad-except
        return "refused", str(refusal).replace("\n", " ")[:300]


def run_evaluator(case):
    """The same in the ONNX project's reference evaluator, which is slow and checks little."""
    found = []
    try:
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for value in model.graph.output:  # the checker requires these
            kind = value.type.tensor_type
            kind.elem_type = kind.elem_type or onnx.TensorProto.FLOAT
            kind.shape.SetInParent()
        onnx.checker.check_model(model)
        from onnx.reference import ReferenceEvaluator  # pylint: disable=import-outside-toplevel
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            evaluator = ReferenceEvaluator(case.model)
            for i in range(max(1, case.samples)):
                outputs = evaluator.run(None, case.of_sample(i))
                if any(o is None for o in outputs):
                    return "refused", "no output"
                found.append([np.asarray(o) for o in outputs])
        return "ran", found
    except Exception as refusal:  # pylint: disable=broad-except
        return "refused", str(refusal).replace("\n", " ")[:300]
