# SPDX-License-Identifier: MIT
"""sdlf.quantize."""

import numpy as np
import pytest

import sdlf
from sdlf import nn, optim


@pytest.fixture
def trained(separable):
    model = sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=8, kernel=3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3)])
    sdlf.Trainer(model, separable, batch=32, epochs=4, optimizer=optim.Adam(), progress=False).run()
    return model


def accuracy(model, separable):
    samples, labels = separable
    return (model(samples.astype(np.float32) / 255).argmax(1) == labels).mean()


@pytest.mark.parametrize("calibration", ["minmax", "percentile", "entropy"])
def test_activations(trained, separable, tmp_path, calibration):
    made = sdlf.quantize(trained, tmp_path / "int8.onnx", separable, calibration=calibration)
    assert made["layers"] == 2 and made["left"] == 0 and made["values"] > 0 and made["samples"] == 128
    assert made["bytes"] == (tmp_path / "int8.onnx").stat().st_size
    after = sdlf.Model.from_onnx(tmp_path / "int8.onnx")
    assert abs(accuracy(after, separable) - accuracy(trained, separable)) < 0.05
    x = separable[0][:1].astype(np.float32) / 255
    assert not np.array_equal(after(x), trained(x))


@pytest.mark.parametrize("bits", ["int8", "int4"])
def test_weights_only(trained, separable, tmp_path, bits):
    made = sdlf.quantize(trained, tmp_path / "small.onnx", weights_only=bits)
    assert made["values"] == 0 and made["layers"] == 2
    after = sdlf.Model.from_onnx(tmp_path / "small.onnx")
    assert abs(accuracy(after, separable) - accuracy(trained, separable)) < 0.05


def test_layers_to_skip(trained, tmp_path):
    last = trained._layers[-1]["name"]
    made = sdlf.quantize(trained, tmp_path / "small.onnx", weights_only="int8", skip=[last])
    assert made["layers"] == 1 and made["left"] == 1
    with pytest.raises(sdlf.ArgumentError, match="nowhere"):
        sdlf.quantize(trained, tmp_path / "small.onnx", weights_only="int8", skip=["nowhere"])


def test_what_does_not_go_together(trained, separable, tmp_path):
    for words, error in [({}, TypeError), ({"weights_only": "int3"}, ValueError), ({"data": separable, "weights_only": "int8"}, TypeError),
                         ({"data": separable, "calibration": "guess"}, ValueError)]:
        with pytest.raises(error):
            sdlf.quantize(trained, tmp_path / "none.onnx", **words)
    assert not (tmp_path / "none.onnx").exists()
