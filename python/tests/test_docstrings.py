# SPDX-License-Identifier: MIT
"""Every public name says what it is, with shapes where arrays go in or out, and the shapes of layers are those that they infer."""

import inspect
import re

import pytest

import sdlf
from sdlf import layers, nn

# A shape in the letters of docs/reference/glossary.md, or "..." for any axes: (N,C,H,W), (N,...), (N), (...).
SHAPE = re.compile(r"\((?:[A-Z1m-z]|\.\.\.)[\w.,^/ +]*\)|\(\.\.\.\)")
# What a value is, in words.
KIND = re.compile(r"\b(int|float|str|list|dict|bool|tuple|array|Model|Node|Plan|Table|function|seconds|bytes|Names|from 0 to 1|None)\b|" + SHAPE.pattern)
# What takes or gives arrays of which a shape can be said.
ARRAYS = {
    "sdlf.Dataset.from_arrays", "sdlf.Dataset.from_function", "sdlf.Dataset.samples", "sdlf.Dataset.labels", "sdlf.DynamicModel.run", "sdlf.Evaluation",
    "sdlf.Model.__call__", "sdlf.Model.builtin", "sdlf.Model.grad_cam", "sdlf.Model.input", "sdlf.Model.run", "sdlf.Model.sequential",
    "sdlf.Plan.activation", "sdlf.Plan.input", "sdlf.Plan.output", "sdlf.Plan.run", "sdlf.Plan.step", "sdlf.Stateful.run", "sdlf.Trainer", "sdlf.evaluate",
    "sdlf.quantize",
}


def text_of(name, value):
    """Its docstring, without the signature that an extension module's begins with."""
    text = inspect.getdoc(value) or ""
    first, _, rest = text.partition("\n")
    return rest.strip() if first.startswith(f"{name}(") else text


def members(owner, path, names):
    for name in names:
        value = inspect.getattr_static(owner, name)
        yield f"{path}.{name}", name, getattr(value, "__func__", value)


def public():
    """(path, name, value) of everything that a user may write."""
    yield from members(sdlf, "sdlf", [n for n in sdlf.__all__ if not inspect.ismodule(getattr(sdlf, n)) and n != "__version__"])
    for module in (layers, nn, sdlf.optim):
        here = [n for n, value in vars(module).items() if not n.startswith("_") and getattr(value, "__module__", "").startswith("sdlf")]
        yield from members(module, module.__name__, here)
    classes = [v for v in vars(sdlf).values() if inspect.isclass(v)] + [sdlf.model.Parameters, sdlf.table.Table]
    for made in classes:
        for base in made.__mro__:
            if base.__module__.startswith("sdlf") and not issubclass(base, BaseException):
                yield from members(base, f"sdlf.{made.__name__}", [n for n in vars(base) if not n.startswith("_") or n == "__call__"])


EVERYTHING = {path: (name, value) for path, name, value in public()}


def test_everything_is_looked_at():
    assert len(EVERYTHING) > 200 and {"sdlf.Model.run", "sdlf.Plan.batch", "sdlf.layers.conv2d", "sdlf.nn.Conv2d", "sdlf.Model.hash"} <= set(EVERYTHING)
    assert ARRAYS <= set(EVERYTHING)


def test_every_public_name_has_a_docstring():
    members = {"sdlf.Evaluation", "sdlf.History", "sdlf.DynamicModel"}  # of which the class's docstring tells
    values = [path for path, (_, value) in EVERYTHING.items() if not callable(value) and not isinstance(value, property) and
              type(value).__name__ not in ("nb_method", "nb_func", "getset_descriptor", "property")]
    assert all(path == "sdlf.layers.Pair" or path.rpartition(".")[0] in members or path.endswith(".name") for path in values), values
    short = [path for path, (name, value) in EVERYTHING.items() if path not in values and len(text_of(name, value)) < 8]
    assert not [path for path in short if path != "sdlf.layers.Pair"], short


def test_properties_say_what_they_are():
    missing = [path for path, (name, value) in EVERYTHING.items() if isinstance(value, property) and not KIND.search(text_of(name, value))]
    assert not missing


