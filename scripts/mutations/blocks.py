# SPDX-License-Identifier: MIT
"""Blocks of random networks (networks.py), and how they are combined. A block gets the network and a value, and returns a value, or None
if it does not fit that value."""
import math

import numpy as np

from mutations.networks import Network, Value

# ---- images: (N, C, ...) ----


def windows(g, x, most=5):
    """Kernel, strides, dilations and pads of a window that fits, and the output's sizes."""
    n = len(x.spatial)
    kernel = [g.r.choice([1, 1, 2, 3, 3, 3, most])] * n
    if g.chance(0.2):
        kernel = [g.r.choice([1, 2, 3]) for _ in range(n)]
    strides = [g.r.choice([1, 1, 1, 2, 3])] * n if g.chance(0.85) else [g.r.choice([1, 2]) for _ in range(n)]
    dilations = [g.r.choice([1, 1, 1, 1, 2, 3])] * n
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations)]
    half = [e // 2 for e in reach]
    pads = half + half if g.chance(0.7) else [g.r.randint(0, h) for h in half + half]
    return kernel, strides, dilations, reach, pads


def convolve(g, x, out=None, same=False, groups=None):
    channels = x.channels
    if groups is not None:
        out = channels
    elif g.chance(0.25):
        groups = channels
    elif g.chance(0.2):
        groups = g.r.choice([d for d in range(1, channels + 1) if channels % d == 0])
    else:
        groups = 1
    if out is None:
        out = channels if same else groups * g.r.choice([1, 1, 2, 3]) if groups > 1 else g.r.choice([1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32])
    if out % groups:
        groups = 1
    kernel, strides, dilations, reach, pads = windows(g, x, g.r.choice([5, 7]))
    if same:
        strides = [1] * len(kernel)
        pads = [(e - 1) // 2 for e in reach] + [e // 2 for e in reach]
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "group": groups}
    n = len(kernel)
    sizes = [(d + pads[i] + pads[n + i] - reach[i]) // strides[i] + 1 for i, d in enumerate(x.spatial)]
    if not same and max(dilations) == 1 and g.chance(0.1):
        attributes["auto_pad"] = g.r.choice(["SAME_UPPER", "SAME_LOWER"])
        sizes = [-(-d // s) for d, s in zip(x.spatial, strides)]
    else:
        attributes["pads"] = pads
    if min(sizes) < 1 or any(d + pads[i] + pads[n + i] < reach[i] for i, d in enumerate(x.spatial)):
        return None
    each = channels // groups
    weight = g.filters(g.floats(out, each, *kernel, scale=1 / math.sqrt(each * math.prod(kernel))))
    bias = [g.weight(g.floats(out, scale=0.3))] if g.chance(0.6) else []
    return g.op("Conv", [x, weight, *bias], [x.shape[0], out, *sizes], "image", **attributes)


def batch_norm(g, x):
    c = x.channels
    arrays = [g.around(c), g.floats(c, scale=0.5), g.floats(c, scale=0.3), np.abs(g.around(c))]
    return g.like("BatchNormalization", x, *[g.weight(a) for a in arrays], epsilon=g.r.choice([1e-5, 1e-3]))


def conv_block(g, x):
    """Conv, optionally followed by normalisation, scale and activation in this order."""
    y = convolve(g, x)
    if y is not None and g.chance(0.5):
        y = batch_norm(g, y)
    elif y is not None and g.chance(0.25):
        y = g.scale(y)
    return g.activation(y) if y is not None and g.chance(0.7) else y


def grouped_block(g, x):
    """Groups of 2, 4 or 8 channels with as many filters, whose last vector of eight or sixteen is partial."""
    each = g.r.choice([2, 2, 4, 4, 8])
    channels = each * g.r.choice([3, 5, 7, 9, 11] if each < 8 else [3, 5])
    y = x if x.channels == channels else convolve(g, x, out=channels)
    same = g.chance(0.5)
    z = y and convolve(g, y, same=same, groups=channels // each)
    if z is None:
        return y
    if same and g.chance(0.6):
        z = g.swapped("Add", z, y)
    return g.activation(z) if g.chance(0.6) else z


def residual_block(g, x):
    y = convolve(g, x, same=True)
    if y is None:
        return None
    y = batch_norm(g, y) if g.chance(0.5) else y
    if g.chance(0.4):
        y = convolve(g, g.activation(y), out=x.channels, same=True)
        y = batch_norm(g, y) if g.chance(0.5) else y
    y = g.scale(y) if g.chance(0.15) else y
    y = g.swapped("Add", y, x)
    return g.activation(y) if g.chance(0.6) else y


def deconvolve(g, x):
    n, k, s = len(x.spatial), g.r.choice([2, 3, 4]), g.r.choice([1, 2, 2, 3])
    out, pad = g.r.choice([1, 2, 4, 8, 9]), g.r.choice([0, 0, 1])
    more = g.r.choice([0, 0, 1]) if s > 1 else 0
    sizes = [s * (d - 1) + k - 2 * pad + more for d in x.spatial]
    if min(sizes) < 1:
        return None
    weight = g.filters(g.floats(x.channels, out, *[k] * n, scale=1 / math.sqrt(x.channels * k)))
    bias = [g.weight(g.floats(out, scale=0.3))] if g.chance(0.5) else []
    return g.op("ConvTranspose", [x, weight, *bias], [x.shape[0], out, *sizes], "image", kernel_shape=[k] * n, strides=[s] * n,
                pads=[pad] * (2 * n), output_padding=[more] * n)


def pool(g, x):
    kind = g.r.choice(["MaxPool", "AveragePool"])
    kernel, strides, dilations, reach, pads = windows(g, x)
    n, ceil = len(kernel), g.chance(0.25)
    if kind == "AveragePool":
        dilations, reach = [1] * n, kernel
    pads = [min(p, (k - 1) // 2) for p, k in zip(pads, kernel * 2)]
    if any(d + pads[i] + pads[n + i] < reach[i] for i, d in enumerate(x.spatial)):
        return None
    sizes = []
    for i, d in enumerate(x.spatial):
        size = -(-(d + pads[i] + pads[n + i] - reach[i]) // strides[i]) + 1 if ceil else (d + pads[i] + pads[n + i] - reach[i]) // strides[i] + 1
        sizes.append(size - 1 if ceil and (size - 1) * strides[i] >= d + pads[i] else size)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": int(ceil)}
    if kind == "AveragePool":
        attributes["count_include_pad"] = int(g.chance(0.5))
    elif max(dilations) > 1:
        attributes["dilations"] = dilations
    return g.op(kind, [x], [x.shape[0], x.channels, *sizes], "image", **attributes)


def pooled(g, x, keep):
    """Means over all pixels."""
    axes = list(range(2, len(x.shape)))
    if keep and g.chance(0.5):
        return g.op(g.r.choice(["GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"]), [x], [*x.shape[:2]] + [1] * len(axes), "image")
    return g.mean(x, axes, keep, "image" if keep else "last")


def squeeze_excite(g, x):
    few, ones = max(1, x.channels // g.r.choice([1, 2, 4])), [1] * len(x.spatial)
    s = pooled(g, x, True)
    for out in (few, x.channels):
        weight = g.weight(g.floats(out, s.channels, *ones, scale=1 / math.sqrt(s.channels)))
        bias = [g.weight(g.floats(out, scale=0.5))] if g.chance(0.7) else []
        s = g.op("Conv", [s, weight, *bias], [x.shape[0], out, *ones], "image", kernel_shape=ones)
        if out == few and s.channels == few and g.chance(0.8):
            s = g.like("Relu", s) if g.chance(0.5) else g.activation(s)
    return g.swapped("Mul", x, g.like(g.r.choice(["Sigmoid", "HardSigmoid"]), s))


def resize(g, x):
    n, factor = len(x.spatial), g.r.choice([2, 2, 3, 1.5])
    sizes = [int(d * factor) for d in x.spatial]
    mode = g.r.choice(["nearest", "linear"]) if n < 3 else "nearest"
    attributes = {"mode": mode, "coordinate_transformation_mode": g.r.choice(["asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attributes.update(nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    shape = [*x.shape[:2], *sizes]
    if not g.open and g.chance(0.3):
        return g.op("Resize", [x, "", "", g.integers(*shape)], shape, "image", **attributes)
    return g.op("Resize", [x, "", g.weight(np.float32([1, 1] + [factor] * n))], shape, "image", **attributes)


def pixel_shuffle(g, x):
    if len(x.spatial) != 2 or x.channels % 4:
        return None
    n, c, (h, w) = x.shape[0], x.channels // 4, x.spatial
    if g.chance(0.3):
        return g.op("DepthToSpace", [x], [n, c, 2 * h, 2 * w], "image", blocksize=2, mode=g.r.choice(["DCR", "CRD"]))
    crd = g.chance(0.7)
    y = g.reshape(x, [n, c, 2, 2, h, w] if crd else [n, 2, 2, c, h, w], "any")
    y = g.transpose(y, (0, 1, 4, 2, 5, 3) if crd else (0, 3, 4, 1, 5, 2), "any")
    return g.reshape(y, [n, c, 2 * h, 2 * w], "image")


def space_to_depth(g, x):
    """Four images of every second pixel, concatenated."""
    if len(x.spatial) != 2 or any(d % 2 for d in x.spatial):
        return None
    n, c, (h, w), parts = x.shape[0], x.channels, x.spatial, []
    for i, j in g.r.sample([(0, 0), (0, 1), (1, 0), (1, 1)], 4):
        inputs = [x] + [g.integers(*v) for v in ((i, j), (2**31 - 1, 2**31 - 1), (2, 3), (2, 2))]
        parts.append(g.op("Slice", inputs, [n, c, h // 2, w // 2], "image"))
    return g.op("Concat", parts, [n, 4 * c, h // 2, w // 2], "image", axis=1)


def channel_shuffle(g, x):
    groups = [d for d in range(2, x.channels) if x.channels % d == 0]
    if not groups:
        return None
    k = g.r.choice(groups)
    y = g.reshape(x, [x.shape[0], k, x.channels // k, *x.spatial], "any")
    y = g.transpose(y, (0, 2, 1, *range(3, len(y.shape))), "any")
    return g.reshape(y, x.shape, "image")


def instance_norm(g, x):
    """InstanceNormalization of the image, or of groups of its channels, as GroupNorm was once exported."""
    groups = g.r.choice([d for d in range(1, x.channels + 1) if x.channels % d == 0])
    if math.prod(x.shape[1:]) // groups < 8:
        return None
    y = g.reshape(x, [x.shape[0], groups, math.prod(x.shape[1:]) // groups], "image")
    y = g.like("InstanceNormalization", y, g.weight(np.ones(groups, np.float32)), g.weight(np.zeros(groups, np.float32)), epsilon=1e-5)
    y = g.reshape(y, x.shape, "image")
    y = g.like("Mul", y, g.per_channel(y, g.around(x.channels)))
    return g.like("Add", y, g.per_channel(y, g.floats(x.channels)))


def permuted(g, x):
    """A random permutation, optionally a small node, and the inverse permutation or none."""
    perm = list(range(len(x.shape)))
    tail = perm[1:]
    g.r.shuffle(tail)
    perm = [0, *tail] if g.open or g.chance(0.8) else g.r.sample(perm, len(perm))
    y = g.transpose(x, perm, "any")
    y = g.activation(y) if g.chance(0.6) else g.scale(y)
    if not g.open and g.chance(0.15) and perm[0] != 0:
        y = g.like("Relu", y)
    return g.transpose(y, list(np.argsort(perm)), x.layout)


def doubled(g, x):
    """Samples concatenated with others or repeated, separated again, and the mean or maximum of both; also along the second axis."""
    first = g.chance(0.5) or len(x.shape) < 3
    perm = list(range(len(x.shape)))
    if not first:
        perm[:2] = 1, 0
    y, axis = x if first else g.transpose(x, perm, "any"), 0 if first else 1
    wide = [2 * d if i == axis else d for i, d in enumerate(y.shape)]
    if g.chance(0.4):
        y = g.op("Tile", [y, g.integers(*[2 if i == axis else 1 for i in range(len(wide))])], wide, "any")
    else:
        other = y if g.chance(0.2) else g.like("Mul", y, g.weight(np.float32(-0.5)))
        y = g.op("Concat", [y, other] if g.chance(0.5) else [other, y], wide, "any", axis=axis if g.chance(0.7) else axis - len(wide))
    if g.chance(0.3):
        y = g.like("Relu", y)
    pair = [*wide[:axis], 2, x.shape[0], *wide[axis + 1:]]
    pattern = list(pair)
    if g.open or g.chance(0.6):
        pattern[axis + 1] = -1
    y = g.op("Reshape", [y, g.integers(*pattern)], pair, "any")
    y = g.mean(y, [axis], False, "any", g.r.choice(["ReduceMean", "ReduceMax", "ReduceMin"]))
    y = y if first else g.transpose(y, perm, "any")
    return Value(y.name, x.shape, x.layout)


def pad(g, x):
    n = len(x.spatial)
    amounts = [0, 0] + [g.r.randint(0, 2) for _ in range(n)] + [0, 0] + [g.r.randint(0, 2) for _ in range(n)]
    mode = g.r.choice(["constant", "constant", "edge", "reflect"])
    if mode == "reflect" and min(x.spatial) < 3:
        mode = "edge"
    value = [g.weight(np.float32(g.r.choice([0, 0, 0.5])))] if mode == "constant" and g.chance(0.5) else []
    shape = [d + amounts[i] + amounts[n + 2 + i] for i, d in enumerate(x.shape)]
    return g.op("Pad", [x, g.integers(*amounts), *value], shape, "image", mode=mode)


def head(g, x):
    """Each image flattened to a vector, and Gemm."""
    y = pooled(g, x, True) if g.chance(0.6) else x
    size = math.prod(y.shape[1:])
    if g.chance(0.5):
        y = g.op("Flatten", [y], [y.shape[0], size], "last", axis=1)
    else:
        y = g.reshape(y, [y.shape[0], size], "last")
    return dense(g, y)


# ---- channels last: (N, ..., C) ----

def dense(g, x, out=None):
    c = x.channels
    out = out or g.r.choice([1, 3, 4, 8, 10, 16, 17, 24])
    weight, bias = g.floats(c, out, scale=1 / math.sqrt(c)), g.floats(out, scale=0.3)
    if len(x.shape) == 2 and g.chance(0.6):
        turned = g.chance(0.6)
        return g.op("Gemm", [x, g.filters(weight.T.copy() if turned else weight)] + ([g.weight(bias)] if g.chance(0.8) else []),
                    [x.shape[0], out], "last", transB=int(turned), **({"alpha": 0.5} if g.chance(0.1) else {}))
    y = g.op("MatMul", [x, g.filters(weight)], [*x.shape[:-1], out], "last")
    return g.swapped("Add", y, g.weight(bias)) if g.chance(0.8) else y


def layer_norm(g, x):
    if x.channels < 4:
        return g.scale(x)
    weight, bias = g.weight(g.around(x.channels)), g.weight(g.floats(x.channels))
    if g.opset >= 17 and g.chance(0.7):
        return g.like("LayerNormalization", x, weight, *([bias] if g.chance(0.8) else []), axis=-1, epsilon=1e-5)
    y = g.like("Sub", x, g.mean(x, [len(x.shape) - 1], True, x.layout))
    square = g.like("Pow", y, g.weight(np.float32(2))) if g.chance(0.6) else g.like("Mul", y, y)
    variance = g.mean(square, [len(x.shape) - 1], True, x.layout)
    root = g.like("Sqrt", g.swapped("Add", variance, g.weight(np.float32(1e-5))))
    return g.swapped("Add", g.swapped("Mul", g.op("Div", [y, root], x.shape, x.layout), weight), bias)


def perceptron(g, x):
    y = g.activation(dense(g, layer_norm(g, x) if g.chance(0.3) else x))
    y = dense(g, y, x.channels)
    return g.swapped("Add", y, x) if g.chance(0.6) else y


def softmax(g, x):
    return g.like(g.r.choice(["Softmax", "Softmax", "LogSoftmax"]), x, axis=-1)


def token_mean(g, x):
    return g.mean(x, [g.r.randrange(1, len(x.shape) - 1)], False, "last") if len(x.shape) > 2 else g.activation(x)


def slice_tokens(g, x):
    """Some of the tokens, or only the first one."""
    if len(x.shape) < 3:
        return None
    if g.chance(0.4):
        return g.op("Gather", [x, g.weight(np.int64(g.r.choice([0, -1])))], [x.shape[0], *x.shape[2:]], "last", axis=1)
    start = g.r.randrange(x.shape[1])
    return g.op("Slice", [x] + [g.integers(v) for v in (start, 2**62, 1)], [x.shape[0], x.shape[1] - start, *x.shape[2:]], "last")


def in_last(g, x):
    """As in ConvNeXt: to channels last, one to three blocks of that layout, and back."""
    rank = len(x.shape)
    y = g.transpose(x, (0, *range(2, rank), 1), "last")
    for _ in range(g.r.randint(1, 2)):
        y = g.r.choice([layer_norm, layer_norm, perceptron, dense, Network.scale, Network.activation, Network.gate])(g, y)
    return g.transpose(y, (0, rank - 1, *range(1, rank - 1)), "image")


def to_tokens(g, x):
    size = math.prod(x.spatial)
    return g.transpose(g.reshape(x, [x.shape[0], x.channels, size], "image"), (0, 2, 1), "last")


def to_image(g, x):
    if len(x.shape) != 3:
        return None
    h = g.r.choice([d for d in range(1, x.shape[1] + 1) if x.shape[1] % d == 0])
    return g.reshape(g.transpose(x, (0, 2, 1), "image"), [x.shape[0], x.channels, h, x.shape[1] // h], "image")


def to_last(g, x):
    return g.transpose(x, (0, *range(2, len(x.shape)), 1), "last")


def from_last(g, x):
    return g.transpose(x, (0, len(x.shape) - 1, *range(1, len(x.shape) - 1)), "image") if len(x.shape) > 2 else dense(g, x)
