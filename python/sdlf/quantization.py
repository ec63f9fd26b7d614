# SPDX-License-Identifier: MIT
"""Networks with integer weights and activations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _sdlf
from .model import Model
from .training import _as_dataset


def quantize(
    model: Model, path: str | os.PathLike, data: Any = None, *, weights_only: str | None = None, block: int = 0, per_tensor: bool = False,
    samples: int = 128, calibration: str = "minmax", percentile: float = 0, signed: bool = False, skip: Sequence[str] = (), opset: int = 0,
    calculator: str = "cpu", threads: int = 0, device: int = 0
) -> dict[str, Any]:
    """Write the model as a quantised ONNX file; returns a dict: layers, nodes, values, bytes and bytes_before, ...

    With data, a Dataset or a pair of arrays, samples (N,...) and labels (N), activations are quantised too; `samples` of them calibrate
    their ranges by `calibration`: "minmax", "percentile" or "entropy". weights_only: "int8", or "int4" in blocks, without data. `skip` lists
    layers that are left unchanged; NAME* stands for all names with that prefix.
    """
    bits = {None: 0, "int8": 8, "int4": 4}
    if weights_only not in bits:
        raise ValueError(f"weights_only: expected 'int8', 'int4' or None, found {weights_only!r}")
    if data is None and weights_only is None:
        raise TypeError("expected data to find the ranges of activations with, or weights_only")
    if data is not None and weights_only is not None:
        raise TypeError("weights_only leaves activations as they are: expected no data beside it")
    return _sdlf._quantize(model, os.fspath(path), _as_dataset(data) if data is not None else None, bits[weights_only], block, per_tensor,
                           samples, calibration, percentile, signed, list(skip), opset, calculator, threads, device)
