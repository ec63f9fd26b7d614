# SPDX-License-Identifier: MIT
"""How functions and objects add layers to a model."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any, Tuple, Union

from . import _sdlf

Pair = Union[int, Tuple[int, int]]  # vertical, horizontal; a single number is both

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _origin() -> str:
    """FILE:LINE of the call from outside the package, for messages."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame is not None else ""


def add_layer(type: str, inputs: tuple, name: str | None, options: dict[str, Any]) -> _sdlf.Node:
    """Add a layer of that class that reads these nodes; returns its output, a Node."""
    for node in inputs:
        if not isinstance(node, _sdlf.Node):
            raise TypeError(f"{type}: expected a Node, found {node.__class__.__name__}")
    if not inputs:
        raise TypeError(f"{type}: expected at least one Node")
    return inputs[0].model._add(type, list(inputs), name, options, _origin())


def add_source(type: str, model: _sdlf.Model, name: str | None, options: dict[str, Any]) -> _sdlf.Node:
    """Add a layer of that class that reads no node; returns its output, a Node."""
    return model._add(type, [], name, options, _origin())


class Layer:
    """A layer that has not been added to a model yet; calling it with nodes adds it."""

    def __init__(self, function: Any, name: str | None, options: dict[str, Any]):
        self._function, self._name = function, name
        self._options = {key: value for key, value in options.items() if value is not None}

    def __call__(self, *inputs: _sdlf.Node) -> _sdlf.Node:
        return self._function(*inputs, name=self._name, **self._options)

    def __repr__(self) -> str:
        words = [f"{key}={value!r}" for key, value in self._options.items()]
        return f"{type(self).__name__}({', '.join(words + ([f'name={self._name!r}'] if self._name else []))})"
