# SPDX-License-Identifier: MIT
"""What there is to compute with."""

import os
import subprocess
import sys

import pytest

import sdlf


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="no /proc/self/maps")
@pytest.mark.skipif("cuda" not in sdlf.calculators(), reason="built without CUDA")
def test_nothing_of_cuda_is_needed_to_start():
    script = "import sdlf, sys; sys.stdout.write(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert "_sdlf" in maps
    loaded = [line.rpartition("/")[2] for line in maps.splitlines()]
    assert not [name for name in loaded if name.startswith(("libcuda", "libcublas"))]


def test_info_says_what_can_be_used_or_why_not():
    table = sdlf.info()
    rows = {row[0]: row[1:] for row in table}
    assert rows["cpu"][0] == "yes" and "thread" in rows["cpu"][1]
    assert sdlf.__version__ in repr(table) and "<td>cpu</td>" in table._repr_html_()
    cuda = [row for name, *row in table if name.startswith("cuda")]
    assert cuda
    for usable, text in cuda:
        assert text and "calculator 'cuda'" not in text
        if usable == "yes":
            assert "compute capability" in text
        elif "cuda" in sdlf.calculators():
            assert "NVIDIA driver" in text or "libcublas" in text or "kernels" in text or "no CUDA device" in text
        else:
            assert text == "not in this build: it was made without CUDA"
