#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the small ONNX models under tests/onnx/fixtures, with inputs and the outputs that onnxruntime computes.

    scripts/make-onnx-fixtures.py [FOLDER [NAME ...]]
    scripts/make-onnx-fixtures.py --training [FOLDER [NAME ...]]

Needs the packages onnx, onnxruntime and numpy. Weights are drawn from fixed seeds; each model is a few kilobytes. With --training, those
under tests/onnx/fixtures/training, which PyTorch exports and trains (scripts/fixtures/imported.py): needs torch and onnxscript, too.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from fixtures.onnx_graph import FLOAT, Graph
from fixtures.onnx_moves import indices, integers, moves, open_sizes, rows, sampled, selected, stored, volume
from fixtures.onnx_quantised import packed, qdq, qlinear, quantised
from fixtures.onnx_sequences import attention, branches, recurrent, scanned, states

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "onnx", "fixtures")


def small_cnn():
    """Convolution with its bias in an Add, pooling, a view by shape arithmetic, a matrix product with its bias in an Add."""
    g = Graph(1)
    g.node("Conv", ["image", g.weight("w1", 4, 1, 5, 5)], "c1", auto_pad="SAME_UPPER", kernel_shape=[5, 5])
    g.node("Add", ["c1", g.weight("b1", 4, 1, 1)], "a1")
    g.node("Relu", ["a1"], "r1")
    g.node("MaxPool", ["r1"], "p1", kernel_shape=[2, 2], strides=[2, 2])
    g.node("Conv", ["p1", g.weight("w2", 6, 4, 3, 3), g.weight("b2", 6)], "c2", kernel_shape=[3, 3], pads=[1, 0, 0, 1])
    g.node("LeakyRelu", ["c2"], "r2", alpha=0.1)
    g.node("Shape", ["r2"], "shape")
    g.node("Gather", ["shape", g.constant("zero", 0)], "batch", axis=0)
    g.node("Unsqueeze", ["batch", g.constant("axes", [0])], "batch1")
    g.node("Concat", ["batch1", g.constant("rest", [-1])], "view", axis=0)
    g.node("Reshape", ["r2", "view"], "flat")
    g.node("MatMul", ["flat", g.weight("w3", 6 * 5 * 5, 10, scale=0.1)], "m3")
    g.node("Add", ["m3", g.weight("b3", 10)], "logits")
    g.node("Softmax", ["logits"], "class", axis=1)
    return g.model("small_cnn", [("image", FLOAT, ["N", 1, 12, 12])], [("class", FLOAT, ["N", 10])], 13), {"N": 1}


