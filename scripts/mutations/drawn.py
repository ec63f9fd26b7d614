# SPDX-License-Identifier: MIT
"""Models that the node tests lack: quantised graphs, and operators of com.microsoft and ai.onnx.ml."""
import numpy as np
import onnx
from onnx import helper, numpy_helper

from mutations.case import Case, element_type

LEARNING, MICROSOFT = "ai.onnx.ml", "com.microsoft"


class Graph:
    """A graph to which nodes and weights are appended."""

    def __init__(self, r, opset):
        self.r, self.opset, self.nodes, self.weights, self.feeds, self.domains = r, opset, [], [], {}, set()

    def floats(self, *shape, scale=1.0):
        return np.array([self.r.gauss(0, scale) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)

    def bytes(self, kind, *shape):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        return np.array([self.r.randint(low, high) for _ in range(int(np.prod(shape)))], kind).reshape(shape)

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def input(self, array):
        name = f"x{len(self.feeds)}"
        self.feeds[name] = np.asarray(array)
        return name

    def node(self, kind, inputs, outputs=1, domain="", **attributes):
        names = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        self.domains.add(domain)
        return names[0]

    def case(self, name, outputs=None):
        """`outputs`: names; default: those of the last node."""
        infos = [helper.make_tensor_value_info(n, element_type(a), list(a.shape)) for n, a in self.feeds.items()]
        outputs = [helper.make_empty_tensor_value_info(n) for n in outputs or self.nodes[-1].output]
        graph = helper.make_graph(self.nodes, "drawn", infos, outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 3 if d == LEARNING else 1) for d in sorted(self.domains) if d]
        model = helper.make_model(graph, opset_imports=opsets)
        model.ir_version = 10
        return Case(name, model, self.feeds)


def scale_and_zero(g, kind, count=0):
    shape = (count,) if count else ()
    return (g.weight(np.array([g.r.choice([0.5, 0.1, 0.02, 0.37]) for _ in range(count or 1)], np.float32).reshape(shape)),
            g.weight(np.array([g.r.choice([0, 0, 3, 100]) for _ in range(count or 1)], kind).reshape(shape)))


def quantised(r):
    """DequantizeLinear, one or two float operators, QuantizeLinear."""
    g, kind = Graph(r, r.choice([13, 17, 19, 21])), r.choice([np.uint8, np.int8])
    way = r.choice(["Conv", "Gemm", "MatMul", "Add", "Mul", "MaxPool", "AveragePool", "GlobalAveragePool", "Relu", "Concat", "Sigmoid"])
    image = "Pool" in way or way == "Conv"
    shape = (1, r.choice([1, 2, 3]), r.randint(1, 5), r.randint(1, 5)) if image else (r.randint(1, 3), r.randint(1, 5))
    x = g.node("DequantizeLinear", [g.input(g.bytes(kind, *shape)), *scale_and_zero(g, kind)])
    if way == "Conv":
        filters = r.randint(1, 3)
        scale = g.weight(np.array([r.choice([0.5, 0.1, 0.02]) for _ in range(filters)], np.float32))
        zero = g.weight(np.zeros(filters, np.int8))
        weight = g.bytes(np.int8, filters, shape[1], r.randint(1, shape[2]), r.randint(1, shape[3]))
        weight = g.node("DequantizeLinear", [g.weight(weight), scale, zero], axis=0)
        y = g.node("Conv", [x, weight] + ([g.weight(g.floats(filters))] if r.random() < 0.5 else []))
    elif way in ("Gemm", "MatMul"):
        weight = g.node("DequantizeLinear", [g.weight(g.bytes(np.int8, shape[1], r.randint(1, 4))), *scale_and_zero(g, np.int8)])
        y = g.node(way, [x, weight])
    elif way in ("Add", "Mul"):
        y = g.node(way, [x, g.node("DequantizeLinear", [g.input(g.bytes(kind, *shape[r.randint(0, 1):])), *scale_and_zero(g, kind)])])
    elif way == "Concat":
        y = g.node(way, [x, x], axis=r.choice([0, 1, -1]))
    elif way in ("MaxPool", "AveragePool"):
        y = g.node(way, [x], kernel_shape=[r.randint(1, shape[2]), r.randint(1, shape[3])])
    else:
        y = g.node(way, [x])
    if r.random() < 0.4:
        y = g.node(r.choice(["Relu", "LeakyRelu"]), [y])
    g.node("QuantizeLinear", [y, *scale_and_zero(g, kind)])
    return g.case("quantised " + way)


