# SPDX-License-Identifier: MIT
"""Compares outputs."""
import numpy as np
import onnx
from onnx import helper

# the types in which SDLF computes integers of types that it lacks
WIDER = {"int16": "int32", "uint16": "int32", "uint32": "int64", "int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}
HUGE = 1e9  # above this, the results of sums and conversions depend on the program


def is_float(array):
    return array.dtype.kind == "f" or "float" in array.dtype.name


def as_declared(case, outputs):
    """Reinterpret outputs of types that numpy lacks: onnxruntime returns them as their bits."""
    found = []
    for value, array in zip(case.graph.output, outputs):
        kind = value.type.tensor_type.elem_type
        of = helper.tensor_dtype_to_np_dtype(kind) if kind not in (0, onnx.TensorProto.STRING) else None
        bits = isinstance(array, np.ndarray) and of is not None and array.dtype != of and array.dtype.itemsize == of.itemsize
        found.append(array.view(of) if bits and array.dtype.kind == "u" and "float" in of.name else array)
    return found


def tolerance(case):
    """(relative, absolute as a fraction of the largest element) for the narrowest floats in the case, and steps of quantised integers."""
    if case.conditioned:  # where values are rounded to integers, an element and its dependents occasionally differ by a step
        return (1e-3, 0.08, 1) if any("Quantize" in kind for kind in case.kinds()) else (2e-4, 3e-5, 0)
    steps = int(any("Quantize" in kind or kind.startswith(("QLinear", "QGemm")) for kind in case.kinds()))
    names = {case.array(n).dtype.name for n in case.arrays() if case.array(n) is not None}
    names |= {str(a.i) for n in case.graph.node for a in n.attribute if a.name in ("to", "dtype", "output_dtype")}
    if len(case.graph.node) > 1 and any("Normalization" in kind for kind in case.kinds()):
        return 1e-3, 1e-3, steps  # for equal elements, rounding errors are divided by the root of epsilon
    if names & {"bfloat16", "16"}:
        return 3e-2, 2e-2, steps
    if names & {"float16", "10"}:
        return 4e-3, 4e-3, steps
    return 1e-4, 1e-5, steps


def difference(found, expected, allowed):
    """None, or a description of the difference."""
    relative, absolute, steps = allowed
    if len(found) != len(expected):
        return f"{len(found)} outputs, not {len(expected)}"
    for i, (f, e) in enumerate(zip(found, expected)):
        if isinstance(e, list) or e.dtype == object or e.dtype.kind in "USO":
            continue
        if is_float(f) != is_float(e) or (not is_float(e) and f.dtype.name != WIDER.get(e.dtype.name, e.dtype.name)):
            return f"output {i} is of {f.dtype}, not of {e.dtype}"
        if f.shape != e.shape:
            return f"output {i} is {f.shape}, not {e.shape}"
        if f.size == 0:
            continue
        if not is_float(e):
            wrong = np.abs(f.astype(np.int64) - e.astype(np.int64)) > steps
        else:
            with np.errstate(all="ignore"):
                f, e = f.astype(np.float64), e.astype(np.float64)
                finite = np.abs(e[np.isfinite(e)])
                largest = max(1.0, finite.max() if finite.size else 1.0)
                most = relative * np.abs(e) + (absolute + 0.02 * steps) * largest  # values computed from such integers
                wrong = ~((f == e) | (np.isnan(f) & np.isnan(e)) | (np.abs(f - e) <= most))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(wrong)), wrong.shape) if wrong.ndim else ()
            return f"output {i}: element {tuple(int(a) for a in at)} is {f[at]!r}, not {e[at]!r} ({int(wrong.sum())} of {wrong.size} differ)"
    return None


