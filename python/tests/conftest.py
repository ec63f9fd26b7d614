# SPDX-License-Identifier: MIT
import numpy as np
import pytest

import sdlf
from sdlf import nn


@pytest.fixture
def small():
    """A convolution, a pooling and a linear layer, on (1,8,8)."""
    return sdlf.Model.sequential(
        (1, 8, 8), [nn.Conv2d(filters=4, kernel=3, padding=1, name="conv"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3, name="head")])


@pytest.fixture
def separable():
    """Pictures of three classes that a small network tells apart: a bright third of the rows."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    samples = rng.integers(0, 60, (300, 1, 8, 8)).astype(np.uint8)
    for sample, label in zip(samples, labels):
        sample[0, 2 + 2 * label : 4 + 2 * label] += 150
    return samples, labels
