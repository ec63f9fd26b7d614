# SPDX-License-Identifier: MIT
"""Trainer and evaluation."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _sdlf
from ._sdlf import Dataset
from .errors import ArgumentError, ShapeError
from .model import Model
from .optim import Named
from .table import Table


def _is_live() -> bool:
    """True if a line can be overwritten: in a terminal or a notebook cell."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class ProgressLine:
    """A callback that shows a progress line, overwritten where possible, and one line per epoch."""

    def __init__(self) -> None:
        self._last = 0.0
        self._width = 0

    def __call__(self, progress: dict[str, Any]) -> None:
        if progress["event"] == "unsaved":
            self._write(f"warning: {progress['message']}", end="\n")
        elif progress["event"] == "epoch":
            self._write(self._text(progress), end="\n")
        elif _is_live() and time.monotonic() - self._last > 0.1:
            self._last = time.monotonic()
            done = progress["step"] / max(progress["steps"], 1)
            left = progress["seconds"] * (1 - done) / done if done > 0 else math.nan
            self._write(f"{self._text(progress)}  {done:4.0%}{self._left(left)}", end="\r")

    @staticmethod
    def _left(seconds: float) -> str:
        """The time left in the epoch; empty if it ends soon."""
        if not seconds >= 2:
            return ""
        hours, rest = divmod(round(seconds), 3600)
        return f"  {hours}:{rest // 60:02}:{rest % 60:02} left" if hours else f"  {rest // 60}:{rest % 60:02} left"

    @staticmethod
    def _text(progress: dict[str, Any]) -> str:
        text = f"epoch {progress['epoch']}/{progress['epochs']}  loss {progress['loss']:.4f}"
        if not math.isnan(progress["accuracy"]):
            text += f"  accuracy {progress['accuracy']:.2%}"
        if not math.isnan(progress["test_error"]):
            text += f"  test RMSE {progress['test_error']:.4g}"
        if not math.isnan(progress["test_accuracy"]):
            text += f"  test {progress['test_accuracy']:.2%}"
        if progress["loss_scale"] > 0:
            text += f"  scale {progress['loss_scale']:.10g}"
        if progress["skipped_steps"] > 0:
            text += f", {progress['skipped_steps']} skipped"
        if progress["seconds"] > 0:
            text += f"  {progress['samples'] / progress['seconds']:,.0f} samples/s"
        return text

    def _write(self, text: str, end: str) -> None:
        if end == "\r":  # a line that wraps could not be overwritten
            text = text[: max(shutil.get_terminal_size().columns - 1, 10)]
        sys.stderr.write(text.ljust(self._width) + end)
        sys.stderr.flush()
        self._width = len(text) if end == "\r" else 0


