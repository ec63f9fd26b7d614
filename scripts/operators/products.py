# SPDX-License-Identifier: MIT
"""Matrix products and normalisations."""
import numpy as np

from operators.case import Case
from operators.drawing import R, coin, floats, maybe


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
