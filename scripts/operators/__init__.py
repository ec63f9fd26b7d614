# SPDX-License-Identifier: MIT
"""What scripts/compare-operators.py draws and runs: models of one node."""
