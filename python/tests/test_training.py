# SPDX-License-Identifier: MIT
"""Data sets, Trainer, evaluation."""

import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import sdlf
from sdlf import nn, optim


def make():
    return sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=4, kernel=3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3)])


def test_training_on_arrays(separable):
    seen, model = [], make()
    trainer = sdlf.Trainer(model, separable, separable, batch=32, epochs=6, optimizer=optim.Adam(), schedule=optim.OneCycle(0.02),
                           callbacks=[seen.append], progress=False)
    history = trainer.run()
    assert history.finished and len(history.epochs) == 6 and history["loss"][-1] < history["loss"][0]
    assert history["test_accuracy"][-1] > 0.95
    assert {"step", "epoch"} == {p["event"] for p in seen}
    assert "test_accuracy" in repr(history) and trainer.memory > 0
    result = sdlf.evaluate(model, separable)
    assert result.accuracy == history["test_accuracy"][-1] and result.confusion.sum() == 300 and "of 300" in repr(result)
    samples, labels = separable
    x = samples.astype(np.float32) / 255
    assert (model(x).argmax(1) == labels).mean() == result.accuracy


def test_generators_and_iterables_are_read_once(separable):
    samples, labels = separable
    options = dict(batch=32, epochs=2, optimizer=optim.Adam(), progress=False)

    def one_by_one():
        yield from zip(samples, labels)

    def batches():
        for i in range(0, len(labels), 70):  # the last one is shorter
            yield samples[i : i + 70], labels[i : i + 70]

    hashes = set()
    for data in (separable, one_by_one, one_by_one(), batches, list(batches())):
        model = make()
        sdlf.Trainer(model, data, **options).run()
        hashes.add(model.hash())
    assert len(hashes) == 1
    assert sdlf.evaluate(make(), batches).samples == 300
    for data, error, text in ((lambda: iter(()), sdlf.ArgumentError, "no sample"), ([samples, labels, labels], TypeError, "item 0: expected a pair"),
                              (lambda: iter([(samples[:2], labels[:3])]), sdlf.ShapeError, "item 0"),
                              (lambda: iter([(samples[0], 1), (samples[0, 0], 1)]), sdlf.ShapeError, "item 1"), (7, TypeError, "found int")):
        with pytest.raises(error, match=text):
            sdlf.Trainer(make(), data, **options)


def test_float_samples_are_the_bytes_normalised(separable):
    samples, labels = separable
    hashes = []
    for data in (separable, (samples.astype(np.float32) / np.float32(255), labels)):
        model = make()
        sdlf.Trainer(model, data, batch=50, epochs=2, progress=False).run()
        hashes.append(model.parameters["conv2d.weight"].copy())
    np.testing.assert_allclose(hashes[0], hashes[1], rtol=1e-3, atol=1e-5)


def test_same_seed_same_weights(separable):
    hashes = set()
    for _ in range(2):
        model = make()
        sdlf.Trainer(model, separable, batch=32, epochs=2, augment={"flip": True, "crop": 1, "hue": 0.1}, progress=False, threads=2).run()
        hashes.add(model.hash())
    assert len(hashes) == 1


def test_a_callback_stops_and_training_goes_on(separable):
    whole, model = make(), make()
    sdlf.Trainer(whole, separable, batch=32, epochs=3, progress=False).run()
    stops = iter([False] * 12 + [True] + [False] * 1000)
    trainer = sdlf.Trainer(model, separable, batch=32, epochs=3, progress=False, callbacks=[lambda p: next(stops)])
    assert not trainer.run().finished
    assert model.hash() != whole.hash()
    assert trainer.run().finished
    assert model.hash() == whole.hash()


