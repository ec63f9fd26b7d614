# SPDX-License-Identifier: MIT
"""Elementwise operators, and some that are nearly elementwise."""
import numpy as np
from onnx import helper

from operators.case import Case
from operators.drawing import G, R, coin, floats, maybe, numbers, pair


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
    low, high = R.choice([(-1.5, 2), (-1.5, 2), (2, -1.5), (1, 1)])
    return c.add(x).add(maybe(np.float32(low)), coin(0.8)).add(maybe(np.float32(high)), coin(0.8))


def softmax(kind, opset):
    rank = R.randint(1, 4)
    c = Case(kind, opset).add(floats(*[R.randint(1, 4) for _ in range(rank)], scale=3))
    low = 0 if opset < 11 else -rank
    return c.set(axis=R.randint(low, rank - 1) if rank < 2 and opset < 13 else maybe(R.randint(low, rank - 1), 0.8))


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


def where(kind, opset):
    a, b = pair()
    of = R.choice([np.float32, np.int64, np.int32, np.uint8])
    return Case(kind, opset).add(numbers(np.bool_, *b), coin(0.2)).add(numbers(of, *a), coin(0.2)).add(numbers(of, *b), coin(0.2))


def cast(kind, opset):
    kinds = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.bool_, np.float16]
    of, to = R.choice(kinds), R.choice(kinds)
    x = numbers(of, 3, 4) if to not in (np.uint8, np.int8, np.int32, np.int64) else np.abs(numbers(of, 3, 4))
    if np.float16 in (of, to) and np.issubdtype(x.dtype, np.floating):
        x = np.round(x * 8) / of(8)  # exact in float16, too
    return Case(kind, opset).add(x).set(to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def dropout(kind, opset):
    c = Case(kind, opset).add(floats(3, 4))
    if opset < 12:
        return c.set(ratio=maybe(0.3))
    c.outputs = R.choice([1, 2])
    return c.add(maybe(np.float32(0.3)), True).add(maybe(np.bool_(False), 0.3), True)


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
