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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "onnx", "fixtures")
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Nodes and weights of one model."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, name, *shape, scale=0.3, offset=0.0):
        values = self.random.standard_normal(shape).astype(np.float32) * np.float32(scale) + np.float32(offset)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name, values, dtype=np.int64):
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, kind, inputs, output, *more, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output, *more], name=output + "_node", **attributes))
        return output

    def model(self, name, inputs, outputs, opset, functions=()):
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info(*i) for i in inputs],
                                  [helper.make_tensor_value_info(*o) for o in outputs], self.weights)
        opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid("own", 1)] * bool(functions)
        opsets += [helper.make_opsetid(d, v) for d, v in (("ai.onnx.ml", 3), ("com.microsoft", 1)) if any(n.domain == d for n in self.nodes)]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="sdlf-fixtures", functions=functions)
        model.ir_version = 8 if opset < 20 else 10
        onnx.checker.check_model(model)
        return model


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


def moves():
    """Transposes, slices, joins and pads on shapes that have no batch, in two inputs of different sizes."""
    g = Graph(3)
    g.node("Transpose", ["a"], "t", perm=[2, 0, 1])
    g.node("Slice", ["t", g.constant("starts", [3, 0]), g.constant("ends", [-9, 100]), g.constant("cut", [0, 2]),
                     g.constant("steps", [-1, 2])], "s")
    g.node("Reshape", ["b", g.constant("view", [4, 3, 1])], "v")
    g.node("Concat", ["s", "v"], "joined", axis=-1)
    g.node("Expand", ["joined", g.constant("wide", [2, 1, 1, 1])], "e")
    g.node("Identity", ["e"], "y")
    return g.model("moves", [("a", FLOAT, [3, 5, 4]), ("b", FLOAT, [2, 6])], [("y", FLOAT, [2, 4, 3, 4])], 13), {}


def rows():
    """Normalisations with constant scales, a product of two computed factors, a transposed convolution, a resize."""
    g = Graph(5)
    g.node("ConvTranspose", ["x", g.weight("wt", 3, 4, 3, 3), g.weight("bt", 4)], "t", strides=[2, 2], pads=[1, 1, 0, 0],
           kernel_shape=[3, 3])
    g.node("LRN", ["t"], "l", size=3, alpha=0.1)
    g.node("InstanceNormalization", ["l", g.weight("si", 4, offset=1), g.weight("bi", 4)], "i")
    g.node("Resize", ["i", "", g.constant("scales", [1, 1, 0.5, 1.5], np.float32)], "z", mode="linear")
    g.node("Pad", ["z", g.constant("pads", [0, 0, 1, 1, 0, 0, 0, 2])], "p", mode="reflect")
    g.node("LayerNormalization", ["p", g.weight("sl", 18, offset=1), g.weight("bl", 18)], "n", axis=-1)
    g.node("Transpose", ["n"], "back", perm=[0, 1, 3, 2])
    g.node("MatMul", ["n", "back"], "m")
    g.node("ReduceMean", ["m"], "r", axes=[3], keepdims=0)
    g.node("Mul", ["r", g.constant("half", 0.5, np.float32)], "h")
    g.node("Elu", ["h"], "y")
    return g.model("rows", [("x", FLOAT, ["N", 3, 5, 5])], [("y", FLOAT, ["N", 4, 6])], 17), {"N": 1}


def external():
    """A weight that lies in a file beside the model."""
    g = Graph(4)
    g.node("Gemm", ["x", g.weight("w", 6, 8), g.weight("b", 6)], "y", transB=1)
    return g.model("external", [("x", FLOAT, ["N", 8])], [("y", FLOAT, ["N", 6])], 13), {"N": 1}


def volume():
    """Windows over three dimensions: strides, dilations, groups and paddings that differ along each; the places of maxima."""
    g = Graph(6)
    g.node("Conv", ["x", g.weight("w1", 4, 1, 3, 2, 3), g.weight("b1", 4)], "c", kernel_shape=[3, 2, 3], group=2,
           strides=[2, 1, 2], pads=[1, 0, 1, 1, 1, 0], dilations=[1, 2, 1])
    g.node("Relu", ["c"], "r")
    g.node("ConvTranspose", ["r", g.weight("w2", 4, 2, 2, 3, 3), g.weight("b2", 2)], "t", kernel_shape=[2, 3, 3],
           strides=[3, 2, 1], pads=[1, 1, 0, 0, 2, 1], output_padding=[1, 0, 0])
    g.node("AveragePool", ["t"], "a", kernel_shape=[2, 3, 2], strides=[2, 2, 1], pads=[0, 1, 1, 0, 1, 0], ceil_mode=1)
    g.node("MaxPool", ["a"], "m", "where", kernel_shape=[2, 2, 2], strides=[1, 2, 1], pads=[1, 0, 0, 0, 1, 0])
    g.node("Cast", ["where"], "places", to=FLOAT)
    return g.model("volume", [("x", FLOAT, [1, 2, 6, 6, 7])],
                   [("m", FLOAT, [None] * 5), ("places", FLOAT, [None] * 5)], 17), {}


