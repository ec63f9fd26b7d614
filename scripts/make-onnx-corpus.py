#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make the seed corpus of the ONNX fuzz target: tests/fuzz/corpus/onnx/test_*.onnx and tests/fuzz/onnx.dict.

    scripts/make-onnx-corpus.py [--limit 1500]

The models are the ONNX project's node tests (package onnx) of the operators that SDLF converts, the smallest ones of each, with
every input but the first turned into a weight, so that the code behind "must be known" is reached; and, for each operator, one
more with a single mutation, with a fixed seed: an extreme attribute value or dimension, an input left out, an earlier opset, a
weight's elements stored elsewhere. The dictionary has the names of operators and attributes as encoded in a file: a field's
number, a length, the text. Files found by fuzzing have other names and are kept.
"""
import argparse
import glob
import os
import random
import re
import sys

try:
    import numpy as np
    import onnx
    import onnx.backend.test
    from onnx import numpy_helper
except ImportError as missing:
    print(f"{missing}: nothing is made")
    sys.exit(77)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
NODES = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "node")
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus", "onnx")
EXTREME = [0, -1, 1, 2**31 - 1, 2**31, 2**62, -2**63, 65535, 65536, 2**24 + 1]


def tables():
    """The operators and attributes that the converters name."""
    text = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(ROOT, "framework/formats/onnx/import/*.c")))
    operators = set(re.findall(r'(?:\.type = |LEARNING\()"(\w+)"', text))
    attributes = set(" ".join(re.findall(r'\.attributes = ((?:"[^"]*"\s*)+)', text)).replace('"', " ").split())
    attributes |= set(" ".join(re.findall(r'"( ?[a-z]\w*(?: [a-z]\w*)+ )"', text)).split())  # those in a macro
    return operators, attributes


def write_dictionary(operators, attributes):
    def entry(tag, text):
        return '"' + "".join(f"\\x{b:02x}" for b in (tag, len(text))) + text + '"'

    def number(tag, value):
        out, value = [tag], value % 2**64
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return '"' + "".join(f"\\x{b:02x}" for b in out + [value]) + '"'

    words = ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic",
             "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize", "floor", "ceil", "DCR", "CRD",
             "tanh", "not_larger", "not_smaller", "BRANCH_LEQ", "LEAF", "SOFTMAX", "LOGISTIC", "RBF"]
    places = ["location", "offset", "length", "weights.bin", "../weights.bin", "/etc/passwd", "link", "missing"]
    lines = [entry(0x22, o) for o in sorted(operators)] + [entry(0x0A, a) for a in sorted(attributes)]
    lines += [entry(0x22, w) for w in words] + [entry(0x0A, p) for p in places] + [entry(0x12, p) for p in places]
    lines += [number(0x18, e) for e in EXTREME] + [number(0x08, e) for e in EXTREME] + [number(0x10, t) for t in range(1, 27)]
    with open(os.path.join(ROOT, "tests", "fuzz", "onnx.dict"), "w", encoding="utf-8") as out:
        out.write("# Made by scripts/make-onnx-corpus.py: operators, attributes, their words and numbers, as fields of a file.\n")
        out.write("\n".join(dict.fromkeys(lines)) + "\n")


def with_weights(folder):
    """The model of a test with its inputs, except the first, turned into weights."""
    model = onnx.load(os.path.join(folder, "model.onnx"))
    model.doc_string = model.graph.doc_string = model.producer_name = ""
    for i in range(len(model.graph.input) - 1, 0, -1):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        if not model.graph.input[i].type.HasField("tensor_type") or not os.path.exists(path):
            return None
        weight = onnx.load_tensor(path)
        weight.name = model.graph.input[i].name
        model.graph.initializer.append(weight)
        del model.graph.input[i]
    return model


def change(model, draw):
    """Makes one thing in it wrong or extreme."""
    graph, node = model.graph, draw.choice(model.graph.node)
    lists = [a.ints for a in node.attribute if len(a.ints) > 0]
    numbers = [a for a in node.attribute if a.type == onnx.AttributeProto.INT]
    dims = [v.type.tensor_type.shape.dim for v in graph.input if len(v.type.tensor_type.shape.dim) > 0]
    weights = [w for w in graph.initializer if w.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)]
    ways = ["input", "opset"] + ["list"] * 3 * bool(lists) + ["number"] * 3 * bool(numbers) + ["dim"] * 2 * bool(dims)
    ways += ["weight"] * 3 * bool(weights) + ["outside"] * bool(graph.initializer)
    way = draw.choice(ways)
    if way == "list":
        numbers = draw.choice(lists)
        numbers[draw.randrange(len(numbers))] = draw.choice(EXTREME)
    elif way == "number":
        draw.choice(numbers).i = draw.choice(EXTREME)
    elif way == "dim":
        draw.choice(draw.choice(dims)).dim_value = draw.choice([0, 2**24, 2**60, 1])
    elif way == "weight":
        weight = draw.choice(weights)
        values = numpy_helper.to_array(weight).copy()
        if values.size == 0:
            return
        limit = np.iinfo(values.dtype)
        values.reshape(-1)[draw.randrange(values.size)] = max(limit.min, min(limit.max, draw.choice(EXTREME)))
        weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    elif way == "outside":
        weight = draw.choice(graph.initializer)
        weight.raw_data, weight.data_location = b"", onnx.TensorProto.EXTERNAL
        weight.ClearField("float_data")
        for key, value in [("location", draw.choice(["weights.bin", "link", "missing"])), ("offset", "8")]:
            weight.external_data.add(key=key, value=value)
    elif way == "input" and len(node.input) > 0:
        node.input[draw.randrange(len(node.input))] = ""
    else:
        model.opset_import[0].version = draw.randint(7, 12)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=1500, help="bytes of the largest model that is taken")
    parser.add_argument("--data", default=NODES, help="the folder of the node tests, which onnx-conformance.py --data fills")
    arguments = parser.parse_args()
    operators, attributes = tables()
    write_dictionary(operators, attributes)
    for path in glob.glob(os.path.join(CORPUS, "test_*.onnx")):
        os.remove(path)
    found = {}
    for folder in sorted(glob.glob(os.path.join(arguments.data, "test_*"))):
        if not os.path.exists(os.path.join(folder, "model.onnx")):
            continue
        model = with_weights(folder)
        kinds = {n.op_type for n in model.graph.node} if model is not None else set()
        if len(kinds) == 1 and kinds <= operators and model.ByteSize() <= arguments.limit:
            found.setdefault(kinds.pop(), []).append((model.ByteSize(), os.path.basename(folder), model))
    total = 0
    for kind in sorted(found):
        draw = random.Random(kind)  # so that other operators do not affect these draws
        models = sorted(found[kind], key=lambda m: (m[0], m[1]))
        taken = models[:: max(1, len(models) // 2)][:2]  # a small one, and one from the middle
        changed = onnx.ModelProto()
        changed.CopyFrom(draw.choice(models)[2])
        change(changed, draw)
        for name, model in [(name, model) for _, name, model in taken] + [(f"test_{kind.lower()}_changed", changed)]:
            data = model.SerializeToString()
            total += len(data)
            with open(os.path.join(CORPUS, name + ".onnx"), "wb") as out:
                out.write(data)
    print(f"{len(found)} operators, {total} bytes")


if __name__ == "__main__":
    main()
