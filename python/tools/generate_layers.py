# SPDX-License-Identifier: MIT
"""Write sdlf/layers.py and sdlf/nn.py from docs/reference/layers.md, which is written from the layers' own tables:
python3 python/tools/generate_layers.py [--check]

The target `pages` writes all three; --check writes nothing, and fails where one of the two files is out of date.
"""

import re
import sys
import textwrap
from pathlib import Path

TYPES = {"integer": "int", "one or two integers": "Pair", "number": "float", "list of integers": "Sequence[int]"}
CAMEL = {"fully_connected": "Linear", "relu": "ReLU", "relu6": "ReLU6", "leaky_relu": "LeakyReLU", "lrn": "LRN",
         "lstm": "LSTM", "gru": "GRU",
         "softmax_cross_entropy": "SoftmaxCrossEntropy", "mse": "MSE", "mae": "MAE", "bce_with_logits": "BCEWithLogits"}
FIRST = {"fully_connected": "units", "max_pool2d": "window", "avg_pool2d": "window", "dropout": "probability"}  # may be given without its name

# Inputs -> outputs, in the letters of docs/reference/glossary.md; "..." are any axes, of which there may be none. python/tests/test_docstrings.py
# compares them with what the layers infer.
SAME = "(...) -> (...)"
SHAPES = {
    "conv2d": "(N,C,H,W) -> (N,K,P,Q), K = filters",
    "max_pool2d": "(N,C,H,W) -> (N,C,P,Q)",
    "avg_pool2d": "(N,C,H,W) -> (N,C,P,Q)",
    "global_avg_pool2d": "(N,C,H,W) -> (N,C,1,1)",
    "fully_connected": "(N,...) -> (N,U), U = units; with axis=-1 (N,...,I) -> (N,...,U)",
    "graph_conv": "(N,I) of N nodes, sparse (N,N), its transpose (N,N) -> (N,U), U = units",
    "batch_norm2d": "(N,C,H,W) -> (N,C,H,W), or (N,C) -> (N,C)",
    "dropout": SAME,
    "relu": SAME, "relu6": SAME, "clip": SAME, "leaky_relu": SAME, "sigmoid": SAME, "tanh": SAME, "unary": SAME,
    "flatten": "(N,...) -> (N,I), I the product of the others",
    "reshape": "(N,...) -> (N,...) of as many elements",
    "add": "(...), (...) -> (...)",
    "concat": "(N,A,...), (N,B,...), ... -> (N,A+B+...,...), or joined along another axis",
    "binary": "(...), (...) -> (...), broadcast as NumPy's",
    "select": "bool (...), (...), (...) -> (...), broadcast as NumPy's",
    "reduce": "(...) -> (...) without the axes that are folded, or with 1 in their place",
    "arg_reduce": "(...) -> int64 (...) without the axis, or with 1 in its place",
    "gather": "(A,...), integers (B...) -> (A,...) with the axis replaced by (B...)",
    "matmul": "(...,m,k), (...,k,n) -> (...,m,n), leading axes broadcast as NumPy's",
    "conv_transpose2d": "(N,C,H,W) -> (N,K,P,Q), K = filters",
    "layer_norm": SAME, "rms_norm": SAME,
    "group_norm": "(N,C,...) -> (N,C,...)",
    "lrn": "(N,C,H,W) -> (N,C,H,W)",
    "embedding": "tokens (N,...) -> (N,...,U), U = units",
    "position_embedding": "(N,T,C) -> (N,T,C)",
    "rotary_embedding": "(...,T,D) -> (...,T,D)",
    "multi_head_attention": "(N,T,C), a mask that broadcasts to (N,heads,T,T) -> (N,T,C)",
    "lstm": "(N,T,I), first states (N,U), cells (N,U) -> (N,T,U), or with last (N,U), U = units",
    "gru": "(N,T,I), first states (N,U) -> (N,T,U), or with last (N,U), U = units",
    "top_k": "(...) -> (...) with k along the axis, int64 (...) of their indices: output 1",
    "resize": "(N,C,H,W) -> (N,C,P,Q), or of other axes",
    "value": "-> shape",
    "cast": SAME,
    "dynamic_quantize": "(...) -> uint8 (...); scale () and zero point () are outputs 1 and 2",
    "transpose": "(...) -> (...) in another order",
    "slice": "(...) -> (...), shorter along the axes",
    "pad": "(...) -> (...), longer along the axes",
    "expand": "(...) -> (...), broadcast with shape as NumPy's",
    "tile": "(...) -> (...), each axis times its repeats",
    "depth_to_space": "(N,C,H,W) -> (N,C/b^2,H b,W b), b = block",
    "space_to_depth": "(N,C,H,W) -> (N,C b^2,H/b,W/b), b = block",
    "softmax": SAME, "log_softmax": SAME,
    "softmax_cross_entropy": "logits (N,C,...), labels int32 (N,...), weights (N,...) -> loss (1)",
    "mse": "(N,...), targets (N,...) -> loss (1)",
    "mae": "(N,...), targets (N,...) -> loss (1)",
    "huber": "(N,...), targets (N,...) -> loss (1)",
    "bce_with_logits": "logits (N,...), targets (N,...) -> loss (1)",
}

LAYERS_HEAD = '''# SPDX-License-Identifier: MIT
"""Layers as functions on nodes, as the C interface has them. Made by python/tools/generate_layers.py.

Each takes the nodes that it reads, and returns the node that it makes. An option left out has its default. `name` is the layer's, unique in
its model; left out, the layer is named after its class. Shapes include the batch N as axis 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import _sdlf
from ._add import Pair, add_layer, add_source

Node = _sdlf.Node
'''
NN_HEAD = '''# SPDX-License-Identifier: MIT
"""Layers as objects, for lists: Model.sequential(shape, [Conv2d(filters=32, kernel=3), ReLU(), ...]). Made by python/tools/generate_layers.py.

An object is called with the nodes that the function of sdlf.layers takes, and adds a layer each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import layers
from ._add import Layer, Pair

'''