def integers():
    """Weights that are stored quantised, arithmetic of integers, constants that float32 does not hold."""
    g = Graph(7)
    g.constant("w", g.random.integers(-128, 128, (3, 2, 3, 3)), np.int8)
    g.constant("ws", [0.01, 0.02, 0.005], np.float32)
    g.constant("wz", [0, 3, -2], np.int8)
    g.node("DequantizeLinear", ["w", "ws", "wz"], "weight", axis=0)
    g.constant("xs", 0.03, np.float32)
    g.constant("xz", 120, np.uint8)
    g.node("QuantizeLinear", ["x", "xs", "xz"], "q")
    g.node("DequantizeLinear", ["q", "xs", "xz"], "d")
    g.node("Conv", ["d", "weight"], "y", kernel_shape=[3, 3])
    g.node("Cast", ["q"], "numbers", to=INT64)
    g.node("Mul", ["numbers", g.constant("large", [2**40 + 1])], "product")
    g.node("ReduceMax", ["product"], "most", axes=[2, 3], keepdims=1)
    g.node("Sub", ["most", "product"], "less")
    g.node("ReduceSum", ["less", g.constant("axes", [1, 3])], "sum", keepdims=0)
    g.node("Div", ["sum", "large"], "quotient")
    g.node("ArgMin", ["less"], "best", axis=2)
    g.node("Pow", ["best", g.constant("two", 2.0, np.float32)], "square")
    g.node("Cast", ["quotient"], "sums", to=FLOAT)
    g.node("Cast", ["square"], "places", to=FLOAT)
    return g.model("integers", [("x", FLOAT, ["N", 2, 5, 6])],
                   [("y", FLOAT, [None] * 4), ("sums", FLOAT, [None] * 2), ("places", FLOAT, [None] * 4)], 13), {"N": 1}


def recurrent():
    """LSTM with peepholes, GRU and RNN, one after the other, in every direction, some rows ending early."""
    g = Graph(8)
    g.constant("lengths", [5, 3, 4], np.int32)
    g.node("Transpose", ["x"], "t", perm=[1, 0, 2])
    g.node("LSTM", ["t", g.weight("w1", 2, 16, 3), g.weight("r1", 2, 16, 4), g.weight("b1", 2, 32), "lengths", g.weight("h1", 2, 3, 4),
                    g.weight("c1", 2, 3, 4), g.weight("p1", 2, 12)], "y1", "", "cells", hidden_size=4, direction="bidirectional")
    g.node("Transpose", ["y1"], "y2", perm=[0, 2, 1, 3])
    g.node("Reshape", ["y2", g.constant("joined", [0, 0, -1])], "y3")
    g.node("GRU", ["y3", g.weight("w2", 1, 12, 8), g.weight("r2", 1, 12, 4), g.weight("b2", 1, 24)], "y4", hidden_size=4,
           direction="reverse", linear_before_reset=1)
    g.node("Squeeze", ["y4", g.constant("one", [1])], "y5")
    g.node("RNN", ["y5", g.weight("w3", 1, 5, 4), g.weight("r3", 1, 5, 5)], "", "last", hidden_size=5, activations=["Relu"])
    return g.model("recurrent", [("x", FLOAT, [3, 5, 3])], [("y5", FLOAT, [5, 3, 4]), ("cells", FLOAT, [2, 3, 4]), ("last", FLOAT, [1, 3, 5])],
                   18), {}