def test_checkpoints(separable, tmp_path):
    whole = make()
    sdlf.Trainer(whole, separable, batch=32, epochs=3, progress=False).run()
    path = tmp_path / "run.safetensors"
    trainer = sdlf.Trainer(make(), separable, batch=32, epochs=3, progress=False, checkpoint=path,
                           callbacks=[lambda p: p["event"] == "epoch" and p["epoch"] == 2])
    assert not trainer.run().finished
    resumed = sdlf.Model.open(path)
    sdlf.Trainer(resumed, separable, batch=32, epochs=3, progress=False, resume=True).run()
    assert resumed.hash() == whole.hash()


def test_exceptions_of_callbacks_are_raised(separable):
    def bad(progress):
        raise RuntimeError("of mine")

    with pytest.raises(RuntimeError, match="of mine"):
        sdlf.Trainer(make(), separable, progress=False, callbacks=[bad]).run()


def test_ctrl_c(separable):
    script = """
import signal
import numpy as np, sdlf
from sdlf import nn
signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells have a process in the background ignore
x = np.zeros((2000, 1, 28, 28), np.uint8)
model = sdlf.Model.sequential((1, 28, 28), [nn.Conv2d(filters=16, kernel=3), nn.Flatten(), nn.Linear(10)])
trainer = sdlf.Trainer(model, (x, np.arange(2000) % 10), epochs=10000, progress=False,
                       callbacks=[lambda p: print("step", flush=True) if p["step"] == 1 and p["epoch"] == 1 else None])
try:
    trainer.run()
except KeyboardInterrupt:
    print("stopped", trainer.history.finished, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "step\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and output == "stopped False\n"


def test_other_threads_run_meanwhile():
    """Between two steps, which the training thread tells of, another thread of Python's makes progress."""
    passes, between = [0], []
    x = np.zeros((40, 3, 32, 32), np.uint8)
    model = sdlf.Model.builtin("resnet20")
    trainer = sdlf.Trainer(model, (x, np.arange(40) % 10), batch=20, epochs=3, progress=False, callbacks=[lambda p: between.append(passes[0])])
    thread = threading.Thread(target=trainer.run)
    thread.start()
    while thread.is_alive():
        passes[0] += 1
        time.sleep(0.0001)
    thread.join()
    assert any(after - before > 3 for before, after in zip(between, between[1:]))


def test_weights_are_set_while_another_thread_evaluates(separable):
    model, stop = make(), threading.Event()

    def change():
        while not stop.is_set():
            model.parameters["fully_connected.bias"] = np.zeros(3)

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(5):
        assert sdlf.evaluate(model, separable, batch=10).samples == 300
    stop.set()
    thread.join(timeout=60)
    assert not thread.is_alive()


def test_callbacks_say_stop_by_any_true_value(separable):
    trainer = sdlf.Trainer(make(), separable, epochs=100, progress=False, callbacks=[lambda p: np.float32(1) < 2])
    assert not trainer.run().finished


def test_progress_line(separable, capsys):
    sdlf.Trainer(make(), separable, separable, epochs=2).run()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and lines[0].startswith("epoch 1/2  loss ") and "samples/s" in lines[1]


def test_data_sets(separable):
    samples, labels = separable
    data = sdlf.Dataset.from_arrays(samples, labels, classes=["low", "middle", "high"], normalization=(20, 60))
    assert len(data) == 300 and data.class_count == 3 and data.classes == ["low", "middle", "high"]
    assert data.samples.ctypes.data == samples.ctypes.data
    np.testing.assert_array_equal(data.labels, labels)
    digits = sdlf.Dataset.open("digits", "test")
    assert digits.samples.shape[1:] == (1, 28, 28) and digits.class_count == 10
    for wrong, message in [
        ((samples, labels[:-1]), "expected 300 of them"), ((samples, labels - 1), "from -1"), ((samples, labels - 9), "classes from 0 on, found -9"), ((samples, labels.astype(bool)), "integers"),
        ((samples.astype(np.int16), labels), "element type"), ((samples.astype(np.float64), labels), "uint8 or float32")]:
        with pytest.raises((TypeError, ValueError), match=message):
            sdlf.Dataset.from_arrays(*wrong)
    with pytest.raises(sdlf.ArgumentError, match="0 to 1"):
        sdlf.Dataset.from_arrays(samples, labels, classes=2)
    assert sdlf.Dataset.from_arrays(samples, labels, classes=np.int64(5)).class_count == 5
    with pytest.raises(ValueError, match="at least 1"):
        sdlf.Dataset.from_arrays(samples, labels, classes=0)
    with pytest.raises(ValueError, match="9223372036854775807"):
        sdlf.Dataset.from_arrays(samples, np.where(labels == 0, 2**63 - 1, labels), classes=3)
    with pytest.raises(TypeError, match="pair"):
        sdlf.Trainer(make(), samples)
    with pytest.raises(sdlf.Error):
        sdlf.Dataset.open("cifar10:/nowhere")


