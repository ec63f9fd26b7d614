# SPDX-License-Identifier: MIT
"""Models that are run step by step."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from . import _sdlf
from .errors import ArgumentError


def _expand(states: Mapping[str, str], inputs: list[str]) -> dict[str, str]:
    """Inputs and their outputs, with patterns such as "past.*": "present.*" expanded."""
    found: dict[str, str] = {}
    for name, output in states.items():
        if "*" not in name:
            found[name] = output
            continue
        before, after = name.split("*", 1)
        stars = [one[len(before) : len(one) - len(after)] for one in inputs
                 if one.startswith(before) and one.endswith(after) and len(one) >= len(before) + len(after)]
        if not stars or "*" not in output:
            raise ArgumentError(f"states {name!r}: {output!r}: expected a '*' in both, and inputs of the model that fit")
        found.update({before + star + after: output.replace("*", star, 1) for star in stars})
    return found


class Stateful:
    """An ONNX model that carries state from each run to the next: a decoder with its key-value cache, or a recurrent network.

        decoder = sdlf.Stateful("decoder.onnx", {"past_key_values.*": "present.*"}, dimensions={"sequence_length": 1})
        logits = decoder(input_ids=np.array([[token]]))

    states: inputs and the outputs that become them in the next step; a * stands for the same text in both. States start as zeros, or empty if
    they grow, and stay in the library's memory, which has capacity for `capacity` positions, but not more than the network itself supports.
    dimensions: sizes of other open dimensions by name; the batch is 1.
    """

    def __init__(self, path: str | os.PathLike, states: Mapping[str, str], *, dimensions: Mapping[str, int] | None = None,
                 capacity: int = 1024, calculator: str = "cpu", threads: int = 0):
        path = os.fspath(path)
        inputs, outputs = _sdlf._onnx_names(path)
        pairs = _expand(states, inputs)
        self._lock = threading.Lock()
        self._made = _sdlf._Stateful(path, list(pairs.items()), [name for name in inputs if name not in pairs],
                                     [name for name in outputs if name not in pairs.values()], list((dimensions or {}).items()), capacity,
                                     calculator, threads)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run a step on arrays (1,...) for the inputs that are not states, in order or by name. Returns a new NumPy array, or a dictionary if there
        are several outputs."""
        with self._lock:
            return self._made.run(*args, **kwargs)

    __call__ = run

    def rewind(self, length: int = 0) -> None:
        """Go back to the given number of positions, an int; 0 restarts."""
        with self._lock:
            self._made.rewind(length)

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of the next step's inputs: a dict of tuples of int."""
        with self._lock:
            return self._made.shapes()

    @property
    def length(self) -> int:
        """The number of positions in the states, an int; the number of steps if they do not grow."""
        return self._made.length

    @property
    def step(self) -> int:
        """The number of positions that a run adds, an int."""
        return self._made.step

    def __repr__(self) -> str:
        return f"<sdlf.Stateful: {self.length} positions>"
