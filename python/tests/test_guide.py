# SPDX-License-Identifier: MIT
"""The code of docs/guides/python.md and of the notebook runs."""

import json
import re
import runpy
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"
PROGRAM = Path(__file__).parents[1] / "examples" / "see.py"
NOTEBOOK = Path(__file__).parents[1] / "examples" / "digits.ipynb"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)


def test_there_is_code():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_code(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, str(GUIDE), "exec"), names)
    assert names["scores"].shape == (1, 10)


def test_notebook(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{NOTEBOOK.name} {cell['id']}", "exec"), names)
    assert names["result"].accuracy > 0.9
    assert "is taken for" in capsys.readouterr().out
    assert "<table>" in names["model"]._repr_html_() and "<td>2</td>" in names["history"]._repr_html_()


def test_from_nothing_to_pictures(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(PROGRAM))
    assert names["history"]["test_accuracy"][-1] > 0.9
    for name in ("training.png", "grad_cam.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    assert "training.png and grad_cam.png" in capsys.readouterr().out
