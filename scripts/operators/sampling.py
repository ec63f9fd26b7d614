# SPDX-License-Identifier: MIT
"""Operators that select, reduce or sample along axes."""
import numpy as np

from operators.case import Case
from operators.drawing import G, R, coin, floats, maybe, numbers


def gather(kind, opset):
    c, rank = Case(kind, opset), R.randint(1, 3)
    shape = [R.randint(1, 4) for _ in range(rank)]
    axis = R.randint(-rank, rank - 1)
    low = -shape[axis] if opset >= 11 else 0
    index = G.integers(low, shape[axis], R.choice([(), (1,), (2,), (2, 3)])).astype(R.choice([np.int64, np.int32]))
    return c.add(numbers(R.choice([np.float32, np.int64]), *shape)).add(index, coin()).set(axis=maybe(axis, 1.0 if axis else 0.5))


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
    if mode == "nearest":
        c.set(nearest_mode=maybe(R.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])))
    if mode == "cubic":
        c.set(cubic_coeff_a=maybe(-0.5), exclude_outside=maybe(1, 0.3))
    if mode != "nearest" and opset >= 18 and coin(0.3):
        c.set(antialias=1)
    roi = None if opset >= 13 else np.array([], np.float32)
    if mode == "nearest" or coin(0.6):
        return c.add(roi, True).add(np.array(scales, np.float32), True)
    sizes = [1, 2] + [R.randint(1, 9) for _ in range(spatial)]
    return c.add(roi, True).add(None if opset >= 13 else np.array([], np.float32), True).add(np.array(sizes, np.int64), True)
