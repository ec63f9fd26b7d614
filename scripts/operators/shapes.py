# SPDX-License-Identifier: MIT
"""Operators that move elements, and operators that produce shapes and ranges."""
import numpy as np
from onnx import numpy_helper

from operators.case import Case
from operators.drawing import R, coin, floats, maybe, numbers


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


def shape_of(kind, opset):
    c = Case(kind, opset).add(floats(*[R.randint(1, 4) for _ in range(R.randint(1, 4))]))
    return c.set(start=maybe(R.randint(-3, 3)), end=maybe(R.randint(-3, 3)))


def constant_of_shape(kind, opset):
    c = Case(kind, opset).add(np.array([R.randint(1, 3) for _ in range(R.randint(1, 3))], np.int64), True)
    return c.set(value=maybe(numpy_helper.from_array(numbers(R.choice([np.float32, np.int64, np.int32]), 1))))


def range_(kind, opset):
    of = R.choice([np.float32, np.int32, np.int64])
    a, b, d = R.choice([(0, 5, 1), (3, -4, -2), (2, 9, 3), (1, 8, 2)])
    return Case(kind, opset).add(of(a), True).add(of(b), True).add(of(d), True)


def depth(kind, opset):
    b = R.choice([1, 2, 3])
    c = Case(kind, opset).set(blocksize=b, mode=maybe(R.choice(["DCR", "CRD"])) if opset >= 11 else None)
    return c.add(floats(1, 2 * b * b, 2, 3) if kind == "DepthToSpace" else floats(1, 2, 2 * b, 3 * b))
