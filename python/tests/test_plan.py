# SPDX-License-Identifier: MIT
"""Plans: running in place, training step by step, gradients."""

import numpy as np
import pytest

import sdlf
from sdlf import layers, nn, optim


def test_memory_of_inputs_and_results(small):
    plan = small.plan(3)
    assert plan.inputs == ["x"] and plan.outputs == ["y"] and plan.batch == 3
    x, y = plan.input("x"), plan.output("y")
    x[:] = np.random.default_rng(0).standard_normal(x.shape)
    plan.forward()
    np.testing.assert_array_equal(y, small(x))
    with pytest.raises(KeyError):
        plan.input("z")


def test_a_plan_keeps_its_model():
    plan = sdlf.Model.sequential((4,), [nn.Linear(2)]).plan(2)
    assert plan(np.zeros((2, 4), np.float32)).shape == (2, 2)


def test_the_model_takes_no_layers_meanwhile(small):
    plan = small.plan(1)
    with pytest.raises(sdlf.ArgumentError):
        small.build(2)
    del plan
    small.build(2)


def test_gradients_are_differences():
    model = sdlf.Model.sequential((5,), [nn.Linear(4, name="a"), nn.Tanh(), nn.Linear(3, name="b")])
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((6, 5)), rng.integers(0, 3, 6)
    plan = model.plan(6, "train", dtype="float64", gradients_only=True, calculator="reference")

    def loss():
        plan.load_parameters()
        return float(plan.run(x, labels=labels)["loss"].sum())

    loss()
    plan.backward()
    for name in ("a.weight", "b.bias"):
        gradient = plan.gradient(name)
        value = np.array(model.parameters[name])
        at = tuple(np.unravel_index(np.abs(gradient).argmax(), gradient.shape))
        step = 2.0**-10  # exact in float32, the type of the parameters
        results = []
        for sign in (1, -1):
            changed = value.copy()
            changed[at] = np.float32(np.round(value[at] * 1024) / 1024) + np.float32(sign * step)
            model.parameters[name] = changed
            results.append(loss())
        centre = value.copy()
        centre[at] = np.float32(np.round(value[at] * 1024) / 1024)
        model.parameters[name] = centre
        loss()
        plan.backward()
        assert plan.gradient(name)[at] == pytest.approx((results[0] - results[1]) / (2 * step), rel=1e-4)


def test_steps_lower_the_loss(small, separable):
    samples, labels = separable
    x = samples[:64].astype(np.float32) / 255
    plan = small.plan(64, "train", optimizer=optim.SGD(momentum=0.9))
    before = small.parameters["conv.weight"].copy()
    losses = []
    for _ in range(40):
        plan.clear_metrics()
        plan.step(0.05, x, labels=labels[:64])
        losses.append(plan.metrics()["loss"])
    assert losses[-1] < 0.5 * losses[0]
    plan.store_parameters()
    assert not np.array_equal(before, small.parameters["conv.weight"])
    assert (small(x).argmax(1) == labels[:64]).mean() > 0.8


def test_activations(small):
    plan = small.plan(2, keep_activations=True)
    x = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)
    plan.run(x)
    conv, relu = plan.activation("conv"), plan.activation("relu")
    np.testing.assert_array_equal(np.maximum(conv, 0), relu)


def test_options_that_there_are_not(small):
    with pytest.raises(ValueError, match="neither infer nor train"):
        small.plan(1, "eval")
    with pytest.raises(ValueError, match="fp32, tf32"):
        small.plan(1, math="fp64")
    with pytest.raises(sdlf.Error, match="cpu"):
        small.plan(1, calculator="tpu")
    with pytest.raises(sdlf.ArgumentError):
        small.plan(0)
    with pytest.raises(TypeError, match="sgd has no option 'beta'"):
        bad = optim.SGD()
        bad.options["beta"] = 1
        small.plan(1, "train", optimizer=bad)


def test_times_and_memory(small):
    plan = small.plan(4)
    plan.time(3)
    assert plan.memory()["arena"] > 0
    layers_of = {row["layer"]: row for row in plan.layers()}
    assert sum(row["seconds"] for row in layers_of.values()) > 0
    assert any(row["flops"] > 0 for row in layers_of.values())


def test_calculators():
    assert {"reference", "cpu"} <= set(sdlf.calculators())
    model = sdlf.Model.sequential((3,), [nn.Sigmoid()]).use("reference")
    np.testing.assert_allclose(model(np.zeros((1, 3), np.float32)), 0.5)
    x = model.use("cpu", threads=1)(np.ones((1, 3), np.float32))
    np.testing.assert_allclose(x, 1 / (1 + np.exp(-1)), rtol=1e-6)


def test_layers_are_as_the_library_has_them():
    for name in sdlf._sdlf.layer_classes():
        assert callable(getattr(layers, name))


def test_info_is_a_table(small):
    plan = small.plan(4)
    table = plan.info()
    assert table.columns == ("layer", "on", "shape", "parameters", "MFLOPs", "kB") and len(table) == len(plan.layers())
    assert table[0][1] == "cpu" and "batch 4: " in table.caption and repr(plan).startswith("<sdlf.Plan: batch 4, ")
    plan.time(2)
    assert plan.info().columns[-1] == "us" and "us forward" in plan.info().caption and plan.info()[0][-1] > 0
    assert "<table>" in plan._repr_html_()
    training = small.plan(4, "train", gradients_only=True)
    assert "backward on" in training.info().columns
    training.time(1)
    assert training.info().columns[-1] == "backward us" and "MB of activations" in repr(training.info())
