#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make tests/onnx/fixtures/decoder: a tiny GPT with past inputs and present outputs, as PyTorch exports it, tokens, and onnxruntime's outputs.

    scripts/make-decoder-fixture.py [FOLDER] [--channels C] [--layers N] [--heads H] [--vocabulary V] [--positions T]

tokens.npy are (1,T); logits.npy (T,1,1,V) come from T steps of one token each. Needs torch, onnx, onnxruntime and numpy.
"""
import argparse
import os

import numpy as np
import onnxruntime
import torch
from torch import nn

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "onnx", "fixtures", "decoder")


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x, past_key, past_value):
        n, t, c = x.shape
        size = c // self.heads
        q, k, v = [y.reshape(n, t, self.heads, size).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(c, -1)]
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        total = k.shape[2]
        ahead = torch.arange(total).unsqueeze(0) > torch.arange(total - t, total).unsqueeze(1)
        scores = ((q @ k.transpose(-1, -2)) * size ** -0.5).masked_fill(ahead, float("-inf"))
        y = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(n, t, c)
        x = x + self.out(y)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)))), k, v


class Decoder(nn.Module):
    def __init__(self, vocabulary, channels, heads, layers, positions):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, channels), nn.Embedding(positions, channels)
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(channels), nn.Linear(channels, vocabulary, bias=False)

    def forward(self, ids, past):
        begin = past[0][0].shape[2]
        x = self.token(ids) + self.position(torch.arange(begin, begin + ids.shape[1]))
        present = []
        for block, (key, value) in zip(self.blocks, past):
            x, key, value = block(x, key, value)
            present += [key, value]
        return (self.head(self.norm(x)), *present)


def export(model, path, layers, heads, size):
    names, outputs, axes = ["input_ids"], ["logits"], {"input_ids": {1: "sequence_length"}}
    for i in range(layers):
        for kind in ("key", "value"):
            names.append(f"past_key_values.{i}.{kind}")
            outputs.append(f"present.{i}.{kind}")
            axes[names[-1]], axes[outputs[-1]] = {2: "past_sequence_length"}, {2: "total_sequence_length"}
    past = [tuple(torch.zeros(1, heads, 5, size) for _ in range(2)) for _ in range(layers)]
    torch.onnx.export(model, (torch.zeros(1, 2, dtype=torch.long), past), path, input_names=names, output_names=outputs,
                      dynamic_axes=axes, dynamo=False, opset_version=17)
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=ROOT)
    for name, value in (("channels", 8), ("layers", 2), ("heads", 2), ("vocabulary", 11), ("positions", 12)):
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    torch.manual_seed(1)
    model = Decoder(a.vocabulary, a.channels, a.heads, a.layers, a.positions).eval()
    path, size = os.path.join(a.folder, "model.onnx"), a.channels // a.heads
    names = export(model, path, a.layers, a.heads, size)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    tokens = np.random.default_rng(1).integers(0, a.vocabulary, (1, a.positions))
    past, logits = [np.zeros((1, a.heads, 0, size), np.float32)] * (2 * a.layers), []
    for i in range(a.positions):
        step, *past = session.run(None, dict(zip(names, [tokens[:, i:i + 1], *past])))
        logits.append(step)
    empty = [np.zeros((1, a.heads, 0, size), np.float32)] * (2 * a.layers)
    whole = session.run(None, dict(zip(names, [tokens, *empty])))[0]
    np.testing.assert_allclose(np.stack(logits)[:, 0, 0], whole[0], rtol=1e-4, atol=1e-4)
    np.save(os.path.join(a.folder, "tokens.npy"), tokens)
    np.save(os.path.join(a.folder, "logits.npy"), np.stack(logits))


if __name__ == "__main__":
    main()
