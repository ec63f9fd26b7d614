# SPDX-License-Identifier: MIT
"""A random operator appended to a value of any shape in a graph: the value's elements, repeated as needed, are the operator's input."""
import numpy as np
from onnx import helper, numpy_helper

from mutations.case import MOST
from operators.drawing import reseed
from operators.families import FAMILIES, LAST, versions


def splice(case, r):
    values = [o for n in case.graph.node for o in n.output if o] + sorted(case.feeds)
    opset = case.model.opset_import[0].version
    if not values or len(case.graph.node) > 12 or opset < 13:
        return None
    draw, kind = r.choice([(draw, kind) for draw, names in FAMILIES.items() for kind in names.split()])
    known = [v for v in versions(kind) if v <= opset]
    if not known:
        return None
    reseed(str(r.random()))
    drawn, x, mark = draw(kind, min(opset, LAST)), r.choice(values), f"s{len(case.graph.node)}_{r.randrange(1000)}"
    drawn.model()  # omits absent trailing inputs
    first = drawn.inputs[0][1]
    if drawn.inputs[0][2] or first is None or not 0 < first.size <= MOST:
        return None

    def constant(name, array):
        case.graph.initializer.append(numpy_helper.from_array(np.asarray(array), f"{mark}{name}"))
        return f"{mark}{name}"

    def node(type_, inputs, output, **attributes):
        case.graph.node.append(helper.make_node(type_, inputs, [f"{mark}{output}"], **attributes))
        return f"{mark}{output}"

    y = node("Reshape", [x, constant("flat", np.array([-1], np.int64))], "a")
    y = node("Tile", [y, constant("times", np.array([first.size], np.int64))], "b")
    y = node("Slice", [y, constant("from", np.array([0], np.int64)), constant("to", np.array([first.size], np.int64))], "c")
    y = node("Reshape", [y, constant("shape", np.array(first.shape, np.int64))], "d")
    y = node("Cast", [y], "e", to=helper.np_dtype_to_tensor_dtype(first.dtype))
    names = [y]
    for i, (_, array, is_constant) in enumerate(drawn.inputs[1:]):
        if array is not None and not is_constant and r.random() < 0.7:
            case.feeds[f"{mark}i{i}"] = array
            case.graph.input.append(helper.make_tensor_value_info(f"{mark}i{i}", helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape)))
            names.append(f"{mark}i{i}")
        else:
            names.append("" if array is None else constant(f"i{i}", array))
    outputs = [f"{mark}y{i}" for i in range(drawn.outputs)]
    case.graph.node.append(helper.make_node(kind, names, outputs, **drawn.attributes))
    for output in outputs:
        case.graph.output.append(helper.make_empty_tensor_value_info(output))
    if r.random() < 0.5 and len(case.graph.output) > len(outputs):
        del case.graph.output[0]
    return f"{kind} made of {x}"
