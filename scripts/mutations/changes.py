# SPDX-License-Identifier: MIT
"""Changes of one field of a model or of its inputs. Each returns a description of the change, or None if there was nothing to change."""
import math

import numpy as np
import onnx
from onnx import AttributeProto, helper

from mutations.appended import append
from mutations.spliced import splice

EXTREME = [2**31 - 1, -2**31, 2**31, 2**32, 2**62, 2**63 - 1, -2**63, 1000, 65536]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-6, 3.0, math.inf, -math.inf, math.nan, 1e38, 1e-30, 100.0]
TYPES = [np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, np.uint8, np.bool_, np.int16, np.uint16, np.uint32, np.uint64]
WORDS = {
    "auto_pad": "NOTSET SAME_UPPER SAME_LOWER VALID",
    "mode": "nearest linear cubic constant reflect edge wrap DCR CRD bilinear bicubic avg max",
    "coordinate_transformation_mode": "half_pixel align_corners asymmetric pytorch_half_pixel half_pixel_symmetric tf_crop_and_resize "
                                      "output_half_pixel",
    "nearest_mode": "round_prefer_floor round_prefer_ceil floor ceil",
    "keep_aspect_ratio_policy": "stretch not_larger not_smaller",
    "reduction": "none mean sum add mul max min",
    "direction": "forward reverse bidirectional LEFT RIGHT",
    "padding_mode": "zeros border reflection",
    "approximate": "none tanh",
    "activations": "Relu Tanh Sigmoid LeakyRelu Elu Softsign Softplus HardSigmoid ScaledTanh ThresholdedRelu Affine",
}


def number(r, now=0):
    kind = r.random()
    if kind < 0.4:
        return now + r.choice([-2, -1, 1, 2])
    if kind < 0.9:
        return r.choice([0, -1, 1, 2, 3, -2, -3, 4, 5, -4])
    return r.choice(EXTREME)


def clip64(value):
    return max(-2**63, min(2**63 - 1, value))


# ---- attributes ----

def some_attribute(case, r, kinds=None):
    there = [(n, a) for n in case.graph.node for a in n.attribute if kinds is None or a.type in kinds]
    return r.choice(there) if there else (None, None)


def change_attribute(case, r):
    node, a = some_attribute(case, r)
    if a is None:
        return None
    return f"{node.op_type}.{a.name}: " + (vary(a, r) or "the same")


def vary(a, r):
    if a.type == AttributeProto.INT:
        a.i = clip64(number(r, a.i))
        return str(a.i)
    if a.type == AttributeProto.FLOAT:
        a.f = r.choice(FLOATS)
        return str(a.f)
    if a.type == AttributeProto.STRING:
        a.s = r.choice(WORDS.get(a.name, "bad").split() + [""] * (r.random() < 0.1)).encode()
        return str(a.s)
    if a.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        field = {AttributeProto.INTS: a.ints, AttributeProto.FLOATS: a.floats, AttributeProto.STRINGS: a.strings}[a.type]
        values = list(field)
        drawn = {AttributeProto.INTS: lambda now: clip64(number(r, now)), AttributeProto.FLOATS: lambda _: r.choice(FLOATS),
                 AttributeProto.STRINGS: lambda _: r.choice(WORDS.get(a.name, "bad").split()).encode()}[a.type]
        way = r.random()
        if way < 0.7 and values:
            i = r.randrange(len(values))
            values[i] = drawn(values[i] if a.type == AttributeProto.INTS else 0)
        elif way < 0.8 and values:
            del values[r.randrange(len(values))]
        elif way < 0.9:
            values.insert(r.randint(0, len(values)), drawn(1))
        else:
            r.shuffle(values)
        del field[:]
        field.extend(values)
        return str(values)
    return None


def remove_attribute(case, r):
    node, a = some_attribute(case, r)
    if a is None:
        return None
    node.attribute.remove(a)
    return f"{node.op_type} without {a.name}"


