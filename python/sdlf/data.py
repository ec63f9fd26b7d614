"""Data sets."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from . import _sdlf

Dataset = _sdlf.Dataset


def open_dataset(
    specification: str, split: str = "train", *, size: int | tuple[int, int] | None = None, channels: int = 0, strict: bool = False
) -> Dataset:
    """Open "mnist:DIR", "folder:DIR", "cifar10:DIR", ... as `sdlf train --data` does; `split` is "train" or "test".

    size, channels: of the samples, for pictures of any size; 0 and None: as they are. strict: a file that cannot be read is an error.
    """
    return _sdlf._open_dataset(specification, split, size, channels, strict)


def from_arrays(
    samples: Any, labels: Any, *, classes: int | Sequence[str] | None = None, normalization: tuple | None = None
) -> Dataset:
    """A data set of arrays: samples (N,...) uint8 or float32, which are not copied where they are row-major, and integer labels (N).

    classes: how many, or their names; None: the largest label and one. normalization: (means, deviations) of the samples, one of all or
    one of each channel; None: bytes are divided by 255, floats stay.
    """
    count, names = 0, []
    if hasattr(classes, "__index__") and not isinstance(classes, bool):
        count = operator.index(classes)
        if count < 1:
            raise ValueError(f"classes: expected at least 1, found {count}")
    elif classes is not None:
        names = list(classes)
    return _sdlf._dataset_of_arrays(samples, labels, count, names, normalization)


def as_dataset(data: Any) -> Dataset:
    """What a Trainer takes as data: a Dataset, or a pair (samples, labels)."""
    if isinstance(data, Dataset):
        return data
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return from_arrays(*data)
    raise TypeError(f"expected a Dataset or a pair (samples, labels), found {type(data).__name__}")


Dataset.open = staticmethod(open_dataset)
Dataset.from_arrays = staticmethod(from_arrays)
