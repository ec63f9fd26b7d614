# SPDX-License-Identifier: MIT
"""The table that describes a plan."""

from __future__ import annotations

from . import _sdlf
from .table import Table


def info(plan: _sdlf.Plan) -> Table:
    """The Table returned by Plan.info()."""
    layers = plan.layers()
    trains, timed = any(layer["backward"] for layer in layers), any(layer["seconds"] for layer in layers)
    columns = ["layer", "on", *(["backward on"] if trains else []), "shape", "parameters", "MFLOPs", "kB", *(["us"] if timed else []),
               *(["backward us"] if timed and trains else [])]
    rows = []
    for layer in layers:
        row = [layer["layer"], layer["forward"] or "-"]
        if trains:
            row.append(layer["backward"] or "-")
        row += ["x".join(map(str, layer["shape"])), layer["parameters"], layer["flops"] / 1e6, layer["bytes"] / 1e3]
        if timed:
            row.append(1e6 * layer["seconds"])
        if timed and trains:
            row.append(1e6 * layer["backward_seconds"])
        rows.append(tuple(row))
    memory = plan.memory()
    total = f"batch {plan.batch}: {sum(layer['flops'] for layer in layers) / 1e6:,.4g} MFLOPs"
    if timed:
        total += f", {1e6 * sum(layer['seconds'] for layer in layers):,.4g} us"
    return Table(columns, rows, f"{total} forward; {memory['arena'] / 1e6:,.4g} MB of activations, {memory['parameters'] / 1e6:,.4g} MB of parameters")
