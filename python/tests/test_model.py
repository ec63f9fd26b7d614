# SPDX-License-Identifier: MIT
"""Models: building, running, parameters, files, errors."""

import gc
import os
import threading
import weakref

import numpy as np
import pytest

import sdlf
from sdlf import layers, nn


def by_hand(model, x):
    """The network of the fixture `small` in NumPy."""
    p = model.parameters
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    y = np.einsum("nchwrs,kcrs->nkhw", windows, p["conv.weight"]) + p["conv.bias"][:, None, None]
    y = np.maximum(y, 0).reshape(len(x), 4, 4, 2, 4, 2).max((3, 5)).reshape(len(x), -1)
    weight = p["head.weight"]
    return y @ (weight if weight.shape[0] == y.shape[1] else weight.T) + p["head.bias"]


def test_run_is_what_numpy_computes(small):
    for batch in (1, 5, 2, 7, 3, 5):
        x = np.random.default_rng(batch).standard_normal((batch, 1, 8, 8)).astype(np.float32)
        np.testing.assert_allclose(small(x), by_hand(small, x), rtol=1e-4, atol=1e-5)


def test_arrays_of_any_layout_and_width(small):
    x = np.random.default_rng(1).standard_normal((4, 1, 8, 8)).astype(np.float32)
    expected = small(x)
    np.testing.assert_array_equal(small(np.asfortranarray(x)), expected)
    np.testing.assert_array_equal(small(np.repeat(x, 2, axis=3)[..., ::2]), expected)
    np.testing.assert_array_equal(small(x.astype(np.float64)), expected)
    np.testing.assert_array_equal(small(x=x), expected)
    x.flags.writeable = False
    np.testing.assert_array_equal(small(x), expected)


def test_functions_and_several_results():
    model = sdlf.Model("two")
    a, b = model.input("a", (6,)), model.input("b", (6,))
    both = layers.add(a, b)
    model.output("sum", both)
    model.output("positive", layers.relu(both))
    model.build()
    x, y = np.arange(12, dtype=np.float32).reshape(2, 6) - 6, np.ones((2, 6), np.float32)
    results = model(x, y)
    np.testing.assert_array_equal(results["sum"], x + y)
    np.testing.assert_array_equal(results["positive"], np.maximum(x + y, 0))
    np.testing.assert_array_equal(model(b=y, a=x)["sum"], x + y)
    assert model.inputs == ["a", "b"] and model.outputs == ["sum", "positive"]


def test_what_a_call_gets_wrong(small):
    x = np.zeros((2, 1, 8, 8), np.float32)
    with pytest.raises(sdlf.ShapeError, match="2x1x8x8, found 2x1x8x9"):
        small(np.zeros((2, 1, 8, 9), np.float32))
    with pytest.raises(TypeError, match="float32, found uint8"):
        small(x.astype(np.uint8))
    with pytest.raises(TypeError, match="expected an array.*found ndarray of dtype >f4"):
        small(np.zeros((2, 1, 8, 8), ">f4"))
    with pytest.raises(TypeError, match="expected an array.*found list"):
        small([[1.0]])
    with pytest.raises(TypeError, match="no input 'z'; it has: x"):
        small(x, z=x)
    with pytest.raises(TypeError, match="given twice"):
        small(x, x=x)
    with pytest.raises(TypeError, match="missing"):
        small()
    with pytest.raises(sdlf.ShapeError, match="no samples"):
        small(np.zeros((0, 1, 8, 8), np.float32))


def test_errors_are_exceptions_with_the_librarys_message():
    model = sdlf.Model()
    x = model.input("x", (1, 8, 8))
    with pytest.raises(TypeError, match="conv2d has no option 'size'; it has: filters, kernel"):
        model._add("conv2d", [x], None, {"size": 3}, "")
    with pytest.raises(ValueError, match="is none of"):
        layers.unary(x, function="gelo")
    with pytest.raises(TypeError, match="expected a Node"):
        layers.relu(np.zeros(3))
    model.output("y", layers.conv2d(x, filters=4, kernel=11))
    with pytest.raises(sdlf.ShapeError, match=r"test_model.py:\d+"):
        model.build()
    assert issubclass(sdlf.ShapeError, sdlf.Error) and issubclass(sdlf.ShapeError, ValueError)
    with pytest.raises(sdlf.FileError, match="not-there"):
        sdlf.Model.open("not-there.safetensors")
    with pytest.raises(OSError):
        sdlf.Model.open("not-there.json")
    with pytest.raises(ValueError, match="different models"):
        layers.add(x, sdlf.Model().input("x", (1, 8, 8)))


