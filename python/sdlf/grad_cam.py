# SPDX-License-Identifier: MIT
"""Grad-CAM: see Model.grad_cam.

    A (K,h,w): a layer's output; s: the score (logit) of a class
    a[k] = mean over h,w of ds/dA[k];   map = max(0, sum over k of a[k] A[k])

ds/dA is computed by the library's backward pass in a plan with eval_mode. The loss is the mean absolute error, with the scores themselves as
targets, except for a lower target for the class: its gradient is one over the number of classes for that score, and 0 for the others.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from .model import Model

SOFTMAXES = ("softmax", "log_softmax")
KEEP_PLACES = {"add", "batch_norm2d", "clip", "dropout", "leaky_relu", "relu", "relu6", "sigmoid", "tanh", "unary"}


def _copy(model: Model) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.safetensors")
        model.save(path)
        return type(model).open(path)


def _is_map(layer: dict[str, Any]) -> bool:
    shape = layer["shape"]
    return len(shape) == 4 and shape[2] * shape[3] > 1


def _scores(layers: dict[str, dict[str, Any]], last: str) -> str:
    """The layer whose output is the scores: the input of a final softmax, else the last layer."""
    return layers[last]["inputs"][0] if layers[last]["type"] in SOFTMAXES else last


def _last_convolution(layers: dict[str, dict[str, Any]], scores: str) -> str:
    """The last convolution before the scores whose output is larger than 1x1."""
    wanted = {scores}
    for name in reversed(layers):
        if name in wanted and layers[name]["type"] == "conv2d" and _is_map(layers[name]):
            return name
        if name in wanted:
            wanted.update(layers[name]["inputs"])
    raise UnsupportedError("the network has no convolution with an output larger than 1x1: name a layer")


def _behind_activation(layers: dict[str, dict[str, Any]], name: str, scores: str) -> str:
    """Follow a convolution through normalisation, residual addition and activation, as long as each has one reader: values before a ReLU are
    mostly negative, and hide the evidence for a class."""
    shape = layers[name]["shape"]
    while name != scores:
        readers = [reader for reader in layers for source in layers[reader]["inputs"] if source == name]
        if len(readers) != 1 or layers[readers[0]]["type"] not in KEEP_PLACES or layers[readers[0]]["shape"] != shape:
            break
        name = readers[0]
    return name


def _train_only(model: Model, layers: dict[str, dict[str, Any]], name: str) -> None:
    """Train only the parameters of that layer, or of the nearest one before it, so that the backward pass goes exactly as far as needed."""
    of: dict[str, list[str]] = {}
    for parameter in model.parameters:
        of.setdefault(model.parameters.info(parameter)["layer"], []).append(parameter)
        _freeze(model, parameter, True)
    wanted = {name}
    for at in reversed(layers):
        if at not in wanted:
            continue
        if any([_freeze(model, parameter, False) for parameter in of.get(at, [])]):
            return
        wanted.update(layers[at]["inputs"])
    raise UnsupportedError(f"layer '{name}' has no parameters of its own or before it")


def _freeze(model: Model, parameter: str, frozen: bool) -> bool:
    try:
        model.freeze(parameter, frozen)
    except ArgumentError:  # untrainable, such as running statistics
        return False
    return True


def grad_cam(model: Model, samples: Any, classes: Any = None, layer: str | None = None) -> np.ndarray:
    if len(model.inputs) != 1:
        raise UnsupportedError(f"'{model.name}' has {len(model.inputs)} inputs, and one for a picture was expected")
    samples = np.ascontiguousarray(samples, np.float32)
    layers = {one["name"]: one for one in model._layers}
    if layer is not None and layer not in layers:
        raise ArgumentError(f"'{model.name}' has no layer '{layer}'")
    copy = _copy(model)
    scores = _scores(layers, model._output_layer(0))
    trained = layer or _last_convolution(layers, scores)
    layer = layer or _behind_activation(layers, trained, scores)
    if not _is_map(layers[layer]):
        raise ShapeError(f"layer '{layer}' has an output of {layers[layer]['shape'][1:]}, and (C,H,W) larger than 1x1 was expected")
    _train_only(copy, layers, trained)
    copy.clear_outputs()
    copy.output("score", copy.node(scores))
    plan: Any = copy.plan(1, "train", loss="mae", gradients_only=True, eval_mode=True, keep_activations=True)
    count = int(np.prod(plan.output("score").shape))
    given = None if classes is None else np.broadcast_to(np.asarray(classes), (len(samples),))
    if given is not None and given.size and not 0 <= given.min() <= given.max() < count:
        raise ArgumentError(f"classes: expected 0 to {count - 1}, found {given.min()} to {given.max()}")
    maps = np.empty((len(samples), *layers[layer]["shape"][2:]), np.float32)
    for i, sample in enumerate(samples):
        maps[i] = _one(plan, model.inputs[0], sample[None], None if given is None else int(given[i]), layer, count)
    return maps


def _one(plan: Any, name: str, x: np.ndarray, wanted: int | None, layer: str, count: int) -> np.ndarray:
    targets = np.zeros((1, count), np.float32)
    plan.run(**{name: x, "labels": targets})
    targets[0] = plan.output("score").reshape(count)
    chosen = int(targets[0].argmax()) if wanted is None else wanted
    targets[0, chosen] -= 1 + abs(targets[0, chosen])
    plan.run(**{name: x, "labels": targets})
    plan.backward()
    weights = count * plan.activation(layer, gradient=True)[0].mean((1, 2))
    return np.maximum(np.tensordot(weights, plan.activation(layer)[0], 1), 0)
