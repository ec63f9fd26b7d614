# SPDX-License-Identifier: MIT
"""Runs one case in onnxruntime and in SDLF."""
import os
import subprocess
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def run(peer, calculator, case, keep):
    """'passed', 'failed', 'unsupported' or 'refused' (by onnxruntime), and why."""
    model, feed = case.model()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, feed)
    except Exception as refusal:  # pylint: disable=broad-except
        return "refused", str(refusal)[:200]
    for value, array in zip(model.graph.output, expected):
        value.CopyFrom(helper.make_tensor_value_info(value.name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape)))
    with tempfile.TemporaryDirectory() as folder:
        folder = keep or folder
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        for i, (name, array) in enumerate(feed.items()):
            onnx.save_tensor(numpy_helper.from_array(np.asarray(array), name), os.path.join(folder, f"input_{i}.pb"))
        for i, array in enumerate(expected):
            onnx.save_tensor(numpy_helper.from_array(np.asarray(array), f"o{i}"), os.path.join(folder, f"output_{i}.pb"))
        done = subprocess.run([peer, calculator, "1e-4", "1e-5", path, folder], capture_output=True, text=True, timeout=120,
                              check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    words = done.stdout.strip().split(" ", 1)
    if done.returncode != 0 or words[0] not in ("passed", "failed", "unsupported"):
        return "failed", f"exit status {done.returncode} {done.stderr[-300:]}"
    return words[0], words[1] if len(words) > 1 else ""