def test_parameters(small):
    p = small.parameters
    assert set(p) == {"conv.weight", "conv.bias", "head.weight", "head.bias"} and len(p) == 4
    assert p["conv.weight"].shape == (4, 1, 3, 3) and not p["conv.weight"].flags.writeable
    view, before = p["head.bias"], small.hash()
    x = np.zeros((1, 1, 8, 8), np.float32)
    small(x)
    p["head.bias"] = np.array([1, 2, 3])
    np.testing.assert_array_equal(view, [1, 2, 3])
    assert small.hash() != before
    np.testing.assert_allclose(small(x), by_hand(small, x), rtol=1e-5)
    with pytest.raises(sdlf.ShapeError, match="head.bias has the shape 3, found 4"):
        p["head.bias"] = np.zeros(4)
    with pytest.raises(KeyError):
        p["head.nothing"]
    assert p.info("head.bias")["layer"] == "head"


def test_views_outlive_the_model_and_keep_their_memory(small):
    view = small.parameters["conv.weight"]
    copy = view.copy()
    with pytest.raises(sdlf.ArgumentError, match="still in use"):
        small.replace_head(5)
    with pytest.raises(sdlf.ArgumentError, match="still in use"):
        small.build(7)
    del small
    gc.collect()
    np.testing.assert_array_equal(view, copy)


def test_new_head_and_more_layers(small):
    x = np.ones((2, 1, 8, 8), np.float32)
    kept = small.parameters["conv.weight"].copy()
    small(x)
    small.replace_head(7, seed=3)
    assert small(x).shape == (2, 7)
    np.testing.assert_array_equal(small.parameters["conv.weight"], kept)


def test_results_stay_while_there_is_a_plan(small):
    plan = small.plan(1, keep_activations=True)
    for change in (small.clear_outputs, lambda: small.input("z", (3,)), lambda: small.output("z", None), lambda: small.freeze("conv.bias")):
        with pytest.raises((sdlf.ArgumentError, TypeError)):
            change()
    assert plan(np.zeros((1, 1, 8, 8), np.float32)).shape == (1, 3)
    del plan
    small.save("/dev/null")  # nothing of it has spoiled the model


def test_outputs_that_there_are_not():
    model = sdlf.Model()
    x = model.input("x", (3,))
    for index in (-1, 4, 1000):
        with pytest.raises(IndexError):
            x.output(index)
    model.output("y", x)
    with pytest.raises(sdlf.ArgumentError, match="'y' already"):
        model.output("y", x)
    model.build()


def test_inputs_that_nothing_depends_on():
    model = sdlf.Model()
    model.input("a", (2,))
    model.output("y", layers.relu(model.input("b", (3,))))
    model.build()
    x, y = np.zeros((4, 2), np.float32), np.ones((4, 3), np.float32)
    for result in (model(x, y), model(b=y), model(a=x, b=y)):
        np.testing.assert_array_equal(result, y)
    with pytest.raises(TypeError, match="'b' is missing"):
        model(a=x)


def test_a_model_that_refers_to_its_nodes_is_collected():
    class Net(sdlf.Model):
        pass

    gone = []
    net = Net("net")
    net.x = net.input("x", (3,))
    weakref.finalize(net, gone.append, True)
    del net
    gc.collect()
    assert gone == [True]


def test_subclasses_with_arguments_of_their_own(small, tmp_path):
    class Net(sdlf.Model):
        def __init__(self, width):
            super().__init__("net")
            self.width = width

    small.save(tmp_path / "net.safetensors")
    assert isinstance(Net.open(tmp_path / "net.safetensors"), Net) and Net(3).width == 3


def test_zero_that_would_be_a_default():
    x = sdlf.Model().input("x", (3, 8, 8))
    with pytest.raises(ValueError, match="conv2d.stride: 0 cannot be asked for; left out, it is 1"):
        layers.conv2d(x, filters=1, kernel=1, stride=0)
    with pytest.raises(ValueError, match="leaky_relu.slope"):
        layers.leaky_relu(x, slope=0)
    layers.dropout(x, probability=0.5)
    layers.conv2d(x, filters=1, kernel=1, padding=0, no_bias=False)