def test_arrays_have_their_shapes():
    missing = [path for path in sorted(ARRAYS) if not SHAPE.search(text_of(*EVERYTHING[path]))]
    assert not missing
    for path, (name, value) in EVERYTHING.items():
        if path.startswith(("sdlf.layers.", "sdlf.nn.")) and re.search(r"^Shapes: ", text_of(name, value), re.M) is None:
            assert path in ("sdlf.layers.Pair", "sdlf.layers.Node", "sdlf.layers.add_layer", "sdlf.layers.add_source", "sdlf.nn.Layer"), f"{path}: python/tools/generate_layers.py has no shapes of it"


SIZES = {"N": 1, "C": 8, "H": 6, "W": 4, "T": 5, "I": 3, "D": 6, "A": 2, "B": 3, "m": 2, "k": 3, "n": 4}
# What a layer must be given, and in which letters the axes of its inputs are taken where the docstring leaves them open ("...").
GIVEN = {
    "conv2d": dict(filters=5, kernel=3), "conv_transpose2d": dict(filters=5, kernel=3), "max_pool2d": dict(window=2), "avg_pool2d": dict(window=2),
    "fully_connected": dict(units=7), "unary": dict(function="exp"), "clip": dict(low=0.0, high=1.0), "group_norm": dict(groups=2),
    "lrn": dict(size=3), "multi_head_attention": dict(heads=2), "lstm": dict(units=7), "gru": dict(units=7), "depth_to_space": dict(block=2),
    "space_to_depth": dict(block=2), "cast": dict(dtype="int32"), "binary": dict(function="add"), "top_k": dict(k=4),
}
INPUTS = {  # other than the first, and those that may be left out
    "add": 2, "matmul": 2, "binary": 2, "mse": 2, "mae": 2, "huber": 2, "bce_with_logits": 2,
}
ELSEWHERE = {"graph_conv", "concat", "select", "reduce", "gather", "embedding", "resize", "value", "slice", "pad", "expand", "tile", "transpose",
             "reshape", "arg_reduce", "softmax_cross_entropy"}  # more than a letter for each axis says


def axes(shape, open_axes="CHW"):
    """The letters of "(N,...)"."""
    parts = shape.strip("()").split(",")
    return [letter for part in parts for letter in (open_axes if part == "..." else [part])]


@pytest.mark.parametrize("name", [p.rsplit(".", 1)[1] for p in EVERYTHING if p.startswith("sdlf.layers.") and "Shapes:" in (EVERYTHING[p][1].__doc__ or "")])
def test_shapes_are_what_layers_infer(name):
    line = re.search(r"^\s*Shapes: (.*(?:\n {8,}\S.*)*)", getattr(layers, name).__doc__, re.M)[1]
    if name in ELSEWHERE:
        return
    before, after = line.split(" -> ")[:2]
    taken = [axes(s) for s in SHAPE.findall(before)[: INPUTS.get(name, 1)]]
    wanted = SHAPE.search(after)[0]
    model = sdlf.Model("shapes")
    leading = [letters if letters[0] in "N" else ["N", *letters] for letters in taken]
    nodes = [model.input(f"x{i}", [SIZES[a] for a in letters[1:]]) for i, letters in enumerate(leading)]
    node = getattr(layers, name)(*nodes, **GIVEN.get(name, {}))
    model.output("y", node)
    model.build()
    if name == "flatten":
        assert node.shape == (1, 8 * 6 * 4)
        return
    if wanted == "(1)":
        assert node.shape == (1,)
        return
    letters = axes(wanted) if not (name == "fully_connected") else ["N", "U"]
    if letters[0] != "N":
        letters = ["N", *letters]
    assert len(node.shape) == len(letters), (line, node.shape)
    sizes = dict(SIZES, K=5, U=7)
    for letter, found in zip(letters, node.shape):
        if letter in sizes:
            assert found == sizes[letter], (line, letter, node.shape)
    if name == "depth_to_space":
        assert node.shape == (1, 2, 12, 8)
    if name == "space_to_depth":
        assert node.shape == (1, 32, 3, 2)