def attention():
    """A block of a decoder: RMSNormalization, rotary embeddings, grouped heads, a causal mask, a product by Einsum."""
    g = Graph(9)
    g.node("RMSNormalization", ["x", g.weight("scale", 16, offset=1)], "n")
    g.node("MatMul", ["n", g.weight("wq", 16, 16)], "q")
    g.node("MatMul", ["n", g.weight("wk", 16, 8)], "k")
    g.node("MatMul", ["n", g.weight("wv", 16, 8)], "v")
    g.constant("angles", np.outer(np.arange(6), [1, 0.1]), np.float32)
    g.node("Cos", ["angles"], "cos")
    g.node("Sin", ["angles"], "sin")
    g.constant("places", [[0, 1, 2, 3, 4]])
    g.node("RotaryEmbedding", ["q", "cos", "sin", "places"], "qr", num_heads=4)
    g.node("RotaryEmbedding", ["k", "cos", "sin", "places"], "kr", num_heads=2)
    g.node("Attention", ["qr", "kr", "v"], "a", q_num_heads=4, kv_num_heads=2, is_causal=1)
    g.node("Einsum", ["a", g.weight("wo", 16, 2, 8)], "e", equation="bsi,ihd->bshd")
    g.node("Reshape", ["e", g.constant("shape", [0, 0, 16])], "r")
    g.node("Swish", ["r"], "y")
    return g.model("attention", [("x", FLOAT, ["N", 5, 16])], [("y", FLOAT, ["N", 5, 16])], 24), {"N": 1}


def indices():
    """What picks and puts by indices, and the masks that go with it."""
    g = Graph(10)
    g.node("TopK", ["x", g.constant("three", [3])], "largest", "which", axis=1)
    g.node("GatherElements", ["x", "which"], "picked", axis=1)
    g.node("ScatterElements", ["x", "which", "picked"], "put", axis=1, reduction="add")
    g.node("GatherND", ["put", g.constant("rows", [[[0, 1], [3, -1]]])], "few")
    g.node("ScatterND", ["put", g.constant("places", [[1], [2]]), g.weight("rows2", 2, 5)], "changed")
    g.node("CumSum", ["changed", g.constant("axis", 1)], "sums", exclusive=1)
    g.node("Trilu", ["sums"], "upper")
    g.node("ArgMax", ["x"], "best", axis=1, keepdims=0)
    g.node("OneHot", ["best", g.constant("depth", 5), g.constant("values", [0.5, 2], np.float32)], "hot")
    g.node("Mod", ["which", g.constant("two", 2)], "odd")
    g.node("Cast", ["odd"], "odds", to=FLOAT)
    g.node("ReverseSequence", ["upper", g.constant("lengths", [1, 5, 3, 2])], "turned", batch_axis=0, time_axis=1)
    g.node("Mul", ["turned", "hot"], "y")
    return g.model("indices", [("x", FLOAT, [4, 5])], [("y", FLOAT, [4, 5]), ("few", FLOAT, [1, 2]), ("odds", FLOAT, [4, 3])], 18), {}


def branches():
    """Functions of the model's own that call each other, a branch that follows from a shape, a loop with a state and with rows."""
    g = Graph(11)
    own = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    leaky = helper.make_node("LeakyRelu", ["double"], ["y"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    one = helper.make_function("own", "One", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["double"]), leaky], own, ["slope"])
    two = helper.make_function("own", "Two", ["x"], ["y"], [helper.make_node("One", ["x"], ["h"], domain="own", slope=0.3),
                                                             helper.make_node("One", ["h"], ["y"], domain="own", slope=0.1)], own)
    g.node("Two", ["x"], "f", domain="own")
    g.node("Shape", ["f"], "shape")
    g.node("Gather", ["shape", g.constant("last", 1)], "width")
    g.node("Equal", ["width", g.constant("three", 3)], "is_three")
    value = [helper.make_tensor_value_info("r", FLOAT, [2, 3])]
    yes = helper.make_graph([helper.make_node("Mul", ["f", "f"], ["r"])], "yes", [], value)
    no = helper.make_graph([helper.make_node("Neg", ["f"], ["r"])], "no", [], value)
    g.node("If", ["is_three"], "i", then_branch=yes, else_branch=no)
    body = helper.make_graph([helper.make_node("Mul", ["state", g.weight("w", 2, 3)], ["product"]), helper.make_node("Cast", ["turn"], ["number"], to=FLOAT),
                              helper.make_node("Add", ["product", "number"], ["next"]), helper.make_node("Identity", ["on"], ["still"]),
                              helper.make_node("Identity", ["next"], ["row"])], "body",
                             [helper.make_tensor_value_info("turn", INT64, []), helper.make_tensor_value_info("on", TensorProto.BOOL, []),
                              helper.make_tensor_value_info("state", FLOAT, [2, 3])],
                             [helper.make_tensor_value_info("still", TensorProto.BOOL, []), helper.make_tensor_value_info("next", FLOAT, [2, 3]),
                              helper.make_tensor_value_info("row", FLOAT, [2, 3])])
    g.node("Loop", [g.constant("turns", 4), g.constant("true", True, bool), "i"], "y", "z", body=body)
    return g.model("branches", [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3]), ("z", FLOAT, [4, 2, 3])], 18, [one, two]), {}


