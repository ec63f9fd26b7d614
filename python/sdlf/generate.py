# SPDX-License-Identifier: MIT
"""Text generation: see Model.generate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .errors import ArgumentError, NumericError, UnsupportedError

if TYPE_CHECKING:
    from .model import Model

ESCAPES = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\"}


def _character(name: str) -> str:
    """The character of a class name in a text data set: the name itself, or an escape such as "\\n" or "\\x1f"."""
    if name.startswith("\\x"):
        return chr(int(name[2:], 16))
    return ESCAPES.get(name, name)


def _tokens(characters: list[str], text: str) -> list[int]:
    place = {character: index for index, character in enumerate(characters)}
    unknown = next((character for character in text if character not in place), None)
    if unknown is not None:
        raise ArgumentError(f"text: the network has not seen the character {unknown!r}")
    return [place[character] for character in text] or [place.get("\n", 0)]


def _draw(scores: np.ndarray, temperature: float, top_k: int, rng: np.random.Generator) -> int:
    """Draw a class from the logits or log-probabilities of all classes."""
    if not np.isfinite(scores.max()):
        raise NumericError("generate: the network's outputs are not finite")
    if temperature == 0:
        return int(scores.argmax())
    logits = scores / temperature
    if 0 < top_k < len(logits):
        logits[np.argsort(-logits, kind="stable")[top_k:]] = -np.inf
    weights = np.exp(logits - logits.max())
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def _scores(model: Model, window: np.ndarray, classes: int, probabilities: bool) -> np.ndarray:
    found = np.asarray(model.run(window))
    if found.shape != (*window.shape, classes):
        raise UnsupportedError(f"generate: expected the scores of {classes} characters at each position, found {found.shape}")
    with np.errstate(divide="ignore"):
        return np.log(found[0].astype(np.float64)) if probabilities else found[0].astype(np.float64)


def generate(model: Model, text: str, tokens: int, temperature: float, top_k: int, seed: int) -> str:
    """See Model.generate."""
    characters = [_character(name) for name in model.classes]
    if not characters or any(len(character) != 1 for character in characters):
        raise UnsupportedError("generate: the model's classes are no characters, as those of text: sets are")
    if tokens < 0 or temperature < 0 or top_k < 0:
        raise ArgumentError(f"generate: tokens={tokens}, temperature={temperature}, top_k={top_k}: expected at least 0")
    layers = {layer["name"]: layer for layer in model._layers}
    shape = layers[model.inputs[0]]["shape"]
    if len(model.inputs) != 1 or len(shape) != 2:
        raise UnsupportedError(f"generate: expected one input of tokens (N,T), found {model.inputs} with {shape}")
    probabilities = layers[model._output_layer(0)]["type"] == "softmax"
    found, length, rng = _tokens(characters, text), shape[1], np.random.default_rng(seed)
    window = np.zeros((1, length), np.float32)
    for step in range(tokens):
        seen = found[-length:]
        window[0, : len(seen)] = seen
        scores = _scores(model, window, len(characters), probabilities)[len(seen) - 1]
        if step == 0 and len(seen) < length:
            window[0, len(seen) :] = len(characters) - 1
            if not np.allclose(scores, _scores(model, window, len(characters), probabilities)[len(seen) - 1]):
                raise UnsupportedError("generate: the network sees ahead: expected one that is causal")
        found.append(_draw(scores, temperature, top_k, rng))
    return "".join(characters[token] for token in found[len(found) - tokens :])