def test_files(small, tmp_path):
    x = np.random.default_rng(2).standard_normal((3, 1, 8, 8)).astype(np.float32)
    expected = small(x)
    small.classes = ["a", "b", "ç"]
    small.normalization = ([0.5], [0.25])
    small.save(tmp_path / "net.safetensors")
    again = sdlf.Model.open(tmp_path / "net.safetensors")
    assert isinstance(again, sdlf.Model) and again.classes == ["a", "b", "ç"] and again.normalization == ((0.5,), (0.25,))
    np.testing.assert_array_equal(again(x), expected)
    np.testing.assert_array_equal(sdlf.Model.open(bytes(tmp_path / "net.safetensors"))(x), expected)
    other = sdlf.Model.from_json(small.to_json())
    other.build(9)
    assert other.hash() != small.hash()
    other.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(other(x), expected)
    small.to_c(tmp_path / "net.c")
    assert "net" in (tmp_path / "net.c").read_text()
    try:
        made = small.to_onnx(tmp_path / "net.onnx")
    except sdlf.UnsupportedError as e:
        assert "protobuf-c" in str(e)
        return
    assert made["bytes"] == os.path.getsize(tmp_path / "net.onnx")
    np.testing.assert_allclose(sdlf.Model.open(tmp_path / "net.onnx")(x), expected, rtol=1e-5, atol=1e-6)


def test_builtin_networks():
    model = sdlf.Model.builtin("simple_cnn")
    model.build(1)
    assert model(np.zeros((2, 1, 28, 28), np.float32)).shape == (2, 10)
    model = sdlf.Model.builtin("resnet20", sample=(3, 32, 32), classes=7)
    model.build(1)
    assert model(np.zeros((1, 3, 32, 32), np.float32)).shape == (1, 7)
    with pytest.raises(sdlf.ArgumentError, match="resnet"):
        sdlf.Model.builtin("resnet19")


def test_looking(small):
    table = small.info()
    assert table.columns == ("layer", "type", "inputs", "shape", "parameters")
    assert ("conv", "conv2d", "x", "1x4x8x8", 40) in list(table)
    assert "235 parameters" in repr(table) and "<table>" in small._repr_html_()
    assert "'x'" in repr(small)


def test_two_models_in_two_threads():
    wrong = []

    def work(seed):
        model = sdlf.Model.sequential((16,), [nn.Linear(32), nn.Tanh(), nn.Linear(4)], seed=seed)
        rng = np.random.default_rng(seed)
        for batch in rng.integers(1, 9, 200):
            x = rng.standard_normal((batch, 16)).astype(np.float32)
            y = model(x)
            if y.shape != (batch, 4) or not np.array_equal(y, model(x)):
                wrong.append((seed, batch))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_one_model_in_several_threads(small):
    sizes = 6  # more than the plans that are kept
    x = np.random.default_rng(3).standard_normal((sizes, 1, 8, 8)).astype(np.float32)
    expected, wrong = [small(x[:n]) for n in range(1, sizes + 1)], []

    def work():
        for i in range(300):
            n = i % sizes + 1
            if not np.array_equal(small(x[:n]), expected[n - 1]):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    small.build(5)  # no plan was left behind


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_ten_thousand_calls_leak_nothing(small):
    x = np.zeros((64, 1, 8, 8), np.float32)

    def calls(count):
        for i in range(count):
            small(x[: 1 + i % 6])
            small.parameters["head.bias"] = np.zeros(3)
            small.parameters["conv.weight"]
            if i % 100 == 0:
                model = sdlf.Model.sequential((64,), [nn.Linear(256)])
                model(np.zeros((2, 64), np.float32))
            if i % 10 == 0:
                with pytest.raises(sdlf.ShapeError):
                    small(x[:, :, 1:])

    calls(1000)
    gc.collect()
    before = memory()
    calls(10000)
    gc.collect()
    assert memory() - before < 4 << 20


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    model = sdlf.Model.sequential((6,), [nn.ReLU()])
    x = torch.randn(2, 6)
    np.testing.assert_array_equal(model(x), torch.relu(x).numpy())
    np.testing.assert_array_equal(torch.from_dlpack(model(x)), torch.relu(x))
