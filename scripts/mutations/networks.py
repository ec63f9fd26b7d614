# SPDX-License-Identifier: MIT
"""Random networks of several layers, in the form that exporters write, to test what plans do with several nodes: fusion, folding, layouts.

A network is a graph of blocks. Each block reads a value that there is, most often the last one, and the values of all blocks stay readable.
Weights are scaled by the number of terms of a sum, so that values stay near 1 and rounding errors far below the tolerance."""
import math

import numpy as np
from onnx import helper

from mutations.drawn import Graph

MOST_ELEMENTS = 6000  # of a value
ACTIVATIONS = "Relu Relu Relu6 SiLU SiLU HardSwish GELU LeakyRelu PRelu Sigmoid Tanh Elu HardSigmoid Hard Softplus Mish Clip Gelu".split()


class Value:
    """An input of a block: a name, its shape, and its layout: "image" (N, C, ...), "last" (N, ..., C), "any" (unknown)."""

    def __init__(self, name, shape, layout):
        self.name, self.shape, self.layout = name, tuple(shape), layout

    @property
    def channels(self):
        return self.shape[1] if self.layout == "image" else self.shape[-1]

    @property
    def spatial(self):
        return self.shape[2:]


class Network(Graph):
    """A network to which blocks append nodes. `batch` is the first dimension of every input; `open`: the file leaves it open."""

    def __init__(self, r):
        super().__init__(r, r.choice([13, 14, 16, 17, 18, 20, 21, 22]))
        self.random = np.random.RandomState(r.getrandbits(32))
        self.batch, self.open = r.choice([1, 1, 1, 1, 2, 3]), False
        self.values, self.read, self.quantises = [], set(), False

    # ---- weights and small helpers ----

    def chance(self, part):
        return self.r.random() < part

    def floats(self, *shape, scale=1.0):
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def around(self, *shape):
        """Factors about 1, some negative."""
        return (self.random.uniform(0.5, 1.5, shape) * self.random.choice([1, 1, 1, -1], shape)).astype(np.float32)

    def filters(self, array):
        """A weight as an initialiser, as a Constant node, or as bytes in a quantised network (with scales along the first axis)."""
        if self.quantises and array.ndim > 1:
            rows = np.abs(array).reshape(len(array), -1).max(1) / 127 + 1e-6
            whole = np.round(array / rows.reshape(-1, *[1] * (array.ndim - 1))).astype(np.int8)
            return self.node("DequantizeLinear", [self.weight(whole), self.weight(rows.astype(np.float32)),
                                                  self.weight(np.zeros(len(array), np.int8))], axis=0)
        if self.chance(0.05):
            return self.node("Constant", [], value=helper.make_tensor("c", 1, array.shape, array.reshape(-1)))
        return self.weight(array)

    def integers(self, *values):
        return self.weight(np.array(values, np.int64))

    def first(self):
        """The batch in a Reshape: copied, as a number, or inferred if no other dimension is."""
        return 0 if self.open or self.chance(0.5) else self.batch

    def op(self, kind, inputs, shape, layout, **attributes):
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        self.read.update(names)
        return Value(self.node(kind, names, **attributes), shape, layout)

    def like(self, kind, x, *others, **attributes):
        """A node whose output has the shape and layout of x."""
        return self.op(kind, [x, *others], x.shape, x.layout, **attributes)

    def swapped(self, kind, x, other):
        """Two operands in either order."""
        inputs = [x, other] if self.chance(0.7) else [other, x]
        return self.op(kind, inputs, x.shape, x.layout)

    def reshape(self, x, shape, layout, pattern=None):
        """`pattern`: the shape in the file; default: the batch copied or as a number, occasionally one size inferred."""
        pattern = list(pattern or [self.first() if shape[0] == self.batch else shape[0], *shape[1:]])
        if self.chance(0.4):
            pattern[self.r.randrange(1, len(pattern)) if len(pattern) > 1 else 0] = -1
        return self.op("Reshape", [x, self.integers(*pattern)], shape, layout)

    def transpose(self, x, perm, layout):
        return self.op("Transpose", [x], [x.shape[p] for p in perm], layout, perm=list(perm))

    def mean(self, x, axes, keep, layout, kind="ReduceMean"):
        shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
        signed = [a - len(x.shape) if self.chance(0.3) else a for a in axes]
        if self.opset >= 18:
            return self.op(kind, [x, self.integers(*signed)], shape, layout, keepdims=int(keep))
        return self.op(kind, [x], shape, layout, axes=signed, keepdims=int(keep))

    def per_channel(self, x, array):
        """An array of one element per channel, in a shape that broadcasts against x."""
        if x.layout != "image":
            return self.weight(array)
        ones = [1] * len(x.spatial)
        return self.weight(array.reshape(([1] if self.chance(0.4) else []) + [len(array)] + ones))

    def fitting(self, x):
        """Another value of the same shape and layout, or None."""
        there = [v for v in self.values if v.shape == x.shape and v.layout == x.layout and v is not x]
        return self.r.choice(there) if there else None

    # ---- elementwise ----

    def activation(self, x):
        way = self.r.choice(ACTIVATIONS)
        if way == "SiLU":
            return self.swapped("Mul", x, self.like("Sigmoid", x))
        if way in ("Relu6", "Clip"):
            low, high = ("", 6.0) if way == "Clip" else (0.0, 6.0) if self.chance(0.6) else (-1.0, 1.0)
            return self.like("Clip", x, low if low == "" else self.weight(np.float32(low)), self.weight(np.float32(high)))
        if way == "GELU":
            root = self.weight(np.float32(math.sqrt(2)))
            one, half = self.weight(np.float32(1)), self.weight(np.float32(0.5))
            y = self.swapped("Add", self.like("Erf", self.like("Div", x, root)), one)
            if self.chance(0.5):
                return self.swapped("Mul", self.swapped("Mul", x, y), half)
            return self.swapped("Mul", self.swapped("Mul", x, half), y)
        if way == "Hard":  # HardSwish as it was exported before the operator existed
            y = self.like("Clip", self.swapped("Add", x, self.weight(np.float32(3))), self.weight(np.float32(0)), self.weight(np.float32(6)))
            if self.chance(0.5):
                return self.like("Div", self.swapped("Mul", x, y), self.weight(np.float32(6)))
            return self.swapped("Mul", x, self.like("Div", y, self.weight(np.float32(6))))
        if way == "PRelu":
            slopes = self.per_channel(x, self.floats(x.channels, scale=0.3)) if self.chance(0.8) else self.weight(np.float32([0.2]))
            return self.like("PRelu", x, slopes)
        if way == "LeakyRelu":
            return self.like(way, x, alpha=self.r.choice([0.1, 0.01, 0.3]))
        if way == "Mish" and self.chance(0.5):
            return self.swapped("Mul", x, self.like("Tanh", self.like("Softplus", x)))
        if (way == "HardSwish" and self.opset < 14) or (way == "Mish" and self.opset < 18) or (way == "Gelu" and self.opset < 20):
            way = "Relu"
        return self.like(way, x)

    def scale(self, x):
        """One or two of Mul, Add, Sub, Div with a constant."""
        for _ in range(self.r.randint(1, 2)):
            count = x.channels if self.chance(0.75) else 1
            kind = self.r.choice(["Mul", "Mul", "Add", "Add", "Sub", "Div"])
            array = self.around(count) if kind in ("Mul", "Div") else self.floats(count)
            constant = self.per_channel(x, array) if count > 1 or self.chance(0.5) else self.weight(array[0])
            swap = kind in ("Mul", "Add", "Sub") and self.chance(0.3)
            x = self.op(kind, [constant, x] if swap else [x, constant], x.shape, x.layout)
        return x

    def residual(self, x):
        """Sums and products of two values. No differences of tokens: LogSoftmax minus its input is constant, and normalising that amplifies
        rounding errors."""
        other, ways = self.fitting(x), ["Add", "Add", "Add", "Mul", "Max"] + ["Sub"] * (x.layout == "image")
        return self.scale(x) if other is None else self.swapped(self.r.choice(ways), x, other)

    def gate(self, x):
        """Gated linear unit: half of the channels scales the other half."""
        if x.channels % 2 or x.layout == "any":
            return self.activation(x)
        axis = 1 if x.layout == "image" else len(x.shape) - 1
        shape = [d // 2 if i == axis else d for i, d in enumerate(x.shape)]
        sizes = [self.integers(shape[axis], shape[axis])] if self.opset < 18 or self.chance(0.5) else []
        name = self.node("Split", [x.name, *sizes], 2, axis=axis if self.chance(0.5) else axis - len(shape), **({} if sizes else {"num_outputs": 2}))
        self.read.add(x.name)
        a, b = Value(name, shape, x.layout), Value(self.nodes[-1].output[1], shape, x.layout)
        return self.swapped("Mul", a, self.like("Sigmoid", b) if self.chance(0.5) else self.activation(b))

    def concat(self, x):
        axis = 1 if x.layout == "image" else len(x.shape) - 1
        fits = [v for v in self.values if v.layout == x.layout and len(v.shape) == len(x.shape)
                and all(a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)) if i != axis)]
        parts = [x] + [self.r.choice(fits) for _ in range(self.r.randint(1, 2)) if fits]
        self.r.shuffle(parts)
        shape = [sum(p.shape[axis] for p in parts) if i == axis else d for i, d in enumerate(x.shape)]
        return self.op("Concat", parts, shape, x.layout, axis=axis if self.chance(0.6) else axis - len(shape))

    def quantised(self, x):
        """A QuantizeLinear and DequantizeLinear pair, which rounds x."""
        kind = self.r.choice([np.uint8, np.int8])
        zero = self.weight(np.array(128 if kind == np.uint8 else self.r.choice([0, 0, 3]), kind))
        scale = self.weight(np.float32(self.random.uniform(0.03, 0.05)))  # a common one would cause ties in means
        return self.like("DequantizeLinear", self.like("QuantizeLinear", x, scale, zero), scale, zero)

    # ---- the whole ----

    def grow(self, blocks, least):
        """Append blocks until there are that many nodes. `blocks`: a function that returns those that fit a value."""
        while len(self.nodes) < least:
            x = self.values[-1] if self.chance(0.7) else self.r.choice(self.values)
            y = self.r.choice(blocks(x))(self, x)
            if y is None or math.prod(y.shape) > MOST_ELEMENTS:
                y = self.activation(x)
            if self.quantises and self.chance(0.6):
                y = self.quantised(y)
            self.values.append(y)

    def start(self, shape, layout):
        self.values.append(Value(self.input(self.floats(*shape)), shape, layout))
        return self.values[-1]

    def finish(self, name):
        """The case. Values that no node reads are outputs, and some others too; an input that only dropped branches read is kept."""
        made = [o for n in self.nodes for o in n.output]
        outputs = [o for o in made if o not in self.read]
        outputs += [v.name for v in self.values if v.name in made and v.name in self.read and self.chance(0.07)]
        self.r.shuffle(outputs)
        case = self.case(name, outputs)
        case.batch, case.conditioned = self.batch if self.open else 0, True
        return case