def microsoft(r):
    """Operators that onnxruntime's quantiser writes, and low-bit weights."""
    g, kind, way = Graph(r, 17), r.choice([np.uint8, np.int8]), r.choice(["QLinearAdd", "QLinearMul", "QLinearGlobalAveragePool", "QGemm",
                                                                          "MatMulNBits"])
    if way in ("QLinearAdd", "QLinearMul"):
        shape = [r.randint(1, 4) for _ in range(r.randint(1, 3))]
        other = [1 if r.random() < 0.3 else d for d in shape]
        inputs = [g.input(g.bytes(kind, *shape)), *scale_and_zero(g, kind)]
        inputs += [(g.input if r.random() < 0.5 else g.weight)(g.bytes(kind, *other)), *scale_and_zero(g, kind), *scale_and_zero(g, kind)]
        g.node(way, inputs, domain=MICROSOFT)
    elif way == "QLinearGlobalAveragePool":
        x = g.input(g.bytes(kind, 1, r.randint(1, 4), r.randint(1, 5), r.randint(1, 5)))
        g.node(way, [x, *scale_and_zero(g, kind), *scale_and_zero(g, kind)], domain=MICROSOFT, channels_last=0)
    elif way == "QGemm":
        m, k, n = r.randint(1, 4), r.randint(1, 6), r.randint(1, 4)
        trans = r.randint(0, 1)
        bias = g.weight(g.bytes(np.int8, n).astype(np.int32)) if r.random() < 0.5 else ""
        inputs = [g.input(g.bytes(kind, m, k)), *scale_and_zero(g, kind), g.weight(g.bytes(np.int8, *((n, k) if trans else (k, n)))),
                  *scale_and_zero(g, np.int8), bias, *scale_and_zero(g, kind)]
        g.node(way, inputs, domain=MICROSOFT, transB=trans)
    else:
        bits, size, n = r.choice([4, 8]), r.choice([16, 32]), r.randint(1, 4)
        k = r.choice([size, size * 2, size + 5, 7])
        blocks = -(-k // size)
        inputs = [g.input(g.floats(r.randint(1, 3), k)), g.weight(g.bytes(np.uint8, n, blocks, size * bits // 8)),
                  g.weight(np.abs(g.floats(n * blocks)))]
        if r.random() < 0.5:
            inputs.append(g.weight(g.bytes(np.uint8, n * (-(-blocks * bits // 8)))))
        g.node(way, inputs, domain=MICROSOFT, K=k, N=n, bits=bits, block_size=size)
    return g.case(way)


def random_tree(r, features, leaves_of):
    """Columns of a tree ensemble: one tree of up to seven nodes."""
    rows = []

    def grow(depth):
        here = len(rows)
        rows.append(None)
        if depth == 0 or r.random() < 0.3:
            rows[here] = ("LEAF", 0, 0.0, 0, 0)
            leaves_of(here)
            return here
        yes, no = grow(depth - 1), grow(depth - 1)
        rows[here] = (r.choice(["BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]), r.randrange(features),
                      r.choice([0.0, 0.5, -0.5, 1.0]), yes, no)
        return here

    grow(2)
    return rows


def learning(r):
    """Operators of ai.onnx.ml on numbers."""
    g, n, f = Graph(r, 17), r.randint(1, 4), r.randint(1, 4)
    x = g.input(np.round(g.floats(n, f) * 2) / np.float32(2))
    way = r.choice(["Scaler", "Normalizer", "Binarizer", "Imputer", "LinearRegressor", "LinearClassifier", "TreeEnsembleRegressor", "SVMRegressor"])
    if way == "Scaler":
        g.node(way, [x], domain=LEARNING, offset=[0.5] * r.choice([1, f]), scale=[2.0] * r.choice([1, f]))
    elif way == "Normalizer":
        g.node(way, [x], domain=LEARNING, norm=r.choice(["MAX", "L1", "L2"]))
    elif way == "Binarizer":
        g.node(way, [x], domain=LEARNING, threshold=r.choice([0.0, 0.5]))
    elif way == "Imputer":
        g.node(way, [x], domain=LEARNING, imputed_value_floats=[7.0] * r.choice([1, f]), replaced_value_float=r.choice([0.0, 0.5]))
    elif way == "LinearRegressor":
        t = r.randint(1, 3)
        g.node(way, [x], domain=LEARNING, coefficients=g.floats(t * f).tolist(), intercepts=g.floats(t).tolist(), targets=t,
               post_transform=r.choice(["NONE", "LOGISTIC", "SOFTMAX"]))
    elif way == "LinearClassifier":
        t = r.randint(2, 3)
        g.node(way, [x], 2, domain=LEARNING, coefficients=g.floats(t * f).tolist(), intercepts=g.floats(t).tolist(),
               classlabels_ints=list(range(3, 3 + t)), post_transform=r.choice(["NONE", "LOGISTIC", "SOFTMAX"]), multi_class=r.randint(0, 1))
    elif way == "SVMRegressor":
        s = r.randint(1, 3)
        g.node(way, [x], domain=LEARNING, kernel_type=r.choice(["LINEAR", "RBF", "POLY", "SIGMOID"]), kernel_params=[0.5, 0.25, 2.0], n_supports=s,
               support_vectors=g.floats(s * f).tolist(), coefficients=g.floats(s).tolist(), rho=[0.5])
    else:
        columns, targets = [], []
        for tree in range(r.randint(1, 3)):
            rows = random_tree(r, f, lambda here, tree=tree: targets.append((tree, here, r.randrange(2), r.choice([1.0, -0.5, 2.0]))))
            columns += [(tree, i, *row) for i, row in enumerate(rows)]
        g.node(way, [x], domain=LEARNING, n_targets=2, nodes_treeids=[c[0] for c in columns], nodes_nodeids=[c[1] for c in columns],
               nodes_modes=[c[2] for c in columns], nodes_featureids=[c[3] for c in columns], nodes_values=[c[4] for c in columns],
               nodes_truenodeids=[c[5] for c in columns], nodes_falsenodeids=[c[6] for c in columns], target_treeids=[t[0] for t in targets],
               target_nodeids=[t[1] for t in targets], target_ids=[t[2] for t in targets], target_weights=[t[3] for t in targets],
               aggregate_function=r.choice(["SUM", "AVERAGE", "MIN", "MAX"]), post_transform=r.choice(["NONE", "LOGISTIC"]))
    return g.case(way)


DRAWN = [quantised, quantised, microsoft, learning]
