#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make tests/onnx/fixtures/masked_decoder: a decoder as Hugging Face exports GPT-2, whose attention_mask grows with the cache.

    scripts/make-masked-decoder-fixture.py [FOLDER]

tokens.npy and mask.npy are (1,T); logits.npy (1,T,V) come from T steps of one token each in onnxruntime. Needs torch, onnx, onnxruntime and numpy.
"""
import pathlib
import sys

import numpy as np
import onnxruntime
import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent.parent / "tests" / "onnx" / "fixtures" / "masked_decoder"
VOCABULARY, WIDTH, HEADS, LAYERS, POSITIONS, STEPS = 11, 16, 2, 2, 16, 12


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.project = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm2, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        causal = torch.tril(torch.ones(POSITIONS, POSITIONS, dtype=torch.bool))
        self.register_buffer("causal", causal.view(1, 1, POSITIONS, POSITIONS))

    def forward(self, x, mask, key, value):
        q, k, v = (t.view(t.size(0), t.size(1), HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm(x)).split(WIDTH, 2))
        key, value = torch.cat([key, k], 2), torch.cat([value, v], 2)
        scores = q @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        length, width = key.size(2), q.size(2)
        scores = torch.where(self.causal[:, :, length - width : length, :length], scores, torch.finfo(scores.dtype).min) + mask
        y = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        x = x + self.project(y)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x)), approximate="tanh")), key, value


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, ids, attention_mask, *past):
        places = (attention_mask.cumsum(-1) - 1).masked_fill(attention_mask == 0, 1)[:, -ids.size(1) :]
        x = self.token(ids) + self.position(places)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        present = []
        for i, block in enumerate(self.blocks):
            x, key, value = block(x, mask, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return (self.norm(x) @ self.token.weight.T, *present)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    torch.manual_seed(1)
    net = Decoder().eval()
    states = [f"{i}.{part}" for i in range(LAYERS) for part in ("key", "value")]
    past = [torch.randn(1, HEADS, 3, WIDTH // HEADS) for _ in states]
    axes = {"input_ids": {0: "batch_size", 1: "sequence_length"}, "attention_mask": {0: "batch_size", 1: "past_sequence_length + sequence_length"}}
    axes.update({f"past_key_values.{s}": {0: "batch_size", 2: "past_sequence_length"} for s in states})
    torch.onnx.export(net, (torch.tensor([[1, 2]]), torch.ones(1, 5, dtype=torch.int64), *past), folder / "model.onnx", dynamo=False, opset_version=17,
                      input_names=["input_ids", "attention_mask", *(f"past_key_values.{s}" for s in states)],
                      output_names=["logits", *(f"present.{s}" for s in states)], dynamic_axes=axes)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    random = np.random.default_rng(3)
    tokens = random.integers(0, VOCABULARY, (1, STEPS))
    mask = np.ones((1, STEPS), np.int64)
    mask[0, :3] = (0, 0, 1)  # padding on the left
    state = {f"past_key_values.{s}": np.zeros((1, HEADS, 0, WIDTH // HEADS), np.float32) for s in states}
    logits = []
    for i in range(STEPS):
        result = session.run(None, {"input_ids": tokens[:, i : i + 1], "attention_mask": mask[:, : i + 1], **state})
        logits.append(result[0])
        state = {name: value for name, value in zip(state, result[1:])}
    np.save(folder / "tokens.npy", tokens)
    np.save(folder / "mask.npy", mask)
    np.save(folder / "logits.npy", np.concatenate(logits, 1))


main()
