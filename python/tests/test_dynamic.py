# SPDX-License-Identifier: MIT
"""sdlf.DynamicModel: one file, many sizes."""

import gc
from pathlib import Path

import numpy as np
import pytest

import sdlf

MODEL = Path(__file__).parents[2] / "tests" / "onnx" / "fixtures" / "open" / "model.onnx"


def arrays(batch, height, width):
    rng = np.random.default_rng(height)
    return {"x": rng.normal(size=(batch, 1, height, width)).astype(np.float32),
            "m": rng.normal(size=(batch, 2, height, 1)).astype(np.float32)}


def test_sizes_come_and_go():
    model = sdlf.DynamicModel(MODEL, keep=2)
    assert set(model.inputs) == {"x", "m"} and "x" in repr(model)
    sizes = [(2, 7, 5), (1, 4, 4), (2, 7, 5), (1, 3, 9), (2, 7, 5), (1, 4, 4)]
    results = [model.run(**arrays(*size)) for size in sizes]
    assert model.plans_made == 4
    for size, result in zip(sizes, results):
        assert result.shape == (size[0], 2, size[1], size[2])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[5])
    given = arrays(2, 7, 5)
    np.testing.assert_array_equal(model(*[given[name] for name in model.inputs]), results[0])


def test_a_size_at_a_time_gives_the_same():
    given = arrays(1, 4, 6)
    whole = sdlf.DynamicModel(MODEL).run(**given)
    for column in range(6):
        part = sdlf.DynamicModel(MODEL, threads=1).run(x=given["x"][..., column : column + 1].copy(), m=given["m"])
        assert part.shape == (1, 2, 4, 1)
    assert np.isfinite(whole).all()


def test_what_does_not_fit_is_refused():
    model = sdlf.DynamicModel(MODEL)
    given = arrays(1, 4, 4)
    with pytest.raises(TypeError, match="given twice"):
        model.run(*[given[name] for name in model.inputs], x=given["x"])
    with pytest.raises(TypeError, match="has 2 inputs, found 3"):
        model.run(1, 2, 3)
    with pytest.raises(sdlf.Error):
        model.run(x=given["x"], m=given["m"][:, :, :3])
    with pytest.raises((TypeError, sdlf.Error)):
        model.run(x=given["x"])
    with pytest.raises(sdlf.ArgumentError, match="keep: expected at least 1"):
        sdlf.DynamicModel(MODEL, keep=0)
    assert model.run(**given).shape == (1, 2, 4, 4)
    del model
    gc.collect()
