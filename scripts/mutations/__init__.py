# SPDX-License-Identifier: MIT
"""What scripts/mutate-onnx.py starts from, changes, runs and compares."""