@dataclass
class History:
    """The history of a training run: a dictionary per epoch.

    "loss", "test_loss": means; "accuracy", "test_accuracy": from 0 to 1, NaN if there is none; "samples": number in the epoch; "seconds":
    duration of the epoch; "waited": the part of it spent waiting for data; "learning_rate": of the last step.
    """

    epochs: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False
    """False: the training was asked to stop."""

    def __getitem__(self, key: str) -> list:
        """One metric of all epochs, a list of float: "loss", "accuracy", "test_loss", "test_accuracy", "seconds", ..."""
        return [epoch[key] for epoch in self.epochs]

    def table(self) -> Table:
        """A row per epoch: losses, accuracies (from 0 to 1), seconds."""
        columns = ("epoch", "loss", "accuracy", "test_loss", "test_accuracy", "seconds")
        return Table(columns, [tuple(epoch[c] for c in columns) for epoch in self.epochs])

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def _as_dataset(data: Any) -> Dataset:
    """Convert what a Trainer accepts as data: a Dataset, a pair (samples, labels), or a source of pairs such as a generator function."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return Dataset.from_arrays(*data)
    if callable(data):
        data = data()
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes, Mapping, np.ndarray)):
        return Dataset.from_arrays(*_gather(data))
    raise TypeError(f"expected a Dataset, a pair (samples, labels), or what gives such pairs, found {type(data).__name__}")


class _Rows:
    """An array that grows in place, batch by batch."""

    def __init__(self) -> None:
        self._rows: np.ndarray | None = None
        self._count = 0

    def add(self, batch: np.ndarray) -> None:
        if self._rows is None:
            self._rows = np.empty_like(batch, order="C", subok=False)
        elif batch.dtype != self._rows.dtype:
            self._rows = self._rows.astype(np.promote_types(batch.dtype, self._rows.dtype))
        wanted = self._count + len(batch)
        if wanted > len(self._rows):
            self._rows.resize((max(wanted, len(self._rows) * 5 // 4), *batch.shape[1:]), refcheck=False)
        self._rows[self._count : wanted] = batch
        self._count = wanted

    def fits(self, batch: np.ndarray) -> bool:
        return self._rows is None or batch.shape[1:] == self._rows.shape[1:]

    def take(self) -> np.ndarray:
        assert self._rows is not None
        self._rows.resize((self._count, *self._rows.shape[1:]), refcheck=False)
        return self._rows


def _gather(pairs: Iterable) -> tuple[np.ndarray, np.ndarray]:
    """Everything that an iterable yields: pairs of one sample and its label, or of a batch of samples and as many labels."""
    samples, labels, number = _Rows(), _Rows(), -1
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"item {number}: expected a pair (sample, label), found {type(pair).__name__}")
        sample, label = np.asarray(pair[0]), np.asarray(pair[1])
        if label.ndim == 0:
            sample, label = sample[None], label[None]
        if sample.ndim == 0 or len(sample) != len(label) or not samples.fits(sample) or not labels.fits(label):
            raise ShapeError(f"item {number}: samples {sample.shape} and labels {label.shape}" +
                             (", which are not as those before" if number > 0 else ""))
        samples.add(sample)
        labels.add(label)
    if number < 0:
        raise ArgumentError("the data give no sample")
    return samples.take(), labels.take()


AUGMENTATIONS = ("flip", "flip_alternate", "reflect", "crop", "shift", "rotate", "scale", "elastic", "resized_crop", "cutout", "brightness",
                 "contrast", "saturation", "hue", "trivial", "rand_augment", "rand_magnitude", "mixup", "cutmix")


def _loss_scale(value: float | str | None) -> float:
    if value is None:
        return 0.0
    if isinstance(value, str) and value != "dynamic":
        raise ValueError(f"loss_scale: expected a number above 0, 'dynamic' or None, found '{value}'")
    if not isinstance(value, str) and not value > 0:
        raise ValueError(f"loss_scale: expected a number above 0, 'dynamic' or None, found {value}")
    return -1.0 if isinstance(value, str) else float(value)


class Trainer:
    """Trains a model for some epochs over a data set.

    train, test: a Dataset; a pair (samples, labels) of arrays; or an iterable of pairs, or a function that returns one (a generator function),
    each pair holding one sample with its label or a batch with its labels: it is read once, completely, into memory. Samples are (N,...) uint8
    or float32, labels integers (N), or float targets (N,...). callbacks: each is called with a dictionary after steps and epochs ("event" is
    "step" or "epoch"; "loss", "accuracy", "test_accuracy", ...); one that returns a true value ends the training. progress: show a progress
    line. augment: a dictionary with keys from `AUGMENTATIONS`. loss: "mse", "mae", "huber" or "bce_with_logits" for float targets; huber_delta:
    where the Huber loss becomes linear. class_weights: "balanced", or a number per class. ema: decay per step of a moving average of the
    weights, which is tested and left in the model. lookahead: after so many steps, slow weights move the fraction lookahead_share towards the
    weights, which restart there. accumulate: batches per step. rate_scales: learning rate factors by parameter, {"trunk": 0.1}. weight_decays:
    weight decay by parameter, instead of the optimizer's, {"head": 1e-4}. loss_scale: a factor of the loss's gradient until the update, or
    "dynamic"; 1: none; None: dynamic if math is "fp16", else none. checkpoint: a file that is written after each epoch; resume: continue from
    the training state that the model was opened with (`Model.open` of a checkpoint).
    """

    def __init__(
        self,
        model: Model,
        train: Any,
        test: Any = None,
        *,
        batch: int = 64,
        epochs: int = 1,
        seed: int = 1,
        optimizer: Named | None = None,
        schedule: Named | None = None,
        label_smoothing: float = 0,
        clip_norm: float = 0,
        loss_scale: float | str | None = None,
        loss: str = "cross_entropy",
        huber_delta: float = 1,
        class_weights: str | Sequence[float] = "",
        ema: float = 0,
        lookahead: int = 0,
        lookahead_share: float = 0.5,
        accumulate: int = 1,
        rate_scales: dict[str, float] | None = None,
        weight_decays: dict[str, float] | None = None,
        augment: dict[str, Any] | None = None,
        calculator: str | None = None,
        backward: str | None = None,
        threads: int = 0,
        device: int = 0,
        math: str = "fp32",
        checkpoint: str | os.PathLike | None = None,
        resume: bool = False,
        callbacks: Sequence[Callable[[dict[str, Any]], Any]] = (),
        progress: bool = True,
    ):
        self.history = History()
        self._callbacks = list(callbacks) + ([ProgressLine()] if progress else [])
        words = dict(
            augment or {}, batch=batch, epochs=epochs, seed=seed, optimizer=optimizer, schedule=schedule, label_smoothing=label_smoothing,
            clip_norm=clip_norm, loss_scale=_loss_scale(loss_scale), loss=loss, huber_delta=huber_delta, ema=ema, lookahead=lookahead,
            lookahead_share=lookahead_share, accumulate=accumulate,
            class_weights=class_weights if isinstance(class_weights, str) else ",".join(f"{w:.9g}" for w in class_weights),
            rate_scales=",".join(f"{name}={factor:.9g}" for name, factor in (rate_scales or {}).items()),
            weight_decays=",".join(f"{name}={decay:.9g}" for name, decay in (weight_decays or {}).items()), calculator=calculator, backward=backward, threads=threads, device=device, math=math,
            checkpoint=os.fspath(checkpoint) if checkpoint is not None else None, resume=resume)
        unknown = set(augment or {}) - set(AUGMENTATIONS)
        if unknown:
            raise TypeError(f"augment has no '{sorted(unknown)[0]}'; it has: {', '.join(AUGMENTATIONS)}")
        self._trainer = _sdlf._trainer(model, _as_dataset(train), _as_dataset(test) if test is not None else None, words)

    def _tell(self, progress: dict[str, Any]) -> bool:
        if progress["event"] == "epoch":
            self.history.epochs.append(progress)
        stop = False
        for callback in self._callbacks:
            stop = bool(callback(progress)) or stop
        return stop

    def run(self) -> History:
        """Train to the end, or until a callback or `stop` ends it; calling it again continues. Ctrl-C stops it after a step, leaves
        the model in its current state, and is raised."""
        self.history.finished = self._trainer.run(self._tell)
        return self.history

    def stop(self) -> None:
        """Ask a running training to stop after the current step; may be called from any thread."""
        self._trainer.stop()

    @property
    def memory(self) -> int:
        """Bytes of memory in use, without the data sets, an int."""
        return self._trainer.memory


@dataclass
class Evaluation:
    """A model's results on a data set. confusion: (C,C) int64, a row per true class and a column per predicted one, None for float targets;
    accuracy: from 0 to 1, for classes or multiple labels; loss: the mean; seconds: duration; mae, rmse: for float targets; f1: for multiple labels. NaN if absent."""

    samples: int
    correct: int
    loss: float
    seconds: float
    confusion: np.ndarray | None
    kind: str = "cross_entropy"
    accuracy: float = math.nan
    mae: float = math.nan
    rmse: float = math.nan
    f1: float = math.nan

    def __repr__(self) -> str:
        figure = f"RMSE {self.rmse:.4g}" if math.isnan(self.accuracy) else f"{self.accuracy:.2%}"
        return f"Evaluation({figure} of {self.samples:,} samples, loss {self.loss:.4f})"


def evaluate(
    model: Model, data: Any, *, batch: int = 0, calculator: str = "cpu", threads: int = 0, device: int = 0, math: str = "fp32",
    views: str = "one"
) -> Evaluation:
    """Accuracy, loss and confusion, an Evaluation, over a Dataset or a pair of arrays, samples (N,...) and labels (N). batch: samples per
    pass; 0: automatic. views: "flip" and "shift" average over views of each image."""
    return Evaluation(*_sdlf._evaluate(model, _as_dataset(data), calculator, threads, device, math, batch, views))
