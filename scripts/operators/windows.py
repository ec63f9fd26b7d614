# SPDX-License-Identifier: MIT
"""Convolutions and pooling."""
import numpy as np

from operators.case import Case
from operators.drawing import G, R, coin, floats, maybe


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
