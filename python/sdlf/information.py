# SPDX-License-Identifier: MIT
"""The calculators that this package can use on this machine."""

from __future__ import annotations

from . import _sdlf
from .table import Table


def info() -> Table:
    """A Table of the calculators: whether each can be used here, and what it runs on, or why it cannot be used.

    A GPU needs NVIDIA's driver, and cuBLAS for matrix products. Both are located when a calculator is opened, as done here.
    """
    rows = [
        (name, "yes" if there else "no", text.removeprefix(f"calculator '{name.partition(':')[0]}': "))
        for name, there, text in _sdlf._describe_calculators()
    ]
    return Table(("calculator", "usable", "runs on, or why not"), rows, f"sdlf {_sdlf.version}")