def test_options_that_there_are_not(separable):
    with pytest.raises(TypeError, match="augment has no 'flipp'"):
        sdlf.Trainer(make(), separable, augment={"flipp": True})
    with pytest.raises(sdlf.Error):
        sdlf.Trainer(make(), separable, batch=-1)
    for wrong in ({"epochs": 2.5}, {"seed": -1}, {"batch": 2**70}, {"schedule": optim.StepDecay(every=1.5)}):
        with pytest.raises(TypeError, match=next(iter(wrong)) if "schedule" not in wrong else "every"):
            sdlf.Trainer(make(), separable, **wrong)
    for wrong, text in (({"optimizer": "adam"}, r"optimizer: expected an object such as optim.Adam\(\), found str"),
                        ({"optimizer": optim.Adam}, "optimizer: expected an object"), ({"schedule": 0.1}, "schedule: expected.*found float"),
                        ({"batch": 2**70}, "batch: expected an integer, found one that is out of range")):
        with pytest.raises(TypeError, match=text):
            sdlf.Trainer(make(), separable, **wrong)
    for word in ("epochs", "batch", "seed"):
        with pytest.raises(ValueError, match=f"{word}: expected at least 1, found 0"):
            sdlf.Trainer(make(), separable, **{word: 0})
    with pytest.raises(sdlf.Error):
        sdlf.Trainer(make(), (np.zeros((10, 1, 9, 9), np.uint8), np.zeros(10, int)))


@pytest.mark.skipif("SDLF_DATA" not in os.environ, reason="SDLF_DATA is not set: no real data")
def test_mnist():
    folder = os.path.join(os.environ["SDLF_DATA"], "mnist")
    train, test = (sdlf.Dataset.open(f"mnist:{folder}", split) for split in ("train", "test"))
    model = sdlf.Model.builtin("simple_cnn")
    history = sdlf.Trainer(model, train, test, epochs=1, optimizer=optim.SGD(momentum=0.9), progress=False).run()
    assert history["test_accuracy"][0] > 0.95


def rows(count, seed, several=False):
    x = np.random.default_rng(seed).uniform(-1, 1, (count, 3)).astype(np.float32)
    t = np.stack([x[:, 0] + 2 * x[:, 1], x[:, 0] - x[:, 2]], axis=1)
    return x, ((t > 0).astype(np.int64) if several else t)


@pytest.mark.parametrize("loss", ["mse", "huber", "bce_with_logits"])
def test_float_targets(loss):
    several = loss == "bce_with_logits"
    train, test = rows(200, 1, several), rows(80, 2, several)
    model = sdlf.Model.sequential((3,), [nn.Linear(2)])
    history = sdlf.Trainer(model, train, test, batch=10, epochs=20, loss=loss, optimizer=optim.Adam(), schedule=optim.Constant(0.02),
                           progress=False).run()
    result = sdlf.evaluate(model, test)
    assert result.kind == loss and result.confusion is None
    values = model(test[0])
    assert result.mae == pytest.approx(np.abs(values - test[1]).mean(), abs=1e-5)
    if several:
        assert result.accuracy == pytest.approx(((values > 0) == (test[1] > 0)).mean()) and result.f1 > 0.8
    else:
        assert np.isnan(result.accuracy) and history["test_error"][-1] == pytest.approx(result.rmse) and result.rmse < 0.1
    with pytest.raises(sdlf.Error, match="float targets"):
        sdlf.Trainer(sdlf.Model.sequential((3,), [nn.Linear(2)]), train, progress=False)


