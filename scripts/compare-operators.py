#!/usr/bin/env python3
"""Compare SDLF with onnxruntime, operator by operator, at every opset in which the operator's meaning changed.

    scripts/compare-operators.py [--peer build/tests/onnx/onnx_peer] [--calculator cpu] [--only Conv] [--cases 12] [--seed 1]
                                 [--list unsupported] [--keep FOLDER]

For each operator models of one node are drawn at random (attributes, shapes, which inputs are constants), at each version of the
operator from opset 7 to 22. Both programs get the same input. An element may differ by 1e-5 + 1e-4 of what onnxruntime says.
What onnxruntime itself refuses is not counted. The exit status is 1 if any case failed. Needs numpy, onnx and onnxruntime.

Not drawn is what onnxruntime 1.31 does otherwise than the standard says: "same" padding with dilations, or with windows smaller
than their stride, windows larger than the padded input, the mask of a Dropout before opset 12, align_corners with scales that
give no whole number of elements. Nor are scales to the nearest element that hit the middle of two only in some precisions.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    print(f"{missing}: nothing is compared")
    sys.exit(77)

FIRST, LAST = 7, 22


class Case:
    """One node: its inputs (name, array or None, constant?), its attributes, its number of outputs."""

    def __init__(self, kind, opset):
        self.kind, self.opset, self.inputs, self.attributes, self.outputs = kind, opset, [], {}, 1

    def add(self, array, constant=False):
        self.inputs.append((f"i{len(self.inputs)}", None if array is None else np.asarray(array), constant))
        return self

    def set(self, **attributes):
        schema = onnx.defs.get_schema(self.kind, max_inclusive_version=self.opset)
        for name, value in attributes.items():
            if value is not None and name in schema.attributes:
                self.attributes[name] = value
        return self

    def model(self):
        def info(name, array):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))

        while self.inputs and self.inputs[-1][1] is None:
            self.inputs.pop()
        names = ["" if array is None else name for name, array, _ in self.inputs]
        outputs = [f"o{i}" for i in range(self.outputs)]
        node = helper.make_node(self.kind, names, outputs, **self.attributes)
        there = [(n, a) for n, a, constant in self.inputs if a is not None and not constant]
        weights = [numpy_helper.from_array(a, n) for n, a, constant in self.inputs if a is not None and constant]
        graph = helper.make_graph([node], "case", [info(n, a) for n, a in there],
                                  [helper.make_empty_tensor_value_info(o) for o in outputs], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 10
        return model, dict(there)

    def __str__(self):
        shapes = ", ".join("-" if a is None else f"{a.dtype}{list(a.shape)}{'c' if c else ''}" +
                           (f"={a.tolist()}" if a.size < 7 and a.dtype != np.float32 else "") for _, a, c in self.inputs)
        return f"{self.kind} opset {self.opset} ({shapes}) {self.attributes}"


R = random.Random()
G = np.random.default_rng()


def floats(*shape, scale=1.0):
    return (G.standard_normal(shape) * scale).astype(np.float32)


def maybe(value, chance=0.5):
    return value if R.random() < chance else None


def coin(chance=0.5):
    return R.random() < chance


def window(c, spatial, side, low=7, high=9):
    """Attributes of a sliding window, and the input's sizes."""
    sizes = [R.randint(low, high) for _ in range(spatial)]
    kernel = [R.randint(1, side) for _ in range(spatial)]
    same = R.choice([None, None, None, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
    strides = maybe([R.randint(1, min(3, k) if same and same[0] == "S" else 3) for k in kernel], 0.7)
    c.set(kernel_shape=kernel, strides=strides, auto_pad=same)
    if same is None or same[0] != "S":
        c.set(dilations=maybe([R.randint(1, 2) for _ in range(spatial)]))
    if same in (None, "NOTSET"):
        c.set(pads=maybe([R.randint(0, (k - 1) if k > 1 else 0) for k in kernel + kernel]))
    return sizes, kernel


# ---- one function for each family: draws a case ----

def conv(kind, opset):
    c = Case(kind, opset)
    spatial, group = R.choice([1, 2, 2, 3]), R.choice([1, 1, 2])
    sizes, kernel = window(c, spatial, 3)
    c.set(group=maybe(group, 1.0 if group > 1 else 0.5))
    channels, filters = 2 * group, 3 * group
    x = floats(1, channels, *sizes)
    if kind == "Conv":
        c.add(x).add(floats(filters, channels // group, *kernel), True).add(maybe(floats(filters)), True)
    else:
        strides = c.attributes.get("strides", [1] * spatial)
        if coin(0.3) and c.attributes.get("auto_pad", "NOTSET") == "NOTSET":
            c.set(output_padding=[R.randint(0, s - 1) for s in strides])
        elif coin(0.2) and "pads" not in c.attributes:
            dil = c.attributes.get("dilations", [1] * spatial)
            c.set(output_shape=[(n - 1) * s + (k - 1) * d + 1 + R.randint(-1 if k > 1 else 0, 0)
                                for n, s, k, d in zip(sizes, strides, kernel, dil)])
        c.add(x).add(floats(channels, filters // group, *kernel), True).add(maybe(floats(filters)), True)
    return c


def pool(kind, opset):
    c = Case(kind, opset)
    spatial = R.choice([1, 2, 2, 3])
    sizes, _ = window(c, spatial, 4)
    if "auto_pad" not in c.attributes or c.attributes["auto_pad"] in ("NOTSET", "VALID"):
        c.set(ceil_mode=maybe(1))
    if kind == "MaxPool":
        c.set(storage_order=maybe(1, 0.2) if spatial < 3 else None)
        c.outputs = 2 if coin(0.4) and opset >= 8 else 1
        x = floats(R.choice([1, 1, 2]), 2, *sizes)
        if opset >= 12 and coin(0.2) and c.outputs == 1:
            x = (G.integers(0, 120, x.shape)).astype(R.choice([np.uint8, np.int8]))
        return c.add(x)
    return c.set(count_include_pad=maybe(1)).add(floats(1, 2, *sizes))


def global_pool(kind, opset):
    c = Case(kind, opset).add(floats(2, 3, *[R.randint(1, 5) for _ in range(R.choice([1, 2, 3]))]))
    return c.set(p=maybe(R.randint(1, 4)))


def gemm(kind, opset):
    c, m, k, n = Case(kind, opset), *[R.randint(1, 6) for _ in range(3)]
    ta, tb = R.randint(0, 1), R.randint(0, 1)
    c.set(transA=maybe(ta, 1.0 if ta else 0.5), transB=maybe(tb, 1.0 if tb else 0.5),
          alpha=maybe(R.choice([0.5, -2.0])), beta=maybe(R.choice([0.5, 0.0, 3.0])))
    c.add(floats(*((k, m) if ta else (m, k)))).add(floats(*((n, k) if tb else (k, n))), coin())
    shape = R.choice([(n,), (1, n), (m, n), (m, 1), (1,), ()])
    return c.add(floats(*shape) if opset < 11 or coin(0.7) else None, coin())


def matmul(kind, opset):
    c, m, k, n = Case(kind, opset), *[R.randint(1, 5) for _ in range(3)]
    a, b = R.choice([((m, k), (k, n)), ((2, m, k), (k, n)), ((2, m, k), (2, k, n)), ((3, 1, m, k), (2, k, n)),
                     ((k,), (k, n)), ((m, k), (k,)), ((2, m, k), (k,)), ((k,), (k,)), ((m, k), (2, k, n))])
    return c.add(floats(*a)).add(floats(*b), coin())


def batch_norm(kind, opset):
    c, n = Case(kind, opset), R.randint(1, 4)
    x = floats(2, n, *[R.randint(1, 4) for _ in range(R.choice([0, 1, 2, 3]))])
    c.add(x).add(floats(n), True).add(floats(n), True).add(floats(n), True)
    return c.add(np.abs(floats(n)) + np.float32(0.5), True).set(epsilon=maybe(1e-2), momentum=maybe(0.8))


def layer_norm(kind, opset):
    c, rank = Case(kind, opset), R.choice([2, 3, 4])
    shape = [R.randint(1, 4) for _ in range(rank)]
    axis = R.randint(-rank, rank - 1)
    known = coin()
    c.add(floats(*shape)).add(floats(*shape[axis:]), known).add(maybe(floats(*shape[axis:])), known)
    return c.set(axis=axis, epsilon=maybe(1e-2))


def instance_norm(kind, opset):
    c, n, known = Case(kind, opset), R.randint(1, 4), coin()
    c.add(floats(2, n, *[R.randint(2, 4) for _ in range(R.choice([1, 2, 3]))]))
    return c.add(floats(n), known).add(floats(n), known).set(epsilon=maybe(1e-2))


def group_norm(kind, opset):
    c, groups = Case(kind, opset), R.choice([1, 2])
    n, known = 4, coin()
    scale = n if opset >= 21 else groups
    c.add(floats(2, n, 3, R.randint(1, 4))).add(floats(scale), known).add(floats(scale), known)
    return c.set(num_groups=groups, epsilon=maybe(1e-2))


def lrn(kind, opset):
    c = Case(kind, opset).add(floats(1, R.randint(1, 7), 3, 2)).set(size=R.choice([1, 3, 5]), alpha=maybe(0.2))
    return c.set(beta=maybe(0.5), bias=maybe(2.0))


def unary(kind, opset):
    x = floats(2, 3, R.randint(1, 5), scale=2)
    if kind in ("Sqrt", "Log"):
        x = np.abs(x) + np.float32(0.01)
    if kind == "Reciprocal":
        x = np.where(np.abs(x) < 0.1, np.float32(1), x)
    if kind == "Round":
        x = np.round(x * 2) / np.float32(2)
    if kind in ("Abs", "Neg", "Sign") and coin(0.3):
        x = G.integers(-100, 100, x.shape).astype(R.choice([np.int32, np.int64, np.int8]))
    if kind == "Relu" and opset >= 14 and coin(0.3):
        x = G.integers(-100, 100, x.shape).astype(R.choice([np.int32, np.int8]))
    c = Case(kind, opset).add(x)
    return c.set(alpha=maybe(R.choice([0.3, 1.5])), beta=maybe(0.4), gamma=maybe(1.2), approximate=maybe("tanh"))


def prelu(kind, opset):
    shape = (2, 3, 2, R.randint(1, 4))
    slope = R.choice([(1,), (3, 1, 1), (shape[3],), shape, ()])
    return Case(kind, opset).add(floats(*shape)).add(floats(*slope), coin())


def clip(kind, opset):
    x = floats(3, 4, scale=3)
    c = Case(kind, opset)
    if opset < 11:
        return c.add(x).set(min=maybe(-1.5), max=maybe(2.0))
    if opset >= 12 and coin(0.4):
        kind_of = R.choice([np.int32, np.int64, np.int8, np.uint8])
        c.add(G.integers(0, 100, (3, 4)).astype(kind_of))
        return c.add(maybe(kind_of(20)), coin()).add(maybe(kind_of(60)), coin())
    return c.add(x).add(maybe(np.float32(-1.5)), coin(0.8)).add(maybe(np.float32(2)), coin(0.8))


def softmax(kind, opset):
    rank = R.randint(1, 4)
    c = Case(kind, opset).add(floats(*[R.randint(1, 4) for _ in range(rank)], scale=3))
    low = 0 if opset < 11 else -rank
    return c.set(axis=R.randint(low, rank - 1) if rank < 2 and opset < 13 else maybe(R.randint(low, rank - 1), 0.8))


def numbers(kind_of, *shape, least=-50):
    if kind_of == np.bool_:
        return G.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(kind_of, np.floating):
        return (G.standard_normal(shape) * 2).astype(kind_of)
    return G.integers(0 if np.issubdtype(kind_of, np.unsignedinteger) else least, 50, shape).astype(kind_of)


def pair():
    """Two shapes that broadcast."""
    shape = [R.randint(1, 4) for _ in range(R.randint(1, 4))]
    other = [1 if coin(0.3) else d for d in shape][R.randint(0, len(shape)):]
    return (shape, other) if coin() else (other, shape)


def binary(kind, opset):
    a, b = pair()
    kinds = [np.float32, np.float32, np.float64, np.int32, np.int64]
    if kind in ("Equal", "Greater", "Less") and opset < 9:
        kinds = [np.float32, np.float32] if kind != "Equal" else [np.int32, np.int64]
    of = R.choice(kinds)
    if kind in ("And", "Or", "Xor"):
        of = np.bool_
    elif kind == "Equal" and coin(0.2):
        of = np.bool_
    x, y = numbers(of, *a), numbers(of, *b)
    if kind == "Div":
        y = np.where(np.abs(y) < 0.2, of(2), y).astype(of)
    if kind == "Pow":
        of = np.float32 if opset < 12 else R.choice([np.float32, np.float64, np.int32])
        x = (np.abs(numbers(np.float32, *a)) + 0.3).astype(of)
        y = np.round(np.abs(numbers(np.float32, *b))).astype(of if opset < 12 else R.choice([np.float32, np.int32, np.int64]))
    first = coin(0.2)
    return Case(kind, opset).add(x, first).add(y, not first and coin(0.3))


def many(kind, opset):
    c, shape = Case(kind, opset), [R.randint(1, 3) for _ in range(3)]
    of = R.choice([np.float32, np.float32, np.int32, np.int64]) if kind in ("Min", "Max") and opset >= 12 else np.float32
    for i in range(R.randint(1, 4)):
        other = [1 if coin(0.3) else d for d in shape][R.randint(0, 2):] if i > 0 and opset >= 8 else shape
        c.add(numbers(of, *other), i > 0 and coin(0.2))
    return c


def concat(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 4)
    shape, axis = [R.randint(1, 3) for _ in range(rank)], R.randint(-rank, rank - 1) if opset >= 11 else R.randint(0, rank - 1)
    of = R.choice([np.float32, np.int64, np.int32, np.uint8, np.bool_])
    for _ in range(R.choice([1, 2, 3, 20])):
        shape[axis] = R.randint(1, 3)
        c.add(numbers(of, *shape), coin(0.2))
    return c.set(axis=axis)


def split(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 3)
    shape, axis = [R.randint(1, 4) for _ in range(rank)], R.randint(0, rank - 1)
    parts = R.randint(1, 3)
    sizes = [R.randint(1, 3) for _ in range(parts)]
    how = R.choice(["sizes", "even", "number"])
    if how == "sizes":
        shape[axis] = sum(sizes)
    elif how == "even" or opset < 18:
        shape[axis] = parts * R.randint(1, 3)
    else:
        shape[axis] = parts * R.randint(1, 2) + R.randint(0, parts - 1)
    c.add(numbers(R.choice([np.float32, np.int32]), *shape)).set(axis=axis if opset < 11 or coin() else axis - rank)
    if how == "sizes" and opset < 13:
        c.set(split=sizes)
    elif how == "sizes":
        c.add(np.array(sizes, np.int64), True)
    elif opset >= 18:
        c.set(num_outputs=parts)
    c.outputs = parts
    return c


def slice_(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 4)
    shape = [R.randint(2, 6) for _ in range(rank)]
    axes = R.sample(range(rank), R.randint(1, rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        n = shape[axis]
        if opset >= 10 and coin(0.3):
            start, end, step = R.choice([(n - 1, -n - 1, -1), (-1, -1000, -2), (n + 5, 0, -1), (-1, 0, -1)])
        else:
            start, end, step = R.choice([(0, n, 1), (1, 2**31 - 1, 1), (-2, 1000, 1), (0, -1, 1), (1, n, 2), (0, 2**63 - 1, 3)])
        starts.append(start), ends.append(end), steps.append(step if opset >= 10 else 1)
    axes = [a - rank if coin(0.3) and opset >= 10 else a for a in axes]
    c.add(numbers(R.choice([np.float32, np.int64]), *shape))
    if opset < 10:
        return c.set(starts=starts, ends=ends, axes=axes)
    of = R.choice([np.int64, np.int64, np.int32])
    if of == np.int32:
        ends = [min(e, 2**31 - 1) for e in ends]
    c.add(np.array(starts, of), True).add(np.array(ends, of), True).add(np.array(axes, of), True)
    return c.add(np.array(steps, of) if coin(0.8) or min(steps) < 1 else None, True)


def pad(kind, opset):
    c, rank = Case(kind, opset), R.randint(2, 4)
    shape = [R.randint(3, 5) for _ in range(rank)]
    mode = R.choice([None, "constant", "reflect", "edge"] + (["wrap"] if opset >= 19 else []))
    least = -1 if mode in (None, "constant") else 0
    axes = R.sample(range(rank), R.randint(1, rank)) if opset >= 18 and coin() else None
    count = len(axes) if axes else rank
    pads = [R.randint(least, 2) for _ in range(2 * count)]
    c.set(mode=mode).add(floats(*shape))
    if opset < 11:
        return c.set(pads=pads, value=maybe(1.5))
    c.add(np.array(pads, np.int64), True).add(maybe(np.float32(1.5)), True)
    return c.add(None if axes is None else np.array(axes, np.int64), True)


def view(kind, opset):
    c, rank = Case(kind, opset), R.randint(2, 4)
    shape = [R.randint(1, 4) for _ in range(rank)]
    x = numbers(R.choice([np.float32, np.int64, np.bool_]) if opset >= 9 or kind != "Flatten" else np.float32, *shape)
    if kind == "Flatten":
        return c.add(x).set(axis=maybe(R.randint(-rank if opset >= 11 else 0, rank)))
    if kind == "Transpose":
        return c.add(x).set(perm=maybe(R.sample(range(rank), rank)))
    if kind == "Reshape":
        to = R.choice([[-1], [0, -1], [x.size], [1, -1, 1], [-1, shape[-1]], [shape[0], 0, -1] if rank > 2 else [0, 0]])
        return c.add(x).add(np.array(to, np.int64), True)
    if kind == "Squeeze":
        ones = R.sample(range(rank), R.randint(1, rank))
        x = numbers(np.float32, *[1 if i in ones else 2 for i in range(rank)])
        axes = [a - rank if coin() and opset >= 11 else a for a in ones]
        c.add(x)
        if coin(0.3):
            return c
        return c.set(axes=axes) if opset < 13 else c.add(np.array(axes, np.int64), True)
    new = R.sample(range(rank + 2), 2)
    axes = [a - rank - 2 if coin() and opset >= 11 else a for a in new]
    c.add(x)
    return c.set(axes=axes) if opset < 13 else c.add(np.array(axes, np.int64), True)


def spread(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 3)
    shape = [R.randint(1, 3) for _ in range(rank)]
    x = numbers(R.choice([np.float32, np.int32]), *shape)
    if kind == "Tile":
        return c.add(x).add(np.array([R.randint(1, 3) for _ in shape], np.int64), True)
    to = [R.choice([1, d]) if d > 1 else R.randint(1, 3) for d in shape]
    return c.add(x).add(np.array([2] * R.randint(0, 2) + to, np.int64), True)


def dropout(kind, opset):
    c = Case(kind, opset).add(floats(3, 4))
    if opset < 12:
        return c.set(ratio=maybe(0.3))
    c.outputs = R.choice([1, 2])
    return c.add(maybe(np.float32(0.3)), True).add(maybe(np.bool_(False), 0.3), True)


def shape_of(kind, opset):
    c = Case(kind, opset).add(floats(*[R.randint(1, 4) for _ in range(R.randint(1, 4))]))
    return c.set(start=maybe(R.randint(-3, 3)), end=maybe(R.randint(-3, 3)))


def constant_of_shape(kind, opset):
    c = Case(kind, opset).add(np.array([R.randint(1, 3) for _ in range(R.randint(1, 3))], np.int64), True)
    return c.set(value=maybe(numpy_helper.from_array(numbers(R.choice([np.float32, np.int64, np.int32]), 1))))


def gather(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 3)
    shape = [R.randint(1, 4) for _ in range(rank)]
    axis = R.randint(-rank, rank - 1)
    low = -shape[axis] if opset >= 11 else 0
    index = G.integers(low, shape[axis], R.choice([(), (1,), (2,), (2, 3)])).astype(R.choice([np.int64, np.int32]))
    return c.add(numbers(R.choice([np.float32, np.int64]), *shape)).add(index, coin()).set(axis=maybe(axis, 1.0 if axis else 0.5))


def cast(kind, opset):
    kinds = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.bool_, np.float16]
    of, to = R.choice(kinds), R.choice(kinds)
    x = numbers(of, 3, 4) if to not in (np.uint8, np.int8, np.int32, np.int64) else np.abs(numbers(of, 3, 4))
    if np.float16 in (of, to) and np.issubdtype(x.dtype, np.floating):
        x = np.round(x * 8) / of(8)  # what float16 holds, too
    return Case(kind, opset).add(x).set(to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def where(kind, opset):
    a, b = pair()
    of = R.choice([np.float32, np.int64, np.int32, np.uint8])
    return Case(kind, opset).add(numbers(np.bool_, *b), coin(0.2)).add(numbers(of, *a), coin(0.2)).add(numbers(of, *b), coin(0.2))


def reduction(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 4)
    of = R.choice([np.float32] * 4 + ([np.int32, np.int64] if kind in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean") else []))
    x = numbers(of, *[R.randint(1, 4) for _ in range(rank)])
    if "Log" in kind:
        x = np.abs(x) + of(1)
    c.add(x).set(keepdims=maybe(R.randint(0, 1)), noop_with_empty_axes=maybe(1, 0.2))
    axes = [a - rank if coin() and opset >= 11 else a for a in R.sample(range(rank), R.randint(1, rank))]
    if coin(0.2):
        return c
    if opset >= (13 if kind == "ReduceSum" else 18):
        return c.add(np.array(axes, np.int64), True)
    return c.set(axes=axes)


def arg(kind, opset):
    rank = R.randint(1, 4)
    x = np.round(floats(*[R.randint(1, 5) for _ in range(rank)], scale=2))
    if coin(0.3):
        x = x.astype(R.choice([np.int32, np.int8, np.uint8] if opset >= 13 else [np.int32]))
    axis = R.randint(-rank if opset >= 11 else 0, rank - 1)
    return Case(kind, opset).add(x).set(axis=axis, keepdims=maybe(R.randint(0, 1)), select_last_index=maybe(1))


def top_k(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 3)
    shape = [R.randint(2, 5) for _ in range(rank)]
    axis = R.randint(-rank if opset >= 10 else 0, rank - 1)
    k = R.randint(1, shape[axis])
    x = floats(*shape) if opset < 11 or coin(0.7) else G.permutation(int(np.prod(shape))).reshape(shape).astype(R.choice([np.int32, np.int64]))
    c.outputs = 2
    c.add(x).set(axis=axis, largest=maybe(R.randint(0, 1)))
    return c.set(k=k) if opset < 10 else c.add(np.array([k], np.int64), True)


def range_(kind, opset):
    of = R.choice([np.float32, np.int32, np.int64])
    a, b, d = R.choice([(0, 5, 1), (3, -4, -2), (2, 9, 3), (1, 8, 2)])
    return Case(kind, opset).add(of(a), True).add(of(b), True).add(of(d), True)


def resize(kind, opset):
    c, spatial = Case(kind, opset), R.choice([1, 2])
    x = floats(1, 2, *[R.randint(2, 6) for _ in range(spatial)])
    mode = R.choice(["nearest", "linear"] + (["cubic"] if opset >= 11 and spatial == 2 else []))
    scales = [1.0, 1.0] + [R.choice([0.5, 2.0, 4.0] if mode == "nearest" else [0.5, 0.6, 1.5, 2.0, 3.0]) for _ in range(spatial)]
    c.set(mode=mode).add(x)
    if kind == "Upsample" or opset == 10:
        scales = [max(1.0, s) if kind == "Upsample" else s for s in scales]
        return c.set(scales=scales) if opset < 9 else c.add(np.array(scales, np.float32), True)
    shapes = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    if mode == "nearest":
        shapes.remove("align_corners")
    c.set(coordinate_transformation_mode=maybe(R.choice(shapes + (["half_pixel_symmetric"] if opset >= 19 else [])), 0.8))
    corners = c.attributes.get("coordinate_transformation_mode") == "align_corners"
    if mode == "nearest":
        c.set(nearest_mode=maybe(R.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if mode == "cubic":
        c.set(cubic_coeff_a=maybe(-0.5), exclude_outside=maybe(1, 0.3))
    if mode != "nearest" and opset >= 18 and coin(0.3):
        c.set(antialias=1)
    roi = None if opset >= 13 else np.array([], np.float32)
    if mode == "nearest" or (coin(0.6) and not (corners and any(s * n % 1 for s, n in zip(scales, x.shape)))):
        return c.add(roi, True).add(np.array(scales, np.float32), True)
    sizes = [1, 2] + [R.randint(1, 9) for _ in range(spatial)]
    return c.add(roi, True).add(None if opset >= 13 else np.array([], np.float32), True).add(np.array(sizes, np.int64), True)


def depth(kind, opset):
    b = R.choice([1, 2, 3])
    c = Case(kind, opset).set(blocksize=b, mode=maybe(R.choice(["DCR", "CRD"])) if opset >= 11 else None)
    return c.add(floats(1, 2 * b * b, 2, 3) if kind == "DepthToSpace" else floats(1, 2, 2 * b, 3 * b))


def quantize(kind, opset):
    c = Case(kind, opset)
    per_axis = opset >= 13 and coin()
    blocks = opset >= 21 and not per_axis and coin(0.4)
    axis, shape = R.randint(0, 2), [2, 3, 4]
    of = R.choice([np.uint8, np.int8])
    side = [shape[axis]] if per_axis else []
    if blocks:
        side = list(shape)
        side[axis] = 2
        shape[axis] = R.choice([4, 5, 6])
        c.set(block_size=-(-shape[axis] // 2))
    scale = (np.abs(floats(*side)) + np.float32(0.1)).astype(np.float32)
    zero = numbers(of, *side, least=-20)
    c.set(axis=axis if per_axis or blocks else None)
    constant = coin()
    if kind == "QuantizeLinear":
        return c.add(floats(*shape, scale=20)).add(scale, constant).add(maybe(zero), constant)
    x = numbers(of, *shape)
    if coin(0.2):
        x, zero = G.integers(-2**20, 2**20, shape).astype(np.int32), None
    return c.add(x, coin(0.3)).add(scale, constant or opset < 13).add(zero if coin(0.8) else None, constant)


FAMILIES = {
    conv: "Conv ConvTranspose", pool: "MaxPool AveragePool", global_pool: "GlobalAveragePool GlobalMaxPool GlobalLpPool",
    gemm: "Gemm", matmul: "MatMul", batch_norm: "BatchNormalization", layer_norm: "LayerNormalization",
    instance_norm: "InstanceNormalization", group_norm: "GroupNormalization", lrn: "LRN",
    unary: "Relu LeakyRelu Elu Selu Celu Gelu Mish Softplus Softsign HardSigmoid HardSwish Sigmoid Tanh Erf Sqrt Exp Log Abs Neg "
           "Reciprocal Floor Ceil Round Identity",
    prelu: "PRelu", clip: "Clip", softmax: "Softmax LogSoftmax",
    binary: "Add Sub Mul Div Pow Equal Greater Less GreaterOrEqual LessOrEqual And Or Xor", many: "Min Max Mean Sum",
    concat: "Concat", split: "Split", slice_: "Slice", pad: "Pad", view: "Flatten Reshape Transpose Squeeze Unsqueeze",
    spread: "Expand Tile", dropout: "Dropout", shape_of: "Shape Size", constant_of_shape: "ConstantOfShape", gather: "Gather",
    cast: "Cast", where: "Where",
    reduction: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare",
    arg: "ArgMax ArgMin", top_k: "TopK", range_: "Range", resize: "Resize Upsample", depth: "DepthToSpace SpaceToDepth",
    quantize: "QuantizeLinear DequantizeLinear",
}


def versions(kind):
    """The opsets from 7 to 22 in which a meaning of the operator begins."""
    every = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == kind and s.domain == ""]
    starts = sorted(s.since_version for s in every if s.since_version <= LAST)
    found = {max(FIRST, since) for since in starts}
    if starts and starts[0] > FIRST:
        found.discard(FIRST)
    return sorted(v for v in found if not onnx.defs.get_schema(kind, max_inclusive_version=v).deprecated)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="build/tests/onnx/onnx_peer", help="the program that runs one model")
    parser.add_argument("--calculator", default="cpu")
    parser.add_argument("--only", action="append", help="an operator; default: all")
    parser.add_argument("--cases", type=int, default=12, help="models for each operator and version")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="append", default=["failed"], help="outcomes to list one by one")
    parser.add_argument("--keep", help="leave the last model in this folder")
    arguments = parser.parse_args()
    todo = []
    for draw, kinds in FAMILIES.items():
        for kind in kinds.split():
            for opset in versions(kind) if not arguments.only or kind in arguments.only else []:
                R.seed(f"{arguments.seed} {kind} {opset}")
                globals()["G"] = np.random.default_rng(R.randrange(2**31))
                todo += [draw(kind, opset) for _ in range(arguments.cases)]
    total, reasons = collections.Counter(), collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(1 if arguments.keep else 2) as workers:
        outcomes = workers.map(lambda case: run(arguments.peer, arguments.calculator, case, arguments.keep), todo)
        for case, (outcome, why) in zip(todo, outcomes):
            total[outcome] += 1
            if outcome in arguments.list:
                print(f"{outcome}: {case}: {why.split('model.onnx: ', 1)[-1]}", flush=True)
            if outcome == "unsupported":
                reasons[f"{case.kind}: {why.split('model.onnx: ', 1)[-1].split('): ', 1)[-1]}"] += 1
    print(f"{arguments.calculator}: {len(todo)} models: {total['passed']} passed, {total['failed']} failed, "
          f"{total['unsupported']} unsupported, {total['refused']} refused by onnxruntime {onnxruntime.__version__}")
    for reason, count in reasons.most_common(20):
        print(f"  {count:4} {reason}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