def difference_of_samples(found, expected, allowed):
    """The same for outputs with several samples, concatenated along some axis, and the expected outputs of each sample. Also None if an
    output's shape does not show along which axis."""
    if len(expected) == 1:
        return difference(found, expected[0], allowed)
    if len(found) != len(expected[0]):
        return f"{len(found)} outputs, not {len(expected[0])}"
    for i, f in enumerate(found):
        each = [e[i] for e in expected]
        if f.ndim != each[0].ndim:
            return f"output {i} is {f.shape}, not {each[0].shape} of each sample"
        if len({e.shape for e in each}) > 1:
            continue
        if f.shape == each[0].shape:
            apart = [difference([f], [e], allowed) for e in each]
            if any(apart):
                return f"the same output {i} for all samples: " + next(filter(None, apart))
            continue
        axes = [a for a in range(f.ndim) if f.shape[a] != each[0].shape[a]]
        if len(axes) != 1 or f.shape[axes[0]] != len(each) * each[0].shape[axes[0]]:
            return f"output {i} is {f.shape}, not {each[0].shape} of each sample"
        outer = np.split(f, len(each), axes[0])
        inner = [np.take(f, range(k, f.shape[axes[0]], len(each)), axes[0]) for k in range(len(each))]
        apart = difference(outer, each, allowed)
        if apart is not None and difference(inner, each, allowed) is not None:
            return f"samples of output {i}: {apart}"
    return None


def is_known(case):
    """True if onnxruntime 1.32 is known to deviate from the standard, or the standard leaves the result open: MaxUnpool places maxima by
    the smaller output's size; Squeeze with empty axes removes all; masks of Dropout before opset 12 are false; powers, sums and means of
    integers saturate; one target of LinearRegressor is not transformed; a label below 0 is no class; a ConvTranspose with auto_pad SAME
    and a stride larger than its window has only the elements that the windows reach, instead of the standard's input times stride. The
    reference evaluator returns integers for SVMRegressor of integers, where the standard has floats."""
    for node in case.graph.node:
        first = case.array(node.input[0]) if node.input else None
        integers = first is None or first.dtype.kind in "iu"
        if (node.op_type == "MaxUnpool" and len(node.input) > 2) or (node.op_type in ("Pow", "ReduceMean", "ReduceSum") and integers):
            return True
        if node.op_type == "Squeeze" and len(node.input) > 1 and getattr(case.array(node.input[1]), "size", 1) == 0:
            return True
        if node.op_type == "LinearRegressor" and any(a.s in (b"LOGISTIC", b"SOFTMAX") for a in node.attribute):
            return True
        if node.op_type.endswith("Loss") and len(node.input) > 1 and np.any(np.asarray(case.array(node.input[1])) < 0):
            return True
        if node.op_type == "SVMRegressor" and integers or node.op_type == "ConvTranspose" and leaves_gaps(case, node):
            return True
        if node.op_type == "Dropout" and case.model.opset_import[0].version < 12 and len(node.output) > 1:
            return True
    return False


def leaves_gaps(case, node):
    """True if a transposed convolution has auto_pad SAME and strides larger than its windows."""
    given = {a.name: a for a in node.attribute}
    if "auto_pad" not in given or given["auto_pad"].s not in (b"SAME_UPPER", b"SAME_LOWER") or "strides" not in given:
        return False
    weight = case.array(node.input[1]) if len(node.input) > 1 else None
    kernel = list(given["kernel_shape"].ints) if "kernel_shape" in given else list(weight.shape[2:]) if weight is not None else []
    strides, ones = list(given["strides"].ints), [1] * len(kernel)
    dilations = list(given["dilations"].ints) if "dilations" in given else ones
    more = list(given["output_padding"].ints) if "output_padding" in given else [0] * len(kernel)
    return any(s > (k - 1) * d + 1 + p for s, k, d, p in zip(strides, kernel, dilations, more))


STEPS = set("Ceil Floor Round Sign Equal Less Greater LessOrEqual GreaterOrEqual ArgMax ArgMin TopK Hardmax Mod IsInf NonZero Unique".split())


def is_doubtful(case, outputs):
    """True if the case has non-finite or huge elements, or a function that turns rounding errors into steps."""
    if case.conditioned:
        return False
    cut = any(n.op_type == "Cast" and a.name == "to" and a.i not in (1, 10, 11, 16) for n in case.graph.node for a in n.attribute)
    if is_known(case) or (len(case.graph.node) > 1 and (cut or STEPS & set(case.kinds()))):
        return True
    arrays = [case.array(n) for n in case.arrays()] + list(outputs)
    floats = [a.astype(np.float64) for a in arrays if isinstance(a, np.ndarray) and is_float(a) and a.size > 0]
    attributes = [v for n in case.graph.node for a in n.attribute for v in [a.f, *a.floats]]
    with np.errstate(all="ignore"):
        return any(not np.all(np.abs(a) < HUGE) for a in floats) or not np.all(np.abs(np.array(attributes + [0.0])) < HUGE)
