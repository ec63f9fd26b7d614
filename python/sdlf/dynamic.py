# SPDX-License-Identifier: MIT
"""Models of any size."""

from __future__ import annotations

import os
import threading
from typing import Any

from . import _sdlf
from .errors import ArgumentError


class DynamicModel:
    """An ONNX model with open sizes (height and width, the length of a sequence), run with arrays of any such size.

        model = sdlf.DynamicModel("segment.onnx")
        small, large = model.run(np.zeros((1, 3, 224, 224), np.float32)), model.run(np.zeros((1, 3, 480, 640), np.float32))

    A plan is created for each new combination of sizes. The `keep` most recently used plans are kept, each with its own copy of the weights.
    """

    def __init__(self, path: str | os.PathLike, *, keep: int = 8, calculator: str = "cpu", threads: int = 0, device: int = 0,
                 math: str = "fp32"):
        path = os.fspath(path)
        if keep < 1:
            raise ArgumentError(f"keep: expected at least 1, found {keep}")
        self.inputs, self.outputs = _sdlf._onnx_names(path)
        self._lock = threading.Lock()
        self._made = _sdlf._Sized(path, self.inputs, self.outputs, keep, calculator, threads, device, math)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays (N,...) for the inputs, in order or by name. Returns a new NumPy array, or a dictionary if there are several outputs."""
        if len(args) > len(self.inputs):
            raise TypeError(f"the network has {len(self.inputs)} inputs, found {len(args)}")
        named = dict(zip(self.inputs, args))
        twice = next((name for name in kwargs if name in named), None)
        if twice is not None:
            raise TypeError(f"input '{twice}' is given twice")
        with self._lock:
            return self._made.run(**named, **kwargs)

    __call__ = run

    @property
    def plans_made(self) -> int:
        """The number of plans created so far, an int."""
        with self._lock:
            return self._made.made

    def __repr__(self) -> str:
        return f"<sdlf.DynamicModel: inputs {self.inputs}, outputs {self.outputs}>"