def camel(name):
    return CAMEL.get(name) or "".join(part.capitalize() for part in name.split("_"))


def inputs_of(layer):
    low, high = layer["minimum_inputs"], layer["maximum_inputs"]
    if high == 0:
        return ["model"]
    if high == 1:
        return ["x"]
    return ["a", "b"] if low == high == 2 else ["*inputs"]


def option(name, value, default, text):
    words = re.findall(r'`"(\w+)"`', value)
    kind = "str" if words else "bool" if "`true`" in value else TYPES[value[:value.index(" from ")]]
    return {"name": name, "type": kind, "choices": words, "default": default, "help": text}


def read_classes(page):
    """The layer classes as the page lists them: a heading, a summary, a table of options."""
    classes = []
    for section in page.split("\n### ")[1:]:
        name, summary = re.match(r"(\w+)\n\n(.*)\n", section).groups()
        inputs = re.search(r" Takes (\d+)(?: to (\d+))? inputs\.$", summary)
        low, high = (int(inputs[1]), int(inputs[2] or inputs[1])) if inputs else (1, 1)
        rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$", section, re.MULTILINE)
        classes.append({"name": name, "summary": summary[:inputs.start()] if inputs else summary,
                        "minimum_inputs": low, "maximum_inputs": high, "options": [option(*row) for row in rows]})
    return classes


def describe(layer, options):
    lines = [layer["summary"]]
    if layer["name"] in SHAPES:
        lines.append(f"Shapes: {SHAPES[layer['name']]}")
    for o in options:
        text = o["help"]
        if o["choices"]:
            text += ": " + ", ".join(o["choices"])
        if re.match("-?[0-9]", o["default"]) and o["default"] != "0":
            text += f" (default {float(o['default']):g})"
        lines.append(f"{o['name']}: {text}")
    return lines


def docstring(lines, indent):
    wrapped = []
    for line in lines[1:]:
        wrapped += textwrap.wrap(line, 120 - indent, subsequent_indent="    ")
    pad = " " * indent
    if not wrapped:
        return f'{pad}"""{lines[0]}"""'
    return f'{pad}"""{lines[0]}\n\n' + "\n".join(pad + line for line in wrapped) + f'\n{pad}"""'


def parameters(options, star, first):
    words = [f"{o['name']}: {o['type']} | None = None" for o in options]
    if first:
        words.sort(key=lambda w: not w.startswith(first + ":"))
        return [words[0], "*"] + words[1:] + ["name: str | None = None"]
    return (["*"] if star else []) + words + ["name: str | None = None"]


def filled(items, indent):
    """Items with commas between them, as many on a line as there is room for."""
    lines = [""]
    for item in items:
        if lines[-1] and indent + len(lines[-1]) + len(item) + 2 > 120:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + item + ","
    return "\n".join(" " * indent + line for line in lines)


def signature(head, words, tail, indent):
    one = head + ", ".join(words) + tail
    if indent + len(one) <= 120:
        return " " * indent + one
    return " " * indent + head + "\n" + filled(words, indent + 4) + "\n" + " " * indent + tail


def call(head, options, tail, indent):
    items = [f'"{o["name"]}": {o["name"]}' for o in options]
    one = head + "{" + ", ".join(items) + "}" + tail
    if indent + len(one) <= 120:
        return " " * indent + one
    return " " * indent + head + "{\n" + filled(items, indent + 4) + "\n" + " " * indent + "}" + tail


def function(layer):
    inputs, options = inputs_of(layer), layer["options"]
    typed = {"model": ["model: _sdlf.Model"], "*inputs": ["*inputs: Node"]}.get(inputs[0], [f"{i}: Node" for i in inputs])
    words = typed + parameters(options, inputs[0] != "*inputs", None)
    given = "inputs" if inputs[0] == "*inputs" else "(" + ", ".join(inputs) + ("," if len(inputs) == 1 else "") + ")"
    adding = "add_source" if inputs[0] == "model" else "add_layer"
    given = "model" if inputs[0] == "model" else given
    return "\n".join([
        signature(f"def {layer['name']}(", words, ") -> Node:", 0),
        docstring(describe(layer, options), 4),
        call(f'return {adding}("{layer["name"]}", {given}, name, ', options, ")", 4),
    ])


def object_class(layer):
    options = layer["options"]
    words = ["self"] + parameters(options, True, FIRST.get(layer["name"]))
    lines = describe(layer, [])
    if options:
        lines[0] += f" layers.{layer['name']} says what its options are."
    return "\n".join([
        f"class {camel(layer['name'])}(Layer):",
        docstring(lines, 4) + "\n",
        signature("def __init__(", words, "):", 4),
        call(f"super().__init__(layers.{layer['name']}, name, ", options, ")", 8),
    ])


def main():
    root = Path(__file__).parents[2]
    here = root / "python" / "sdlf"
    classes = read_classes((root / "docs" / "reference" / "layers.md").read_text())
    texts = {
        "layers.py": LAYERS_HEAD + "\n\n" + "\n\n\n".join(function(c) for c in classes) + "\n",
        "nn.py": NN_HEAD + "\n" + "\n\n\n".join(object_class(c) for c in classes if c["minimum_inputs"] > 0) + "\n",
    }
    old = [name for name, text in texts.items() if not (here / name).exists() or (here / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"{', '.join(old)}: not as docs/reference/layers.md; run python3 {sys.argv[0]}" if old else 0)
    for name in old:
        (here / name).write_text(texts[name])


if __name__ == "__main__":
    main()