def quantised():
    """Products of integers of a byte, long enough that float32 does not hold every sum."""
    g = Graph(12)
    g.node("DynamicQuantizeLinear", ["x"], "q", "scale", "zero")
    g.constant("w", g.random.integers(-128, 128, (300, 7)), np.int8)
    g.node("MatMulInteger", ["q", "w", "zero", g.constant("wz", [1, -2, 3, 0, 0, 5, 7], np.int8)], "sums")
    g.node("Cast", ["sums"], "floats", to=FLOAT)
    g.node("Mul", ["floats", "scale"], "y")
    g.node("Reshape", ["q", g.constant("image", [1, 50, 4, 3])], "pixels")
    g.constant("k", g.random.integers(0, 256, (6, 50, 3, 3)), np.uint8)
    g.constant("kz", 100, np.uint8)
    g.node("ConvInteger", ["pixels", "k", "zero", "kz"], "filtered", pads=[1, 1, 1, 1])
    g.node("Cast", ["filtered"], "z", to=FLOAT)
    g.node("QLinearConv", ["pixels", "scale", "zero", "k", g.constant("ks1", 0.01, np.float32), "kz", g.constant("ys", 0.7, np.float32), g.constant("yz", 120, np.uint8),
                           g.constant("bias", g.random.integers(-9000, 9000, 6), np.int32)], "c", strides=[2, 1])
    g.node("Cast", ["c"], "c1", to=FLOAT)
    return g.model("quantised", [("x", FLOAT, [2, 300])], [("y", FLOAT, [2, 7]), ("z", FLOAT, [1, 6, 4, 3]), ("c1", FLOAT, [1, 6, 1, 1])], 18), {}


def selected():
    """Outputs whose length depends on the input, and what is read by such indices."""
    g = Graph(13)
    g.node("Greater", ["x", g.constant("zero", 0, np.float32)], "positive")
    g.node("NonZero", ["positive"], "places")
    g.node("Transpose", ["places"], "rows", perm=[1, 0])
    g.node("Cast", ["rows"], "nonzero", to=FLOAT)
    g.node("Round", ["x"], "rounded")
    g.node("Unique", ["rounded"], "unique", "first", "which", "often", sorted=1)
    for name in ("first", "which", "often"):
        g.node("Cast", [name], name + "_f", to=FLOAT)
    g.node("Slice", ["positive", g.constant("s0", [0]), g.constant("s1", [1]), g.constant("s2", [0])], "top")
    g.node("Reshape", ["top", g.constant("flat", [-1])], "condition")
    g.node("Compress", ["x", "condition"], "compressed", axis=1)
    # boxes around x, whose scores are x too
    g.node("Reshape", ["x", g.constant("four", [1, -1, 4])], "corners")
    g.node("Slice", ["corners", g.constant("b0", [0]), g.constant("b1", [2]), g.constant("b2", [2])], "low")
    g.node("Add", ["low", g.constant("side", [1.5, 2], np.float32)], "high")
    g.node("Concat", ["low", "high"], "boxes", axis=2)
    g.node("Slice", ["corners", g.constant("c0", [2]), g.constant("c1", [4]), g.constant("c2", [2])], "marks")
    g.node("Transpose", ["marks"], "scores", perm=[0, 2, 1])
    g.node("NonMaxSuppression", ["boxes", "scores", g.constant("most", [4]), g.constant("iou", [0.3], np.float32),
                                 g.constant("least", [-0.5], np.float32)], "chosen")
    g.node("Cast", ["chosen"], "chosen_f", to=FLOAT)
    g.node("Gather", ["chosen", g.constant("third", 2)], "of_box", axis=1)
    g.node("Squeeze", ["boxes", g.constant("axis", [0])], "all")
    g.node("Gather", ["all", "of_box"], "kept")
    g.node("Mul", ["kept", g.constant("two", 2, np.float32)], "twice")
    outputs = [("nonzero", ["n", 2]), ("unique", ["u"]), ("first_f", ["u"]), ("which_f", [48]), ("often_f", ["u"]), ("compressed", [4, "k"]),
               ("chosen_f", ["c", 3]), ("twice", ["c", 4])]
    return g.model("selected", [("x", FLOAT, [4, 12])], [(name, FLOAT, shape) for name, shape in outputs], 16), {}


