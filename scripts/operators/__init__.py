# SPDX-License-Identifier: MIT
"""Random models of one node, which scripts/compare-operators.py draws and runs."""
