#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Regenerate tests/fixtures/torch_*.json: PyTorch's results for every layer, optimizer and schedule.

    python3 scripts/make-torch-fixtures.py [FOLDER]

Needs PyTorch (CPU) and torchvision. The tests read the files and need no Python. Everything is computed in float64 from inputs that
float32 represents exactly, drawn from fixed seeds: the files change only if a case, or PyTorch, does.
"""
import json
import os
import sys

import torch

from fixtures import augment, gcn, layers, optimizers, schedules


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "tests", "fixtures")
    for name, family in {"layers": layers, "optimizers": optimizers, "schedules": schedules, "gcn": gcn,
                         "augment": augment}.items():
        cases = family.cases()
        path = os.path.join(folder, f"torch_{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"made_by": "scripts/make-torch-fixtures.py", "torch": "%s", "cases": [\n' % torch.__version__)
            file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
            file.write("\n]}\n")
        print(f"{path}: {len(cases)} cases, {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
