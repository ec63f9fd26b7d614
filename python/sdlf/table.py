# SPDX-License-Identifier: MIT
"""Tables for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any


class Table:
    """Rows with column headings: prints as text, shows as HTML in a notebook, and is a sequence of tuples. columns: a tuple of str; rows: a list
    of tuples; caption: a str."""

    def __init__(self, columns: Sequence[str], rows: Sequence[tuple], caption: str = ""):
        self.columns, self.rows, self.caption = tuple(columns), list(rows), caption

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple:
        return self.rows[index]

    @staticmethod
    def _text(value: Any) -> str:
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)

    def __repr__(self) -> str:
        lines = [self.columns] + [tuple(map(self._text, row)) for row in self.rows]
        width = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        right = [bool(self.rows) and all(isinstance(row[i], (int, float)) for row in self.rows) for i in range(len(self.columns))]
        text = [
            "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, width, right)).rstrip() for line in lines
        ]
        return "\n".join(text + ([self.caption] if self.caption else []))

    def _repr_html_(self) -> str:
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{html.escape(self._text(cell))}</{tag}>" for cell in cells) + "</tr>"

        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        body = "".join(row(cells, "td") for cells in self.rows)
        return f"<table>{caption}<thead>{row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>"