def sampled():
    """Regions, windows that overlap or are moved, and what is put back where pooling found it."""
    g = Graph(14)
    g.constant("regions", [[0, 0, 7, 7], [1.5, 2, 6, 7.5], [4, -3, 20, 5]], np.float32)
    g.constant("pictures", [0, 1, 0])
    g.node("RoiAlign", ["x", "regions", "pictures"], "average", output_height=3, output_width=2, sampling_ratio=2, spatial_scale=0.8)
    g.node("RoiAlign", ["x", "regions", "pictures"], "greatest", output_height=2, output_width=3, sampling_ratio=1, mode="max",
           coordinate_transformation_mode="output_half_pixel")
    g.weight("offsets", 2, 16, 4, 4, scale=1.5)
    g.weight("mask", 2, 8, 4, 4)
    g.node("DeformConv", ["x", g.weight("w", 6, 2, 2, 2), "offsets", g.weight("b", 6), "mask"], "deformed", group=2, offset_group=2, strides=[2, 2],
           pads=[0, 1, 1, 0], kernel_shape=[2, 2])
    g.node("MaxPool", ["x"], "pooled", "found", kernel_shape=[2, 2], strides=[2, 2])
    g.node("MaxUnpool", ["pooled", "found"], "back", kernel_shape=[2, 2], strides=[2, 2])
    g.node("Reshape", ["x", g.constant("blocks", [2, 16, 16])], "in_blocks")
    g.node("Col2Im", ["in_blocks", g.constant("image", [5, 4]), g.constant("block", [2, 2])], "image_of", strides=[2, 1], dilations=[1, 2], pads=[1, 2, 2, 0])
    g.node("Slice", ["x", g.constant("d0", [1, 2]), g.constant("d1", [6, 7]), g.constant("d2", [2, 3])], "matrices")
    g.node("Det", ["matrices"], "det")
    g.node("CenterCropPad", ["x", g.constant("sides", [5, 11])], "centred", axes=[2, 3])
    outputs = [("average", [3, 4, 3, 2]), ("greatest", [3, 4, 2, 3]), ("deformed", [2, 6, 4, 4]), ("back", [2, 4, 8, 8]), ("image_of", [2, 4, 5, 4]), ("det", [2, 4]),
               ("centred", [2, 4, 5, 11])]
    return g.model("sampled", [("x", FLOAT, [2, 4, 8, 8])], [(name, FLOAT, shape) for name, shape in outputs], 19), {}


def stored():
    """Numbers of a byte and less: what they are rounded to, and weights that are stored so."""
    g = Graph(15)
    g.node("Mul", ["x", g.constant("spread", [0.001, 0.03, 1, 40, 300, 90000], np.float32)], "wide")
    outputs = []
    for name in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"):
        for saturate in (0, 1) if name == "FLOAT8E5M2" else (1,):
            own = f"{name.lower()}_{saturate}"
            g.node("Cast", ["wide"], own, to=getattr(TensorProto, name), saturate=saturate)
            g.node("Cast", [own], own + "_f", to=FLOAT)
            g.node("Clip", [own + "_f", g.constant(own + "_low", -1e6, np.float32), g.constant(own + "_high", 1e6, np.float32)], own + "_y")
            outputs.append(own + "_y")
    g.weights.append(helper.make_tensor("q", TensorProto.INT4, [6, 3], [1, -8, 7, 0, 3, -2, 5, 5, -5, 2, 1, 0, -1, -7, 6, 4, -4, 3]))
    g.weights.append(helper.make_tensor("e", TensorProto.FLOAT8E4M3FN, [3], [1, -0.75, 448]))
    g.node("DequantizeLinear", ["q", g.constant("scale", [0.1, 0.2, 0.3], np.float32)], "weight", axis=1)
    g.node("MatMul", ["x", "weight"], "product")
    g.node("DequantizeLinear", ["e", g.constant("one", 0.5, np.float32)], "bias")
    g.node("Add", ["product", "bias"], "y")
    g.weights.append(helper.make_tensor("zero4", TensorProto.UINT4, [], [5]))
    g.node("QuantizeLinear", ["x", g.constant("step", 0.3, np.float32), "zero4"], "four")
    g.node("DequantizeLinear", ["four", "step", "zero4"], "z")
    return g.model("stored", [("x", FLOAT, [4, 6])], [(name, FLOAT, [4, 6]) for name in outputs] + [("y", FLOAT, [4, 3]), ("z", FLOAT, [4, 6])], 21), {}


