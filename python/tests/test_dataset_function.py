# SPDX-License-Identifier: MIT
"""Data sets whose samples a function makes."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
import weakref

import numpy as np
import pytest

import sdlf
from sdlf import nn, optim


def make():
    return sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=4, kernel=3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3)])


OPTIONS = dict(batch=32, epochs=2, optimizer=optim.Adam(), progress=False)


@pytest.mark.parametrize("readers", [1, 3])
def test_the_same_training_as_on_arrays(separable, readers):
    samples, labels = separable
    names = ["low", "middle", "high"]
    data = sdlf.Dataset.from_function(lambda i: samples[i], labels, (1, 8, 8), classes=names, readers=readers)
    assert len(data) == 300 and data.samples is None and data.name == "function" and data.classes == names and data.class_count == 3
    np.testing.assert_array_equal(data.labels, labels)
    hashes, losses = set(), set()
    for train in (separable, data):
        model = make()
        sdlf.Trainer(model, train, augment={"flip": True, "crop": 1}, **OPTIONS).run()
        hashes.add(model.hash())
        losses.add(sdlf.evaluate(model, train).loss)
    assert len(hashes) == 1 and len(losses) == 1


def test_types_layouts_and_targets(separable):
    samples, labels = separable
    wide = samples.astype(np.float64) / 255
    made = [sdlf.Dataset.from_function(function, labels, (1, 8, 8), dtype="float32", normalization=(0.5, 0.25))
            for function in (lambda i: wide[i].astype(np.float32), lambda i: wide[i], lambda i: np.asfortranarray(wide[i]))]
    assert len({sdlf.evaluate(make(), data).loss for data in made}) == 1
    targets = np.stack([labels == 0, labels > 0, labels * 0.5], 1).astype(np.float32)
    model = make()
    data = sdlf.Dataset.from_function(lambda i: samples[i], targets, (1, 8, 8))
    sdlf.Trainer(model, data, loss="mse", **OPTIONS).run()
    assert sdlf.evaluate(model, data).rmse < 1


def test_samples_are_made_on_another_thread_and_each_once(separable):
    samples, labels = separable
    seen, threads = [], set()

    def function(i):
        seen.append(i)
        threads.add(threading.get_ident())
        return samples[i]

    sdlf.Trainer(make(), sdlf.Dataset.from_function(function, labels, (1, 8, 8)), **{**OPTIONS, "epochs": 1}).run()
    assert sorted(seen)[:300] == sorted(set(seen)) == list(range(300)) or len(set(seen)) == 300  # the next epoch's may be begun
    assert len(seen) < 600


def test_what_the_function_raises_is_raised(separable):
    samples, labels = separable

    def broken(i):
        if i == 250:
            raise LookupError("no sample 250 on this disk")
        return samples[i]

    data = sdlf.Dataset.from_function(broken, labels, (1, 8, 8))
    for readers in (1, 2):
        data = sdlf.Dataset.from_function(broken, labels, (1, 8, 8), readers=readers)
        for work in (sdlf.Trainer(make(), data, **OPTIONS).run, lambda: sdlf.evaluate(make(), data)):
            with pytest.raises(LookupError, match="no sample 250") as caught:
                work()
            assert "in broken" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_wrong_samples(separable):
    samples, labels = separable
    for function, error, text in (
        (lambda i: samples[i, 0], sdlf.ShapeError, r"sample \d+: expected 1x8x8, found 8x8"),
        (lambda i: samples[i].astype(np.float32), TypeError, r"sample \d+: expected uint8, found float32"),
        (lambda i: samples[i].tolist(), TypeError, r"sample \d+: expected an array"),
        (lambda i: None, TypeError, "expected an array"),
        (lambda: 0, TypeError, "positional argument"),
    ):
        data = sdlf.Dataset.from_function(function, labels, (1, 8, 8))
        with pytest.raises(error, match=text):
            sdlf.evaluate(make(), data)
    for arguments, words, error, text in (
        ((samples, labels, (1, 8, 8)), {}, TypeError, "expected a function"),
        ((make, labels, ()), {}, sdlf.ShapeError, "shape"),
        ((make, labels, (1, 0, 8)), {}, sdlf.ShapeError, "from 1 on"),
        ((make, labels, (1, 8, 8)), {"dtype": "int8"}, ValueError, "neither uint8 nor float32"),
        ((make, labels, (1, 8, 8)), {"readers": 0}, ValueError, "1 to 256"),
        ((make, labels[:0], (1, 8, 8)), {}, sdlf.ShapeError, "labels"),
        ((make, labels - 1, (1, 8, 8)), {}, sdlf.ArgumentError, "labels"),
    ):
        with pytest.raises(error, match=text):
            sdlf.Dataset.from_function(*arguments, **words)


def test_cycles_are_collected(separable):
    samples, labels = separable

    class Pictures:
        def __init__(self):
            self.data = sdlf.Dataset.from_function(self.read, labels, (1, 8, 8))

        def read(self, i):
            return samples[i]

    pictures = Pictures()
    sdlf.evaluate(make(), pictures.data)
    gone = weakref.ref(pictures)
    del pictures
    gc.collect()
    assert gone() is None


PROGRAM = """
    import signal, numpy as np, sdlf
    from sdlf import nn
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells have a process in the background ignore
    calls = 0
    def function(i):
        global calls
        calls += 1
        return np.full((4,), i % 7, np.uint8)
    data = sdlf.Dataset.from_function(function, np.arange(5000) % 3, (4,))
    model = sdlf.Model.sequential((4,), [nn.Linear(3)])
    said = []
    trainer = sdlf.Trainer(model, data, epochs=100000, progress=False, callbacks=[lambda p: CALLBACK])
    try:
        trainer.run()
    except KeyboardInterrupt:
        print("interrupted", calls > 0, flush=True)
    """


def test_ctrl_c():
    code = textwrap.dedent(PROGRAM).replace("CALLBACK", "None if said else (said.append(1), print('running', flush=True))[:0]")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "interrupted True\n"
    assert process.returncode == 0


def test_python_ends_while_samples_are_made():
    code = textwrap.dedent(PROGRAM).replace("CALLBACK", "p['step'] >= 3")  # the loader's thread goes on
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0 and ended.stderr == ""


def memory():
    """Bytes that the process has in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc")
def test_ten_thousand_samples_leak_nothing(separable):
    samples, labels = separable
    model, data = make(), sdlf.Dataset.from_function(lambda i: samples[i].copy(), labels, (1, 8, 8))

    def calls(count):
        for _ in range(count // 300):
            sdlf.evaluate(model, data)

    calls(1500)
    gc.collect()
    before = memory()
    calls(10200)
    gc.collect()
    assert memory() - before < 4 << 20
