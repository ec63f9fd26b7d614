# SPDX-License-Identifier: MIT
"""Model: a network with its parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _sdlf
from .table import Table


class Parameters(Mapping):
    """A model's parameters by name, such as "conv2d.weight": read-only float32 arrays over the model's own memory. Assigning one
    copies the values into that memory."""

    def __init__(self, model: Model):
        self._model = model

    def __getitem__(self, name: str) -> np.ndarray:
        return self._model._parameter(name)

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        self._model._set_parameter(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._model._parameter_names())

    def __len__(self) -> int:
        return len(self._model._parameter_names())

    def info(self, name: str) -> dict[str, Any]:
        """A dict: its shape and layer, and whether training changes it and weight decay applies."""
        return self._model._parameter_info(name)

    def __repr__(self) -> str:
        return f"<parameters of '{self._model.name}': {len(self)}>"


class Model(_sdlf.Model):
    """A network: layers and their parameters. It has no batch size and no device; running it creates a plan for both.

    Built layer by layer (`input`, sdlf.layers, `output`), from a list (`sequential`), from a file (`open`, `from_onnx`), or built in (`builtin`).
    Do not change a model in one thread while it runs or trains in another; different models are independent.
    """

    # ---- building ----

    @classmethod
    def _adopt(cls, made: _sdlf.Model) -> Model:
        model = cls.__new__(cls)
        _sdlf.Model.__init__(model)
        model._take(made)
        return model

    @classmethod
    def sequential(cls, shape: Sequence[int], layers: Sequence[Any], name: str = "model", seed: int = 1) -> Model:
        """A Model: a chain of layers of sdlf.nn on one input "x" of that shape, (C,H,W) or (F), without the batch, initialised from the seed.

        The output is called "y".
        """
        model = cls(name)
        node = model.input("x", shape)
        for layer in layers:
            node = layer(node)
        model.output("y", node)
        model.build(seed)
        return model

    @classmethod
    def open(cls, path: str | os.PathLike) -> Model:
        """A Model from a file: ONNX (.onnx), a network without weights (.json), else weights with their network (.safetensors)."""
        path = os.fsdecode(path)
        if path.endswith(".onnx"):
            return cls.from_onnx(path)
        if path.endswith(".json"):
            return cls._adopt(_sdlf.Model._read_network(path))
        return cls._adopt(_sdlf.Model._open(path))

    @classmethod
    def from_onnx(
        cls,
        path: str | os.PathLike,
        batch: int = 0,
        dimensions: Mapping[str, int] | None = None,
        known: Mapping[str, np.ndarray] | None = None,
    ) -> Model:
        """A Model from an ONNX file, with its weights.

        batch: 0 leaves the first dimension of inputs to the plan; a larger value fixes it. dimensions: sizes of other open dimensions by
        name. known: inputs that become constants, with their values.
        """
        return cls._adopt(_sdlf.Model._from_onnx(os.fspath(path), batch, dict(dimensions or {}), dict(known or {})))

    @classmethod
    def builtin(cls, name: str, sample: Sequence[int] | None = None, classes: int = 10) -> Model:
        """A Model of a network that comes with SDLF, such as "resnet18", for samples (C,H,W) of `classes` classes, initialised at random."""
        return cls._adopt(_sdlf.Model._builtin(name, sample, classes))

    @classmethod
    def from_json(cls, text: str) -> Model:
        """A Model, without weights, from the text of a network file."""
        return cls._adopt(_sdlf.Model._parse(text))

    # ---- files ----

    def save(self, path: str | os.PathLike, checkpoint: bool = False) -> None:
        """Write weights and network (safetensors); with `checkpoint` also the training state. The file is written atomically."""
        self._save(os.fspath(path), checkpoint)

    def load(self, path: str | os.PathLike) -> None:
        """Read the weights of a safetensors file into this model; it must contain every parameter, in its shape."""
        self._load(os.fspath(path))

    def to_onnx(self, path: str | os.PathLike, opset: int = 0, external_data: bool = False, normalize: bool = False) -> dict[str, Any]:
        """Write an ONNX file; returns a dict that describes it. opset 0: the lowest that can express the model. normalize: the graph accepts
        raw samples, and begins with the model's normalization."""
        return self._to_onnx(os.fspath(path), opset, external_data, normalize)

    def to_c(self, path: str | os.PathLike, name: str | None = None) -> None:
        """Write the network as a single C99 source file."""
        self._to_c(os.fspath(path), name)

    # ---- running ----

    def use(self, calculator: str = "cpu", *, threads: int = 0, device: int = 0, math: str = "fp32") -> Model:
        """Choose what `run` computes with. threads 0: all; math: "fp32", on a GPU also "tf32", "fp16", "bf16". Returns the model."""
        self._use(calculator, threads, device, math)
        return self

    def plan(
        self,
        batch: int,
        mode: str = "infer",
        *,
        dtype: str = "float32",
        calculator: str = "cpu",
        backward: str | None = None,
        threads: int = 0,
        device: int = 0,
        math: str = "fp32",
        keep_activations: bool = False,
        gradients_only: bool = False,
        no_fusion: bool = False,
        optimizer: Any = None,
        clip_norm: float = 0,
        label_smoothing: float = 0,
        seed: int = 0,
        loss: str = "cross_entropy",
        eval_mode: bool = False,
    ) -> _sdlf.Plan:
        """A Plan: a model prepared for one batch size N, to run ("infer") or to train step by step ("train").

        loss: the loss against "labels" that "train" adds to a network without one. eval_mode: with gradients_only, layers compute as in
        inference. While the plan exists, no layers can be added to the model.
        """
        return _sdlf._plan(self, batch, mode, dtype, calculator, backward, threads, device, math, keep_activations, gradients_only,
                           no_fusion, optimizer, clip_norm, label_smoothing, seed, loss, eval_mode)

    def generate(self, text: str = "", tokens: int = 200, *, temperature: float = 1, top_k: int = 0, seed: int = 1) -> str:
        """Continue a text by `tokens` characters, with a network that predicts the next one (char_gpt, trained on a text: set); returns a str.

        temperature: below 1, likely characters become likelier; 0: always the likeliest. top_k: draw among the top_k likeliest; 0: all.
        Each character is predicted from as many before it as the network accepts; the network must be causal. Draws use NumPy's generator
        with the seed, and differ from those of `sdlf generate`.
        """
        from .generate import generate

        return generate(self, text, tokens, temperature, top_k, seed)

    # ---- inspecting ----

    def grad_cam(self, samples: np.ndarray, classes: Any = None, layer: str | None = None) -> np.ndarray:
        """Grad-CAM (Selvaraju and others 2017): where each sample (N,C,H,W) shows evidence for its class. Maps (N,h,w) float32, at least 0.

        classes: one for all, or one per sample; None: the likeliest. layer: the layer whose output is weighted; None: the last convolution
        with an output larger than 1x1, or the layers that follow it in the same shape (normalisation, activation). Maps have its h and w.
        """
        from .grad_cam import grad_cam

        return grad_cam(self, samples, classes, layer)

    @property
    def parameters(self) -> Parameters:
        """Parameters by name: a mapping of str to read-only float32 arrays over the model's own memory; assigning one copies into it."""
        return Parameters(self)

    def info(self) -> Table:
        """A Table of the layers: name, type, inputs, shape for one sample, number of parameters."""
        rows = [
            (layer["name"], layer["type"], ", ".join(layer["inputs"]), "x".join(map(str, layer["shape"])), layer["parameters"])
            for layer in self._layers
        ]
        total = sum(row[-1] for row in rows)
        return Table(("layer", "type", "inputs", "shape", "parameters"), rows, f"{self.name}: {total:,} parameters, "
                     f"{self.trainable_count:,} trainable")

    def __repr__(self) -> str:
        return f"<sdlf.Model '{self.name}': {len(self._layers)} layers, inputs {self.inputs}, outputs {self.outputs}>"

    def _repr_html_(self) -> str:
        return self.info()._repr_html_()