def scanned():
    """A body that is gone through forwards and backwards, along the second axis of what goes in and of what comes out."""
    g = Graph(16)
    info = lambda name, shape: helper.make_tensor_value_info(name, FLOAT, shape)
    body = helper.make_graph([helper.make_node("Mul", ["sum", g.weight("w", 3)], ["part"]), helper.make_node("Add", ["part", "a"], ["next"]),
                              helper.make_node("Sub", ["next", "b"], ["row"]), helper.make_node("Add", ["next", "a"], ["other"])], "body",
                             [info("sum", [3]), info("a", [3]), info("b", [3])], [info("next", [3]), info("row", [3]), info("other", [3])])
    g.node("Transpose", ["x"], "turned")
    g.node("Scan", [g.constant("start", [1, 2, 3], np.float32), "x", "turned"], "y", "z", "u", body=body, num_scan_inputs=2, scan_input_axes=[0, 1],
           scan_input_directions=[0, 1], scan_output_axes=[1, -2], scan_output_directions=[1, 0])
    g.node("Pad", ["x", g.constant("pads", [1, 0, 0, 2]), g.constant("least", -np.inf, np.float32)], "padded")
    g.node("Softmax", ["padded"], "s", axis=0)
    g.node("Slice", ["s", g.constant("f0", [1]), g.constant("f1", [6]), g.constant("f2", [0])], "inner")
    g.node("Slice", ["inner", g.constant("h0", [0]), g.constant("h1", [3]), g.constant("h2", [1])], "t")
    g.node("Mul", ["x", g.constant("ten", 10, np.float32)], "tens")
    g.node("Cast", ["tens"], "whole", to=INT64)
    g.node("TopK", ["whole", g.constant("k", [2])], "top", "where", axis=0, largest=0)
    g.node("Cast", ["top"], "top_f", to=FLOAT)
    g.node("Cast", ["where"], "where_f", to=FLOAT)
    return g.model("scanned", [("x", FLOAT, [5, 3])], [("y", FLOAT, [3]), ("z", FLOAT, [3, 5]), ("u", FLOAT, [5, 3]), ("t", FLOAT, [5, 3]), ("top_f", FLOAT, [2, 3]),
                                                       ("where_f", FLOAT, [2, 3])], 16), {}


def states():
    """A decoder's attention and convolution with states of a fixed size; the inverse of half a transform; a matrix of mel filters."""
    g = Graph(17)
    for name, shape in (("state", [2, 2, 3, 3]), ("decay", [2, 4, 6]), ("beta", [2, 4, 2]), ("before", [2, 12, 2]), ("w", [12, 1, 3])):
        g.weight(name, *shape, offset=-0.5 if name == "decay" else 0.5)
    keys = [g.node("Slice", ["x", g.constant(f"{n}0", [6 * n]), g.constant(f"{n}1", [6 * n + 6]), g.constant(f"{n}2", [2])], f"k{n}") for n in range(2)]
    g.node("LinearAttention", ["x", keys[0], keys[1], "state", "decay", "beta"], "y", "after", q_num_heads=4, kv_num_heads=2)
    g.node("LinearAttention", ["x", keys[0], keys[1]], "plain", "plain_after", q_num_heads=4, kv_num_heads=2, update_rule="linear", scale=0.25)
    g.node("Transpose", ["x"], "t", perm=[0, 2, 1])
    g.node("CausalConvWithState", ["t", "w", "", "before"], "c", "last", activation="silu")
    g.node("Reshape", ["x", g.constant("pairs", [2, 4, 6, 2])], "complex")
    g.node("DFT", ["complex", g.constant("nine", 9), g.constant("second", 2)], "signal", inverse=1, onesided=1)
    for name, value, dtype in (("filters", 5, np.int64), ("length", 22, np.int64), ("rate", 8000, np.int64), ("lower", 100, np.float32), ("upper", 3800, np.float32)):
        g.constant(name, value, dtype)
    g.node("MelWeightMatrix", ["filters", "length", "rate", "lower", "upper"], "mel")
    g.node("MatMul", ["x", "mel"], "filtered")
    outputs = [("y", [2, 4, 12]), ("after", [2, 2, 3, 3]), ("plain", [2, 4, 12]), ("c", [2, 12, 4]), ("last", [2, 12, 2]), ("signal", [2, 4, 9, 1]), ("filtered", [2, 4, 5])]
    return g.model("states", [("x", FLOAT, [2, 4, 12])], [(name, FLOAT, shape) for name, shape in outputs], 27), {}


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
    """Operators of ai.onnx.ml: what scikit-learn and boosted trees are exported in."""
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


