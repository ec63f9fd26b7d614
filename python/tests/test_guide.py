"""The code of docs/guides/python.md runs."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)


def test_there_is_code():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_code(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, str(GUIDE), "exec"), names)
    assert names["scores"].shape == (1, 10)
