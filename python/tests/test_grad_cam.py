# SPDX-License-Identifier: MIT
"""Model.grad_cam."""

import numpy as np
import pytest

import sdlf
from sdlf import layers, nn, optim


def make(*end):
    return sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=4, kernel=3, padding=1, name="conv"), nn.GlobalAvgPool2d(), nn.Flatten(), nn.Linear(3, name="head"), *end])


def expected(model, x, chosen):
    """Of this network in closed form: the gradient by every pixel of channel k is the head's weight of it, over the number of pixels."""
    plan = model.plan(1, keep_activations=True)
    plan.run(x)
    a, weight = plan.activation("conv")[0], model.parameters["head.weight"]
    weight = weight if weight.shape[0] == 3 else weight.T
    return np.maximum(np.tensordot(weight[chosen], a, 1), 0) / 64


@pytest.mark.parametrize("end", [(), (nn.Softmax(),)])
def test_it_is_the_formula(end):
    model = make(*end)
    x = np.random.default_rng(1).standard_normal((3, 1, 8, 8)).astype(np.float32)
    before = model.hash()
    for chosen in range(3):
        maps = model.grad_cam(x, chosen)
        assert maps.shape == (3, 8, 8) and maps.dtype == np.float32
        for i in range(3):
            np.testing.assert_allclose(maps[i], expected(model, x[i : i + 1], chosen), rtol=1e-4, atol=1e-6)
    likeliest = model(x).argmax(1)
    np.testing.assert_array_equal(model.grad_cam(x), model.grad_cam(x, likeliest))
    assert model.hash() == before and model(x).shape == (3, 3)


def test_weights_are_the_slopes_of_the_score(separable):
    """A convolution's bias moves all of its channel: the score's slope by it is the sum of the gradient over the pixels."""
    samples, labels = separable
    model = sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=8, kernel=3, padding=1), nn.BatchNorm2d(), nn.ReLU(), nn.Conv2d(filters=6, kernel=3, padding=1, name="last"),
                    nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(3)])
    sdlf.Trainer(model, separable, batch=32, epochs=2, optimizer=optim.Adam(), schedule=optim.OneCycle(0.02), progress=False).run()
    x = samples[:1].astype(np.float32) / 255
    plan = model.plan(1, keep_activations=True)
    plan.run(x)
    a = plan.activation("last")[0]
    del plan
    bias, step, slopes = model.parameters["last.bias"].copy(), 1e-2, []
    for k in range(6):
        scores = []
        for sign in (1, -1):
            moved = bias.copy()
            moved[k] += sign * step
            model.parameters["last.bias"] = moved
            scores.append(float(model(x)[0, labels[0]]))
        slopes.append((scores[0] - scores[1]) / (2 * step))
    model.parameters["last.bias"] = bias
    expected_map = np.maximum(np.tensordot(np.array(slopes) / 64, a, 1), 0)
    found = model.grad_cam(x, labels[:1], layer="last")[0]
    np.testing.assert_allclose(found, expected_map, atol=0.02 * max(expected_map.max(), np.abs(a).max() * np.abs(slopes).max() / 64))
    np.testing.assert_array_equal(model.grad_cam(x, int(labels[0])), model.grad_cam(x, int(labels[0]), layer="sigmoid"))


def test_by_default_it_is_behind_the_activation():
    model = sdlf.Model("residual")
    x = model.input("x", (3, 8, 8))
    x = layers.relu(layers.conv2d(x, filters=4, kernel=3, padding=1), name="first")
    y = layers.batch_norm2d(layers.conv2d(x, filters=4, kernel=3, padding=1, name="last"))
    y = layers.relu(layers.add(x, y), name="second")
    model.output("y", layers.fully_connected(layers.flatten(layers.max_pool2d(y, window=2)), units=3))
    model.build(1)
    x = np.random.default_rng(3).standard_normal((2, 3, 8, 8)).astype(np.float32)
    np.testing.assert_array_equal(model.grad_cam(x), model.grad_cam(x, layer="second"))
    assert not np.array_equal(model.grad_cam(x), model.grad_cam(x, layer="last"))


def test_what_cannot_be_is_told():
    x = np.zeros((1, 1, 8, 8), np.float32)
    with pytest.raises(sdlf.UnsupportedError, match="no convolution"):
        sdlf.Model.sequential((1, 8, 8), [nn.Flatten(), nn.Linear(3)]).grad_cam(x)
    with pytest.raises(sdlf.ArgumentError, match="no layer 'other'"):
        make().grad_cam(x, layer="other")
    with pytest.raises(sdlf.ShapeError, match="'head'"):
        make().grad_cam(x, layer="head")
    with pytest.raises(sdlf.ArgumentError, match="expected 0 to 2, found 3"):
        make().grad_cam(x, 3)


@pytest.mark.parametrize("order", [None, (0, 2, 3, 1)])
def test_the_usual_layer_is_behind_the_residual_and_moves_nothing(order):
    """The residual comes from the input, and a transposition, of equal shape, is not looked through. Scores are a matrix of the activation."""
    model = sdlf.Model("branched")
    x = model.input("x", (8, 8, 8))
    y = layers.relu(layers.add(x, layers.conv2d(x, filters=8, kernel=3, padding=1)), name="relu")
    if order is not None:
        y = layers.transpose(y, order=order)
    model.output("y", layers.fully_connected(layers.flatten(y), units=3, name="head"))
    model.build(1)
    sample = np.random.default_rng(3).standard_normal((1, 8, 8, 8)).astype(np.float32)
    plan = model.plan(1, keep_activations=True)
    plan.run(sample)
    a, weight = plan.activation("relu")[0], model.parameters["head.weight"]
    slopes = (weight[1] if weight.shape[0] == 3 else weight[:, 1]).reshape(8, 8, 8)
    if order is not None:
        slopes = slopes.transpose(2, 0, 1)
    wanted = np.maximum(np.tensordot(slopes.mean((1, 2)), a, 1), 0)
    assert wanted.max() > 0
    np.testing.assert_allclose(model.grad_cam(sample, 1)[0], wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(model.grad_cam(sample, 1), model.grad_cam(sample, 1, layer="relu"))