def add_attribute(case, r):
    node = r.choice(case.graph.node) if case.graph.node else None
    try:
        schema = onnx.defs.get_schema(node.op_type, max_inclusive_version=case.model.opset_import[0].version)
    except Exception:  # pylint: disable=broad-except
        return None
    absent = sorted(set(schema.attributes) - {a.name for a in node.attribute})
    if not absent:
        return None
    name = r.choice(absent)
    kind = int(schema.attributes[name].type.value)
    rank = r.randint(1, 4)
    value = {AttributeProto.INT: lambda: clip64(number(r, 1)), AttributeProto.FLOAT: lambda: r.choice(FLOATS),
             AttributeProto.STRING: lambda: r.choice(WORDS.get(name, "bad").split()),
             AttributeProto.INTS: lambda: [r.choice([0, 1, 1, 2, 3, -1]) for _ in range(rank)],
             AttributeProto.FLOATS: lambda: [r.choice(FLOATS) for _ in range(rank)],
             AttributeProto.STRINGS: lambda: [r.choice(WORDS.get(name, "bad").split()) for _ in range(rank)]}.get(kind)
    if value is None:
        return None
    drawn = value()
    node.attribute.append(helper.make_attribute(name, drawn, attr_type=kind))
    return f"{node.op_type}.{name} added: {drawn}"


# ---- arrays ----

def some_array(case, r):
    names = case.arrays()
    if not names:
        return None, None
    name = r.choice(names)
    return name, case.array(name)


