# SPDX-License-Identifier: MIT
"""The parts of scripts/mutate-onnx.py: source models, changes, runs and comparisons."""
