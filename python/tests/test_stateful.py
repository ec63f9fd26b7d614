# SPDX-License-Identifier: MIT
"""sdlf.Stateful: a decoder with its keys and values, and a state that does not grow."""

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import sdlf
from sdlf import layers

DECODER = Path(__file__).parents[2] / "tests" / "onnx" / "fixtures" / "decoder"
STATES = {"past_key_values.*": "present.*"}


def decoder(length=1, capacity=12):
    return sdlf.Stateful(DECODER / "model.onnx", STATES, dimensions={"sequence_length": length}, capacity=capacity)


def test_steps_are_those_of_onnxruntime():
    tokens, logits = np.load(DECODER / "tokens.npy").reshape(-1), np.load(DECODER / "logits.npy").reshape(12, -1)
    model, found = decoder(), []
    assert model.inputs == {"input_ids": (1, 1)} and model.length == 0 and model.step == 1
    for i, token in enumerate(tokens):
        found.append(model(input_ids=np.array([[token]])))
        assert model.length == i + 1
        np.testing.assert_allclose(found[i].reshape(-1), logits[i], atol=1e-4)
    with pytest.raises(sdlf.ShapeError, match="12 positions of 12"):
        model(tokens[:1].reshape(1, 1))
    model.rewind(5)
    np.testing.assert_array_equal(model.run(tokens[5:6].reshape(1, 1)), found[5])
    model.rewind()
    np.testing.assert_array_equal(model(tokens[:1].reshape(1, 1)), found[0])


def test_steps_of_several_positions():
    tokens = np.load(DECODER / "tokens.npy").reshape(1, -1)
    one, three = decoder(), decoder(3)
    single = [one(tokens[:, i : i + 1]) for i in range(6)]
    double = [three(tokens[:, i : i + 3]) for i in (0, 3)]
    np.testing.assert_allclose(np.concatenate(double, 1), np.concatenate(single, 1), atol=1e-5)
    assert three.length == 6 and three.step == 3 and "6 positions" in repr(three)


def counter(path):
    """y = x + h, and h becomes y: sums of what went in."""
    model = sdlf.Model("sum")
    y = layers.add(model.input("x", (3,)), model.input("h", (3,)))
    model.output("y", layers.relu(y))
    model.output("h2", y)
    model.build(1)
    model.to_onnx(path)
    return sdlf.Stateful(path, {"h": "h2"})


def test_a_state_that_does_not_grow(tmp_path):
    model = counter(tmp_path / "sum.onnx")
    for i in range(1, 6):
        np.testing.assert_array_equal(model(np.float32([[1, 2, -3]])), np.float32([[i, 2 * i, 0]]))
    with pytest.raises(sdlf.ArgumentError, match="only be reset"):
        model.rewind(2)
    model.rewind()
    np.testing.assert_array_equal(model(x=np.float64([[4, 0, 1]])), np.float32([[4, 0, 1]]))


def test_threads_take_turns(tmp_path):
    model = counter(tmp_path / "sum.onnx")
    threads = [threading.Thread(target=lambda: [model(np.ones((1, 3), np.float32)) for _ in range(200)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.length == 600
    np.testing.assert_array_equal(model(np.zeros((1, 3), np.float32)), np.full((1, 3), 600, np.float32))


def test_what_is_wrong_is_told(tmp_path):
    with pytest.raises(sdlf.FileError):
        sdlf.Stateful(tmp_path / "none.onnx", STATES)
    for states in ({"nothing.*": "present.*"}, {"past_key_values.*": "present"}):
        with pytest.raises(sdlf.ArgumentError, match="inputs of the model that fit"):
            sdlf.Stateful(DECODER / "model.onnx", states)
    for states in ({}, {"past": "present"}):
        with pytest.raises(sdlf.Error):
            sdlf.Stateful(DECODER / "model.onnx", states, dimensions={"sequence_length": 1})
    model = decoder()
    for call, error in [(lambda: model(np.zeros((1, 2), np.int64)), sdlf.ShapeError), (lambda: model(np.zeros((1, 1), np.float32)), TypeError),
                        (lambda: model(), TypeError), (lambda: model(tokens=np.zeros((1, 1), np.int64)), TypeError)]:
        with pytest.raises(error):
            call()
    assert model.length == 0 and model(np.zeros((1, 1), np.int64)).shape == (1, 1, 11)


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_many_steps_leak_nothing():
    token, model = np.zeros((1, 1), np.int64), decoder()

    def calls(count):
        for i in range(count):
            if i % 12 == 0:
                model.rewind()
            model(token)
            if i % 100 == 0:
                decoder()(token)
                with pytest.raises(sdlf.ShapeError):
                    model(np.zeros((2, 2), np.int64))

    calls(1000)
    gc.collect()
    before = memory()
    calls(10000)
    gc.collect()
    assert memory() - before < 4 << 20