def change_values(case, r):
    name, a = some_array(case, r)
    if a is None or a.size == 0:
        return None
    a = a.copy()
    count = 1 if r.random() < 0.7 else max(1, a.size // 3)
    for _ in range(count):
        at = r.randrange(a.size)
        now = a.reshape(-1)[at]
        if a.dtype == np.bool_:
            a.reshape(-1)[at] = not now
        elif a.dtype.kind in "iu":
            limit = np.iinfo(a.dtype)
            drawn = number(r, int(now)) if r.random() < 0.8 else r.choice([limit.min, limit.max])
            a.reshape(-1)[at] = max(limit.min, min(limit.max, drawn))
        else:
            with np.errstate(all="ignore"):
                a.reshape(-1)[at] = np.asarray(r.choice(FLOATS)).astype(a.dtype)
    if r.random() < 0.1 and a.dtype.kind in "iub":  # equal floats would leave normalisations only rounding errors
        a[...] = a.reshape(-1)[0]
    return f"elements of {name}" if case.put(name, a) else None


def fill(shape, a):
    """An array of that shape, filled by repeating the elements of a."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.resize(a, shape) if a.size > 0 or size == 0 else np.zeros(shape, a.dtype)


def change_shape(case, r):
    name, a = some_array(case, r)
    if a is None:
        return None
    shape, way = list(a.shape), r.random()
    if way < 0.6 and shape:
        shape[r.randrange(len(shape))] = r.choice([0, 1, 1, 1, 2, 3, 5])
    elif way < 0.7 and shape:
        del shape[r.randrange(len(shape))]
    elif way < 0.85 and len(shape) < 6:
        shape.insert(r.randint(0, len(shape)), r.choice([1, 1, 2]))
    elif way < 0.9:
        shape = [] if r.random() < 0.5 else [a.size]
    else:
        r.shuffle(shape)
    if int(np.prod(shape, dtype=np.int64)) > 20000:
        return None
    return f"{name}: {list(a.shape)} -> {shape}" if case.put(name, fill(shape, a)) else None


def change_dimension(case, r):
    """Change one size wherever an array has it, so that shapes still match."""
    sizes = sorted({d for name in case.arrays() if case.array(name) is not None for d in case.array(name).shape})
    if not sizes:
        return None
    old, new = r.choice(sizes), r.choice([0, 1, 1, 2, 3, 4])
    for name in case.arrays():
        a = case.array(name)
        if a is not None and old in a.shape:
            shape = [new if d == old else d for d in a.shape]
            if int(np.prod(shape, dtype=np.int64)) > 20000:
                return None
            case.put(name, fill(shape, a))
    return f"all {old} -> {new}"


def change_type(case, r):
    """Change the type of all arrays that have one type, or of a single array."""
    name, a = some_array(case, r)
    if a is None:
        return None
    new, everywhere = r.choice(TYPES), r.random() < 0.7
    for other in case.arrays() if everywhere else [name]:
        b = case.array(other)
        if b is not None and b.dtype == a.dtype:
            with np.errstate(all="ignore"):
                case.put(other, b.astype(np.float64).astype(new) if b.dtype.kind not in "iub" else b.astype(new))
    return f"{a.dtype} -> {np.dtype(new)}" + ("" if everywhere else f" of {name}")


def change_constness(case, r):
    name, a = some_array(case, r)
    if a is None:
        return None
    if name in case.feeds:
        case.to_constant(name)
        return f"{name} a constant"
    return f"{name} an input" if case.to_input(name) else None


# ---- wiring ----

def change_input(case, r):
    nodes = [n for n in case.graph.node if len(n.input) > 0]
    if not nodes:
        return None
    node = r.choice(nodes)
    at, way = r.randrange(len(node.input)), r.random()
    if way < 0.35:
        node.input[at] = ""
        return f"{node.op_type}: no input {at}"
    if way < 0.5:
        del node.input[at]
        return f"{node.op_type}: input {at} removed"
    if way < 0.7 and len(node.input) > 1:
        other = r.randrange(len(node.input))
        node.input[at], node.input[other] = node.input[other], node.input[at]
        return f"{node.op_type}: inputs {at} and {other} swapped"
    earlier = list(case.arrays())
    for before in case.graph.node:
        if before is node:
            break
        earlier += [o for o in before.output if o]
    name = r.choice(earlier) if earlier else ""
    if way < 0.9:
        node.input[at] = name
        return f"{node.op_type}: input {at} is {name}"
    node.input.append(name)
    return f"{node.op_type}: one more input, {name}"


def change_output(case, r):
    nodes = [n for n in case.graph.node if len(n.output) > 0]
    if not nodes:
        return None
    node = r.choice(nodes)
    declared = {v.name for v in case.graph.output}
    inner = [o for n in case.graph.node for o in n.output if o and o not in declared]
    if inner and r.random() < 0.6:
        name = r.choice(inner)
        case.graph.output.append(helper.make_empty_tensor_value_info(name))
        return f"{name} an output"
    if r.random() < 0.2 and case.feeds:
        name = r.choice(sorted(case.feeds))
        if name not in declared:
            case.graph.output.append(helper.make_empty_tensor_value_info(name))
            return f"input {name} an output"
    if len(node.output) > 1 and r.random() < 0.6:
        at = r.randrange(len(node.output))
        gone = node.output[at]
        node.output[at] = ""
        for i, value in enumerate(case.graph.output):
            if value.name == gone:
                del case.graph.output[i]
                break
        return f"{node.op_type}: no output {at}" if len(case.graph.output) > 0 else None
    name = f"{node.output[0]}_more{len(node.output)}"
    node.output.append(name)
    case.graph.output.append(helper.make_empty_tensor_value_info(name))
    return f"{node.op_type}: one more output"


def change_opset(case, r):
    case.model.opset_import[0].version = new = r.randint(7, 28)
    return f"opset {new}"


def change_batch(case, r):
    """First dimensions become open, and get the same size."""
    if case.batch > 0:
        return None
    firsts = sorted({a.shape[0] for a in case.feeds.values() if a.ndim > 0})
    if not firsts:
        return None
    old, new = r.choice(firsts), r.choice([1, 2, 3])
    for name, a in list(case.feeds.items()):
        if a.ndim > 0 and a.shape[0] == old:
            case.put(name, fill([new, *a.shape[1:]], a))
    case.batch = new
    return f"first dimensions {old} -> N = {new}"


def change_samples(case, r):
    """Several samples in a plan of a model for one: first dimensions of 1 are the batch. Integers often become constants."""
    if case.batch > 0 or case.samples > 0:
        return None
    for name, a in list(case.feeds.items()):
        if a.dtype.kind in "iub" and a.ndim < 2:
            case.to_constant(name)
    if not any(a.ndim > 0 and a.shape[0] == 1 for a in case.feeds.values()) or any(a.ndim > 0 and a.shape[0] == 3 for a in case.feeds.values()):
        return None
    for name, a in case.feeds.items():
        if a.ndim > 0 and a.shape[0] == 1:
            b = np.concatenate([a, np.flip(a), np.roll(a.reshape(-1), 1).reshape(a.shape)])
            case.put(name, b)
    case.samples = 3
    return "three samples"


WAYS = [(change_attribute, 6), (remove_attribute, 1), (add_attribute, 3), (change_values, 4), (change_shape, 4), (change_dimension, 3),
        (change_type, 3), (change_constness, 3), (change_input, 3), (change_output, 1), (change_opset, 1), (change_batch, 2), (append, 4)]


def change(case, r):
    """One to four changes, occasionally none, or appended nodes."""
    ways, weights = zip(*WAYS)
    todo = r.choices(ways, weights, k=r.choice([0, 1, 1, 1, 1, 2, 2, 2, 3, 4]))
    if r.random() < 0.25:
        todo += [append] * r.randint(1, 5)
    if r.random() < 0.3:
        todo += [splice] * r.randint(1, 2)
        r.shuffle(todo)
    if r.random() < 0.15:
        todo.append(change_samples)
    for way in todo:
        done = way(case, r)
        if done is not None:
            case.changes.append(done)
            case.conditioned = False
