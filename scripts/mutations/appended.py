# SPDX-License-Identifier: MIT
"""Appends a node to values of a graph, to test how converters handle values that are not inputs."""
import numpy as np
from onnx import helper, numpy_helper

UNARY = ("Relu Abs Neg Sigmoid Tanh Exp Sqrt Floor Ceil Sign Erf Softplus HardSwish Identity Not IsNaN IsInf Cos Reciprocal Round Log "
         "Softmax LogSoftmax Hardmax Shape Size Flatten Transpose NonZero GlobalAveragePool GlobalMaxPool Squeeze Det "
         "MeanVarianceNormalization LpNormalization").split()
BINARY = "Add Sub Mul Div Pow Max Min Equal Less Greater And Or MatMul Mod PRelu Concat Where BitwiseAnd Gather GatherElements Expand".split()
REDUCE = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare ArgMax ArgMin CumSum".split()


def constant(case, array):
    name = f"c{len(case.graph.initializer)}_{len(case.graph.node)}"
    case.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return name


def numbers(r, kind=np.int64, most=3):
    return np.array([r.choice([0, 1, -1, 1, 2, -2, 3]) for _ in range(r.randint(1, most))], kind)


def operand(case, r, names):
    """Another value of the graph, or a small constant."""
    if r.random() < 0.5:
        return r.choice(names)
    kind = r.choice([np.float32, np.float32, np.float32, np.int64, np.int32, np.bool_])
    shape = r.choice([[], [1], [2], [3], [1, 1], [3, 1], [1, 3], [4], [2, 1, 1]])
    count = int(np.prod(shape))
    return constant(case, np.array([r.choice([0, 1, 2, -1, 0.5, 3]) for _ in range(count)]).astype(kind).reshape(shape))


def append(case, r):
    names = [o for n in case.graph.node for o in n.output if o] + sorted(case.feeds)
    if not names or len(case.graph.node) > 8:
        return None
    x, name, opset = r.choice(names), f"v{len(case.graph.node)}_{r.randrange(1000)}", case.model.opset_import[0].version
    way, attributes, outputs = r.random(), {}, [name]
    if way < 0.3:
        kind, inputs = r.choice(UNARY), [x]
    elif way < 0.55:
        kind, inputs = r.choice(BINARY), [x, operand(case, r, names)]
        if kind == "Where":
            inputs.append(operand(case, r, names))
        if r.random() < 0.3 and kind not in ("Gather", "GatherElements", "Expand"):
            inputs.reverse()
        if kind in ("Concat", "Gather", "GatherElements"):
            attributes["axis"] = r.choice([0, 0, 1, -1, 2])
        if kind in ("Gather", "GatherElements", "Expand"):
            inputs[1] = constant(case, numbers(r)) if r.random() < 0.8 else inputs[1]
    elif way < 0.7:
        kind, inputs = r.choice(REDUCE), [x]
        axes = [r.choice([0, 1, -1, 2, -2]) for _ in range(r.randint(0, 2))]
        if kind in ("ArgMax", "ArgMin"):
            attributes = {"axis": r.choice([0, 1, -1]), "keepdims": r.choice([0, 1])}
        elif kind == "CumSum":
            inputs.append(constant(case, np.array(r.choice([0, 1, -1]), np.int64)))
            attributes = {"exclusive": r.choice([0, 1]), "reverse": r.choice([0, 1])}
        elif opset >= (13 if kind == "ReduceSum" else 18):
            attributes = {"keepdims": r.choice([0, 1]), "noop_with_empty_axes": r.choice([0, 0, 1])}
            inputs.append(constant(case, np.array(axes, np.int64)))
        else:
            attributes = {"keepdims": r.choice([0, 1]), **({"axes": axes} if axes else {})}
    else:
        kind = r.choice("Reshape Cast Slice Unsqueeze Pad Tile Split TopK Clip Trilu".split())
        inputs = [x]
        if kind == "Reshape":
            inputs.append(constant(case, r.choice([[-1], [1, -1], [0, -1], [-1, 1], [-1, 2], [0, 0, -1], [2, -1], [3, -1], [1, 1, -1], [-1, 4]])))
            if r.random() < 0.1:
                attributes["allowzero"] = 1
        elif kind == "Cast":
            attributes["to"] = r.choice([1, 2, 3, 6, 7, 9, 10, 11, 16, 5, 4, 12])
        elif kind == "Slice":
            start, end, step = r.choice([(0, 1, 1), (1, 100, 1), (-1, -100, -1), (0, 100, 2), (-1, 100, 1), (100, -100, -2), (1, 1, 1), (0, -1, 1)])
            inputs += [constant(case, np.array([v], np.int64)) for v in (start, end, r.choice([0, 1, -1]), step)]
        elif kind == "Unsqueeze":
            inputs.append(constant(case, np.array([r.choice([0, 1, -1, 2])], np.int64)))
        elif kind == "Pad":
            inputs += [constant(case, [r.choice([0, 1, 2, -1]), r.choice([0, 1])]), "", constant(case, np.array([r.choice([0, -1, 1])], np.int64))]
            attributes["mode"] = r.choice(["constant", "reflect", "edge", "wrap"])
        elif kind == "Tile":
            inputs.append(constant(case, np.abs(numbers(r, most=4))))
        elif kind == "Split":
            attributes = {"axis": r.choice([0, 1, -1]), **({"num_outputs": 2} if opset >= 18 else {})}
            outputs.append(name + "_b")
        elif kind == "TopK":
            inputs.append(constant(case, np.array([r.choice([1, 2, 1, 0])], np.int64)))
            attributes = {"axis": r.choice([0, 1, -1]), "largest": r.choice([0, 1])}
            outputs.append(name + "_b")
        elif kind == "Clip":
            inputs += ["" if r.random() < 0.3 else constant(case, np.float32(v)) for v in (-0.5, r.choice([0.5, -1.0]))]
        elif kind == "Trilu":
            attributes["upper"] = r.choice([0, 1])
            inputs += [constant(case, np.int64(r.choice([0, 1, -1, 5])))] if r.random() < 0.5 else []
    if kind == "Transpose" and r.random() < 0.7:
        perm = list(range(r.choice([2, 3, 3, 4])))
        r.shuffle(perm)
        attributes["perm"] = perm
    case.graph.node.append(helper.make_node(kind, inputs, outputs, **attributes))
    for output in outputs:
        case.graph.output.append(helper.make_empty_tensor_value_info(output))
    if r.random() < 0.3 and len(case.graph.output) > len(outputs):
        del case.graph.output[0]
    return f"{kind} behind {x}"