def test_names_of_targets():
    x, t = rows(10, 1)
    data = sdlf.Dataset.from_arrays(x, t, classes=["sum", "difference"])
    assert data.classes == ["sum", "difference"] and data.labels.shape == (10, 2) and data.labels.dtype == np.float32
    assert sdlf.Dataset.from_arrays(x, t[:, 0]).labels.shape == (10, 1)
    with pytest.raises(sdlf.Error, match="2 float targets"):
        sdlf.Dataset.from_arrays(x, t, classes=["one"])


def test_loss_scale(separable):
    def trained(**words):
        trainer = sdlf.Trainer(make(), separable, batch=32, epochs=2, progress=False, **words)
        history = trainer.run()
        assert history["skipped_steps"] == [0, 0]
        return history["loss_scale"]

    assert trained() == [0, 0]
    assert trained(loss_scale=512) == [512, 512]
    assert trained(loss_scale="dynamic") == [65536, 65536]
    for wrong in ("often", 0, -1):
        with pytest.raises(ValueError, match="expected a number above 0, 'dynamic' or None"):
            trained(loss_scale=wrong)


def test_options_of_training(separable):
    def trained(**words):
        model = make()
        sdlf.Trainer(model, separable, batch=32, epochs=1, progress=False, **words).run()
        return np.concatenate([model.parameters[name].ravel() for name in model.parameters])

    plain = trained()
    words = [dict(ema=0.9), dict(lookahead=2), dict(accumulate=3), dict(class_weights=[1, 2, 3]), dict(class_weights="balanced"), dict(rate_scales={"head": 2}), dict(weight_decays={"head": 0.5}),
             dict(optimizer=optim.Muon()), dict(optimizer=optim.LARS()), dict(augment={"mixup": 0.5}),
             dict(augment={"cutmix": 1.0}), dict(augment={"trivial": True}),
             dict(augment={"rand_augment": 2, "rand_magnitude": 5})]
    for options in words:
        assert np.any(trained(**options) != plain) or options == dict(class_weights="balanced"), options
    with pytest.raises(ValueError, match="none of cross_entropy"):
        trained(loss="mape")
    model = make()
    sdlf.Trainer(model, separable, batch=32, epochs=2, progress=False).run()
    assert sdlf.evaluate(model, separable, views="flip").samples == 300
    with pytest.raises(ValueError, match="none of one, flip"):
        sdlf.evaluate(model, separable, views="twice")


def test_progress_line_stays_a_line(capsys, monkeypatch):
    """Written over, no wider than the terminal, with the time that is left."""
    monkeypatch.setattr("sdlf.training._is_live", lambda: True)
    nothing = math.nan
    step = {
        "event": "step", "epoch": 1, "epochs": 2, "step": 10, "steps": 100, "loss": 0.5, "accuracy": 0.75, "test_error": nothing,
        "test_accuracy": nothing, "loss_scale": 0, "skipped_steps": 0, "seconds": 8.0, "samples": 640,
    }
    monkeypatch.setenv("COLUMNS", "120")
    sdlf.training.ProgressLine()(step)
    text = capsys.readouterr().err
    assert text == "epoch 1/2  loss 0.5000  accuracy 75.00%  80 samples/s   10%  1:12 left\r"
    monkeypatch.setenv("COLUMNS", "40")
    sdlf.training.ProgressLine()(step)
    assert capsys.readouterr().err == text[:39] + "\r"
