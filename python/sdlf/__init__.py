# SPDX-License-Identifier: MIT
"""SDLF, the Simple Deep Learning Framework: build, train, time and run neural networks.

    import numpy as np, sdlf

    model = sdlf.Model.sequential((1, 28, 28), [
        sdlf.nn.Conv2d(filters=32, kernel=3, padding=1), sdlf.nn.ReLU(), sdlf.nn.MaxPool2d(2),
        sdlf.nn.Flatten(), sdlf.nn.Linear(10), sdlf.nn.Softmax()])
    sdlf.Trainer(model, train, test, epochs=3, optimizer=sdlf.optim.SGD(momentum=0.9)).run()
    scores = model(np.zeros((1, 1, 28, 28), np.float32))

Shapes are row-major, (N,C,H,W) for images. Errors are exceptions below `sdlf.Error` with the library's message.
"""

from . import layers, nn, optim
from ._sdlf import Dataset, Node, Plan, calculators
from ._sdlf import version as __version__
from .dynamic import DynamicModel
from .errors import (
    ArgumentError,
    DeviceError,
    Error,
    FileError,
    FormatError,
    NumericError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
)
from .information import info
from .model import Model
from .quantization import quantize
from .stateful import Stateful
from .training import Evaluation, History, Trainer, evaluate

__all__ = [
    "ArgumentError", "Dataset", "DeviceError", "DynamicModel", "Error", "Evaluation", "FileError", "FormatError", "History", "Model", "Node",
    "NumericError", "OutOfMemoryError", "Plan", "ShapeError", "Stateful", "Trainer", "UnsupportedError", "__version__", "calculators", "evaluate", "info",
    "layers", "nn", "optim", "quantize",
]