def residual():
    """Batch normalisation, a residual, groups, strides, Clip from inputs, global pooling, Gemm with a transposed weight."""
    g = Graph(2)

    def norm(x, y, channels):
        g.node("BatchNormalization", [x, g.weight(y + "_scale", channels, offset=1), g.weight(y + "_shift", channels),
                                      g.weight(y + "_mean", channels), g.constant(y + "_variance",
                                      np.linspace(0.5, 1.5, channels), np.float32)], y, epsilon=1e-3)

    g.node("Conv", ["x", g.weight("w1", 8, 3, 3, 3)], "c1", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    norm("c1", "n1", 8)
    g.node("Clip", ["n1", g.constant("low", 0, np.float32), g.constant("high", 6, np.float32)], "r1")
    g.node("Conv", ["r1", g.weight("w2", 8, 1, 3, 3)], "c2", kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=8)
    norm("c2", "n2", 8)
    g.node("Add", ["n2", "r1"], "sum")
    g.node("Relu", ["sum"], "r2")
    g.node("AveragePool", ["r2"], "pool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    g.node("GlobalAveragePool", ["pool"], "mean")
    g.node("Flatten", ["mean"], "flat")
    g.node("Dropout", ["flat"], "same")
    g.node("Gemm", ["same", g.weight("w3", 5, 8), g.weight("b3", 5)], "y", transB=1, alpha=0.5)
    return g.model("residual", [("x", FLOAT, [1, 3, 15, 15])], [("y", FLOAT, [1, 5]), ("mean", FLOAT, [1, 8, 1, 1])], 13), {}


def external():
    """A weight stored in a file next to the model."""
    g = Graph(4)
    g.node("Gemm", ["x", g.weight("w", 6, 8), g.weight("b", 6)], "y", transB=1)
    return g.model("external", [("x", FLOAT, ["N", 8])], [("y", FLOAT, ["N", 6])], 13), {"N": 1}


def forest(g, kind, targets, trees=4, depth=3):
    """Attributes of an ensemble: complete trees, some of whose comparisons are leaves instead."""
    nodes = [(t, i, i >= 2**depth - 1 or (i > 2 and g.random.random() < 0.2)) for t in range(trees) for i in range(2 ** (depth + 1) - 1)]
    leaves = [(t, i, k) for t, i, leaf in nodes if leaf for k in range(targets)]
    draw = lambda count: [float(v) for v in g.random.standard_normal(count).astype(np.float32)]
    return {"nodes_treeids": [t for t, _, _ in nodes], "nodes_nodeids": [i for _, i, _ in nodes],
            "nodes_featureids": [0 if leaf else int(g.random.integers(5)) for _, _, leaf in nodes], "nodes_values": draw(len(nodes)),
            "nodes_modes": ["LEAF" if leaf else "BRANCH_LEQ" for _, _, leaf in nodes],
            "nodes_truenodeids": [0 if leaf else 2 * i + 1 for _, i, leaf in nodes], "nodes_falsenodeids": [0 if leaf else 2 * i + 2 for _, i, leaf in nodes],
            "nodes_missing_value_tracks_true": [0 if leaf else int(g.random.integers(2)) for _, _, leaf in nodes],
            f"{kind}_treeids": [t for t, _, _ in leaves], f"{kind}_nodeids": [i for _, i, _ in leaves], f"{kind}_ids": [k for _, _, k in leaves],
            f"{kind}_weights": draw(len(leaves))}


def learning():
    """Operators of ai.onnx.ml: the exports of scikit-learn and boosted trees."""
    g = Graph(19)
    ml = {"domain": "ai.onnx.ml"}
    draw = lambda count: [float(v) for v in g.random.standard_normal(count).astype(np.float32)]
    g.node("Scaler", ["x"], "scaled", offset=draw(5), scale=draw(5), **ml)
    g.node("Normalizer", ["scaled"], "n", norm="L2", **ml)
    g.node("Sqrt", ["x"], "roots")  # NaN where x is negative
    g.node("TreeEnsembleRegressor", ["roots"], "y", n_targets=2, base_values=[0.5, -1.0], aggregate_function="AVERAGE", **forest(g, "target", 2), **ml)
    outputs = [("n", [6, 5]), ("y", [6, 2])]
    for name, labels, targets, transform in (("three", [3, 1, 7], 3, "SOFTMAX"), ("two", [0, 1], 1, "LOGISTIC")):
        g.node("TreeEnsembleClassifier", ["scaled"], name, name + "_scores", classlabels_int64s=labels, post_transform=transform, **forest(g, "class", targets), **ml)
        g.node("Cast", [name], name + "_f", to=FLOAT)
        outputs += [(name + "_f", [6]), (name + "_scores", [6, len(labels)])]
    g.node("LinearClassifier", ["x"], "label", "l", coefficients=draw(15), intercepts=draw(3), classlabels_ints=[4, 5, 9], post_transform="SOFTMAX", **ml)
    g.node("LinearRegressor", ["x"], "r", coefficients=draw(10), intercepts=draw(2), targets=2, **ml)
    g.node("Imputer", ["roots"], "whole", imputed_value_floats=draw(5), replaced_value_float=float("nan"), **ml)
    g.node("SVMRegressor", ["whole"], "s", coefficients=draw(4), support_vectors=draw(20), kernel_params=[0.3, 0.2, 3.0], kernel_type="RBF", n_supports=4, rho=[0.7], **ml)
    return g.model("learning", [("x", FLOAT, [6, 5])], [(name, FLOAT, shape) for name, shape in outputs + [("l", [6, 3]), ("r", [6, 2]), ("s", [6, 1])]], 17), {}


FIXTURES = {"small_cnn": small_cnn, "residual": residual, "moves": moves, "rows": rows, "external": external, "volume": volume, "integers": integers,
            "recurrent": recurrent, "attention": attention, "indices": indices, "branches": branches, "quantised": quantised,
            "selected": selected, "sampled": sampled, "stored": stored, "scanned": scanned, "states": states, "learning": learning, "qdq": qdq, "qlinear": qlinear,
            "packed": packed, "open": open_sizes}
NOT_IN_ONNXRUNTIME = ["states"] # of a newer opset: outputs of the onnx package's own evaluator


def write(folder, name, model, sizes):
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    file = os.path.join(path, "model.onnx")
    if name == "external":
        onnx.save(model, file, save_as_external_data=True, all_tensors_to_one_file=True, location="weights.bin",
                  size_threshold=0)
    else:
        onnx.save(model, file)
    random = np.random.default_rng(100)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if name in NOT_IN_ONNXRUNTIME:
        session = ReferenceEvaluator(model)
    else:
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    feed = {}
    for i, value in enumerate(model.graph.input):
        shape = [sizes.get(d.dim_param, d.dim_value) for d in value.type.tensor_type.shape.dim]
        feed[value.name] = random.standard_normal(shape).astype(np.float32)
        onnx.save_tensor(numpy_helper.from_array(feed[value.name], value.name), os.path.join(path, f"input_{i}.pb"))
    for i, (value, out) in enumerate(zip(model.graph.output, session.run(None, feed))):
        onnx.save_tensor(numpy_helper.from_array(out, value.name), os.path.join(path, f"output_{i}.pb"))


def main():
    if sys.argv[1:2] == ["--training"]:
        from fixtures import imported  # only these need torch
        imported.write(sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "training"), sys.argv[3:])
        return
    folder = sys.argv[1] if len(sys.argv) > 1 else ROOT
    for name, make in FIXTURES.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        model, sizes = make()
        write(folder, name, model, sizes)


if __name__ == "__main__":
    main()
