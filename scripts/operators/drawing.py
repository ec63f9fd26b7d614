# SPDX-License-Identifier: MIT
"""The random generators of the cases: R for choices and G for arrays. reseed restarts both."""
import random

import numpy as np


class Arrays:
    """numpy's generator, made restartable, because modules keep a reference to it."""

    def __init__(self):
        self.reseed(0)

    def reseed(self, seed):
        generator = np.random.default_rng(seed)
        self.standard_normal, self.integers, self.permutation = generator.standard_normal, generator.integers, generator.permutation


R = random.Random()
G = Arrays()


def reseed(text):
    """Restart both generators: the same text draws the same cases."""
    R.seed(text)
    G.reseed(R.randrange(2**31))


def floats(*shape, scale=1.0):
    return (G.standard_normal(shape) * scale).astype(np.float32)


def maybe(value, chance=0.5):
    return value if R.random() < chance else None


def coin(chance=0.5):
    return R.random() < chance


def numbers(kind_of, *shape, least=-50):
    if kind_of == np.bool_:
        return G.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(kind_of, np.floating):
        return (G.standard_normal(shape) * 2).astype(kind_of)
    return G.integers(0 if np.issubdtype(kind_of, np.unsignedinteger) else least, 50, shape).astype(kind_of)


def pair():
    """Two shapes that broadcast."""
    shape = [R.randint(1, 4) for _ in range(R.randint(1, 4))]
    other = [1 if coin(0.3) else d for d in shape][R.randint(0, len(shape)):]
    return (shape, other) if coin() else (other, shape)