def open_sizes():
    """Height and width are open, and two inputs have the same height."""
    g = Graph(18)
    g.node("Conv", ["x", g.weight("w", 2, 1, 3, 3)], "c", pads=[1, 1, 1, 1])
    g.node("Add", ["c", "m"], "y")
    return g.model("open", [("x", FLOAT, ["N", 1, "H", "W"]), ("m", FLOAT, ["N", 2, "H", 1])], [("y", FLOAT, ["N", 2, "H", "W"])], 17), {"N": 2, "H": 7, "W": 5}


def qdq():
    """A network between QuantizeLinear and DequantizeLinear, as quantisers write it: stem, depthwise, pointwise, sum, pooling, classes."""
    g = Graph(13)
    count = 0

    def through(x, scale, zero, dtype=np.uint8):
        nonlocal count
        count += 1
        s, z = g.constant(f"s{count}", scale, np.float32), g.constant(f"z{count}", zero, dtype)
        g.node("QuantizeLinear", [x, s, z], f"q{count}")
        g.node("DequantizeLinear", [f"q{count}", s, z], f"d{count}")
        return f"d{count}"

    def weights(x_scale, *shape, bias=True):
        nonlocal count
        count += 1
        scales = (g.random.uniform(0.5, 1.5, shape[0]) * 0.4 / 127 / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        g.constant(f"w{count}", g.random.integers(-127, 128, shape), np.int8)
        g.constant(f"ws{count}", scales, np.float32)
        g.constant(f"wz{count}", [0] * shape[0], np.int8)
        g.node("DequantizeLinear", [f"w{count}", f"ws{count}", f"wz{count}"], f"wd{count}", axis=0)
        if not bias:
            return [f"wd{count}"]
        g.constant(f"b{count}", g.random.integers(-2000, 2000, shape[0]), np.int32)
        g.constant(f"bs{count}", scales * np.float32(x_scale), np.float32)
        g.constant(f"bz{count}", [0] * shape[0], np.int32)
        g.node("DequantizeLinear", [f"b{count}", f"bs{count}", f"bz{count}"], f"bd{count}", axis=0)
        return [f"wd{count}", f"bd{count}"]

    x = through("x", 0.03, 127)
    g.node("Conv", [x] + weights(0.03, 8, 3, 3, 3), "c1", pads=[1, 1, 1, 1], strides=[2, 2])
    g.node("Relu", ["c1"], "r1")
    x = through("r1", 0.01, 0)
    g.node("Conv", [x] + weights(0.01, 8, 1, 3, 3), "c2", pads=[1, 1, 1, 1], group=8)
    g.node("Clip", ["c2", g.constant("low", 0.0, np.float32), g.constant("high", 6.0, np.float32)], "r2")
    y = through("r2", 0.008, -128, np.int8)
    g.node("Conv", [y] + weights(0.008, 8, 8, 1, 1, bias=False), "c3")
    g.node("Add", [x, through("c3", 0.005, 10, np.int8)], "sum")
    x = through("sum", 0.01217, 90)
    g.node("MaxPool", [x], "p1", kernel_shape=[2, 2], strides=[2, 2])
    x = through("p1", 0.01217, 90)
    g.node("GlobalAveragePool", [x], "p2")
    x = through("p2", 0.00931, 80)
    g.node("Flatten", [x], "f")
    x = through("f", 0.00931, 80)
    g.node("Gemm", [x] + weights(0.00931, 5, 8), "y", transB=1)
    return g.model("qdq", [("x", FLOAT, ["N", 3, 12, 10])], [("y", FLOAT, ["N", 5])], 13), {"N": 1}


def qlinear():
    """A network of QLinear operators, the standard's and com.microsoft's: convolution, sum, product, pooling, classes."""
    g = Graph(14)
    number = lambda name, value: g.constant(name, value, np.float32)
    g.node("QuantizeLinear", ["x", number("xs", 0.031), g.constant("xz", 120, np.uint8)], "q")
    g.constant("w", g.random.integers(-127, 128, (6, 3, 3, 3)), np.int8)
    g.constant("ws", g.random.uniform(0.001, 0.002, 6), np.float32)
    g.constant("b", g.random.integers(-2000, 2000, 6), np.int32)
    g.node("QLinearConv", ["q", "xs", "xz", "w", "ws", g.constant("wz", [0] * 6, np.int8), number("cs", 0.0173), g.constant("cz", 90, np.uint8), "b"], "c",
           pads=[1, 1, 1, 1])
    g.constant("v", g.random.integers(-127, 128, (6, 1, 3, 3)), np.int8)
    g.node("QLinearConv", ["c", "cs", "cz", "v", number("vs", 0.0031), g.constant("vz", 0, np.int8), number("ds", 0.0113), g.constant("dz", 130, np.uint8)], "d",
           pads=[1, 1, 1, 1], group=6)
    g.node("QLinearAdd", ["c", "cs", "cz", "d", "ds", "dz", number("es", 0.0207), g.constant("ez", 110, np.uint8)], "e", domain="com.microsoft")
    g.node("QLinearMul", ["e", "es", "ez", "d", "ds", "dz", number("fs", 0.0231), g.constant("fz", 100, np.uint8)], "f", domain="com.microsoft")
    g.node("QLinearGlobalAveragePool", ["f", "fs", "fz", number("gs", 0.0091), g.constant("gz", 60, np.uint8)], "g", domain="com.microsoft")
    g.node("Reshape", ["g", g.constant("rows", [1, 6])], "h")
    g.constant("m", g.random.integers(-127, 128, (4, 6)), np.int8)
    g.constant("ms", g.random.uniform(0.001, 0.002, 4), np.float32)
    g.node("QGemm", ["h", "gs", "gz", "m", "ms", g.constant("mz", [0] * 4, np.int8), g.constant("mb", g.random.integers(-9000, 9000, 4), np.int32), number("is", 0.0107),
                     g.constant("iz", 3, np.uint8)], "i", domain="com.microsoft", transB=1)
    g.node("DequantizeLinear", ["i", "is", "iz"], "y")
    g.node("DequantizeLinear", ["f", "fs", "fz"], "z")
    return g.model("qlinear", [("x", FLOAT, [1, 3, 7, 9])], [("y", FLOAT, [1, 4]), ("z", FLOAT, [1, 6, 7, 9])], 13), {}

def packed():
    """Products with weights of integers: 4 bits in blocks with zero points (MatMulNBits), 8 bits a column, 4 bits in blocks (DequantizeLinear)."""
    g = Graph(15)
    g.constant("q", g.random.integers(0, 256, (9, 3, 16)), np.uint8)
    g.constant("qs", g.random.uniform(0.01, 0.03, 27), np.float32)
    g.node("MatMulNBits", ["x", "q", "qs", g.constant("qz", g.random.integers(0, 256, 18), np.uint8), "", g.constant("b", g.random.standard_normal(9), np.float32)],
           "a", domain="com.microsoft", K=70, N=9, bits=4, block_size=32)
    g.node("Relu", ["a"], "r")
    g.node("DequantizeLinear", [g.constant("v", g.random.integers(-127, 128, (9, 65)), np.int8), g.constant("vs", g.random.uniform(0.001, 0.003, 65), np.float32)],
           "w", axis=1)
    g.node("MatMul", ["r", "w"], "m")
    g.weights.append(helper.make_tensor("u", TensorProto.INT4, [65, 7], g.random.integers(-8, 8, 65 * 7)))
    g.node("DequantizeLinear", ["u", g.constant("us", g.random.uniform(0.01, 0.03, (3, 7)), np.float32)], "t", axis=0, block_size=32)
    g.node("MatMul", ["m", "t"], "y")
    return g.model("packed", [("x", FLOAT, ["rows", 70])], [("y", FLOAT, ["rows", 7])], 21), {"rows": 8}

FIXTURES = {"small_cnn": small_cnn, "residual": residual, "moves": moves, "rows": rows, "external": external, "volume": volume, "integers": integers,
            "recurrent": recurrent, "attention": attention, "indices": indices, "branches": branches, "quantised": quantised,
            "selected": selected, "sampled": sampled, "stored": stored, "scanned": scanned, "states": states, "learning": learning, "qdq": qdq, "qlinear": qlinear,
            "packed": packed, "open": open_sizes}
NOT_IN_ONNXRUNTIME = ["states"] # of a newer opset: what the onnx package's own evaluator computes


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
        from fixtures import imported  # torch is wanted for these alone
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
