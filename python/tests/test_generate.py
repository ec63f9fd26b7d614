# SPDX-License-Identifier: MIT
"""Model.generate: a text that a network has learnt, and networks that cannot write."""

import numpy as np
import pytest

import sdlf
from sdlf import layers, optim


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "words.txt"
    path.write_text("one two three four five six seven eight nine ten\n" * 40)
    data = sdlf.Dataset.open(f"text:{path},length=16")
    model = sdlf.Model.builtin("char_gpt", sample=(16,), classes=len(data.classes))
    sdlf.Trainer(model, data, batch=4, epochs=8, optimizer=optim.AdamW(), schedule=optim.OneCycle(0.003), progress=False).run()
    assert model.classes == data.classes
    return model


def test_what_was_learnt_is_written(writer):
    assert writer.generate("one two", 20, temperature=0) == " three four five six"
    assert writer.generate("six", 6, top_k=1, temperature=20) == " seven"
    assert writer.generate(tokens=7, temperature=0) == writer.generate("\n", 7, temperature=0) == "one two"
    assert writer.generate("one", 0) == ""


def test_draws_depend_on_the_seed(writer):
    texts = [writer.generate("one", 40, temperature=20, seed=seed) for seed in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2] and len(texts[0]) == 40


def test_what_cannot_be_written_is_refused(writer, small):
    with pytest.raises(sdlf.ArgumentError, match="has not seen the character 'Z'"):
        writer.generate("one Z")
    with pytest.raises(sdlf.ArgumentError, match="temperature=-1"):
        writer.generate("one", temperature=-1)
    with pytest.raises(sdlf.UnsupportedError, match="are no characters"):
        small.generate("one")
    ahead = sdlf.Model("ahead")
    tokens = ahead.input("tokens", (4,))
    words = layers.embedding(tokens, vocabulary=2, units=4)
    ahead.output("next", layers.softmax(layers.fully_connected(layers.multi_head_attention(words, heads=1), units=2, axis=-1), axis=-1))
    ahead.build(1)
    ahead.classes = ["a", "b"]
    with pytest.raises(sdlf.UnsupportedError, match="sees ahead"):
        ahead.generate("ab")


def test_tokens_outside_of_the_vocabulary_are_refused(writer):
    with pytest.raises(sdlf.ArgumentError, match="index 1000, at .* is out of range"):
        writer.run(np.full((1, 16), 1000, np.float32))


def test_arrays_of_any_rank(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=rng.normal(size=(50, 5, 2, 2, 3)).astype(np.float32), y=rng.integers(0, 3, 50))
    with pytest.raises(sdlf.Error, match="expected images"):
        sdlf.Dataset.open(f"npz:{tmp_path / 'a.npz'}")
    halves = [sdlf.Dataset.open(f"npz:{tmp_path / 'a.npz'}", split, sample=(5, 2, 2, 3)) for split in ("train", "test")]
    assert halves[0].samples.shape[1:] == (5, 2, 2, 3) and len(halves[0]) + len(halves[1]) == 50 and len(halves[1]) > 0
    assert len(sdlf.Dataset.open(f"npz:{tmp_path / 'a.npz'}", sample=(5, 2, 2, 3), whole=True)) == 50
