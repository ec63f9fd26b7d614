#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares cifar_fast's training with the published recipe (https://github.com/KellerJordan/cifar10-airbench, the variant with Muon),
written in PyTorch from its description: the same initial weights, the same batch, some steps; whitening, losses and weights must agree.

    scripts/check-cifar-fast.py [--sdlf build/sdlf] [--samples 200] [--steps 8] [--tolerance 0.02]

The recipe is unchanged: the loss is summed, the scores are divided by the number of features, and Muon's steps are computed by matrix products in
float32. SDLF has the mean of the loss, and a head whose weights are divided (framework/formats/builtin_cifar_fast.c). All samples are one batch,
and nothing is augmented. Exits with 1 if a weight's update differs: the difference, relative to the update, is above the tolerance; the
Newton-Schulz iterations amplify float32 rounding."""
import json
import re
import sys
import tempfile

import comparing
import torch_network

MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def arguments():
    parser = comparing.parser(__doc__)
    parser.add_argument("--samples", type=comparing.count, default=200, help="of the batch")
    parser.add_argument("--steps", type=comparing.count, default=8, help="to compare after")
    parser.add_argument("--tolerance", type=float, default=0.02, help="of a weight's way")
    return parser.parse_args()


def pictures(np, samples):
    """Images of coarse colours that determine the class, and noise."""
    rng = np.random.default_rng(1)
    labels = np.arange(samples) % 10
    coarse = rng.integers(40, 216, (10, 3, 4, 4))[labels] + rng.integers(-40, 40, (samples, 3, 4, 4))
    fine = coarse.repeat(8, 2).repeat(8, 3) + rng.integers(-30, 30, (samples, 3, 32, 32))
    return np.clip(fine, 0, 255).astype(np.uint8), labels.astype(np.int32)


def recipe(options):
    """The network's own options, without those that augment images or set their number."""
    out = comparing.run([options.sdlf, "train", "--net", "cifar_fast", "--data", options.data, "--dry-run", "--no-save"])
    own = re.search(r"own (--.*)", out).group(1).split()
    kept, skip = [], False
    for word, following in zip(own, own[1:] + [""]):
        if skip:
            skip = False
            continue
        if word in ("--epochs", "--batch", "--augment-crop", "--final-rate", "--warmup"):
            skip = True
        elif not word.startswith("--augment"):
            kept.append(word)
    return kept


def sdlf_training(np, options, folder, steps, more):
    """The weights, and the loss of each step."""
    weights, log = f"{folder}/weights.safetensors", f"{folder}/log.jsonl"
    comparing.run([options.sdlf, "train", "--net", "cifar_fast", "--data", options.data, "--normalize", "cifar10", "--epochs", str(steps),
                   "--batch", str(options.samples), "--no-test", "--quiet", "--out", weights, "--log", log, *more])
    with open(log) as file:
        losses = [line["loss"] for line in map(json.loads, file) if line["event"] == "epoch"]
    return torch_network.read(np, weights)[1], losses


def orthogonal(gradient, steps=3):
    x = gradient.reshape(len(gradient), -1)
    x = x / (x.norm() + 1e-7)
    high = x.size(0) > x.size(1)
    x = x.T if high else x
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if high else x).reshape(gradient.shape)


def whitened(torch, x, filters):
    patches = x.unfold(2, 2, 1).unfold(3, 2, 1).transpose(1, 3).reshape(-1, x.shape[1] * 4).double()
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    rows = (vectors / torch.sqrt(values + 5e-4)).T.flip(0)
    ours = filters.reshape(len(filters), -1).double()
    signs = torch.sign((rows * ours[: len(rows)]).sum(1, keepdim=True))
    return float((torch.cat([rows * signs, -rows * signs]) - ours).abs().max() / ours.abs().max())


class Recipe:
    def __init__(self, torch, first, x, labels, steps):
        self.torch, self.x, self.labels, self.steps = torch, x, labels, steps
        tensor = {name: torch.from_numpy(array.copy()) for name, array in first.items()}
        self.whiten = tensor["whiten.weight"]
        self.part = {name: tensor[name] for name in tensor if name.startswith("conv") or name == "whiten.bias" or
                     (name.startswith("norm") and name.endswith(".bias"))}
        self.features = tensor["head.weight"].shape[1]
        self.part["head.weight"] = tensor["head.weight"] * self.features
        self.momentum = {name: torch.zeros_like(value) for name, value in self.part.items()}
        for value in self.part.values():
            value.requires_grad_()

    def loss(self):
        functional, part = self.torch.nn.functional, self.part
        x = functional.gelu(functional.conv2d(self.x, self.whiten, part["whiten.bias"]))
        for i in range(1, 7):
            x = functional.conv2d(x, part[f"conv{i}.weight"], padding=1)
            x = functional.max_pool2d(x, 2) if i % 2 else x
            x = functional.gelu(functional.batch_norm(x, None, None, None, part[f"norm{i}.bias"], training=True, eps=1e-12))
        scores = functional.max_pool2d(x, 3).flatten(1) @ part["head.weight"].T / self.features
        return functional.cross_entropy(scores, self.labels, label_smoothing=0.2, reduction="sum")

    def step(self, number):
        """A step with the summed gradient of a batch of 2000: this one's, scaled accordingly."""
        each, decay, left = 2000 / len(self.x), 0.004, 1 - number / self.steps
        loss = self.loss()
        loss.backward()
        with self.torch.no_grad():
            for name, value in self.part.items():
                filters = name.startswith("conv")
                momentum, rate = (0.6, 0.24) if filters else (0.85, 0.67 if name == "head.weight" else 0.053)
                gradient = value.grad if filters else value.grad * each + decay / rate * value
                velocity = self.momentum[name]
                velocity.mul_(momentum).add_(gradient)
                way = gradient + momentum * velocity
                share = max(0, 1 - number / (0.375 * self.steps)) if name == "whiten.bias" else left
                if filters:
                    value.mul_(len(value) ** 0.5 / value.norm())
                    way = orthogonal(way)
                value.sub_(rate * share * way)
                value.grad = None
        return float(loss.detach()) / len(self.x)


def main():
    options = arguments()
    np, torch = comparing.need("numpy"), comparing.need("torch")
    with tempfile.TemporaryDirectory() as folder:
        images, labels = pictures(np, options.samples)
        options.data = f"npz:{folder}/data.npz,all"
        np.savez(f"{folder}/data.npz", x=images, y=labels)
        first, _ = sdlf_training(np, options, folder, 1, ["--optimizer", "sgd", "--learning-rate", "1e-12", "--momentum", "0"])
        last, losses = sdlf_training(np, options, folder, options.steps, recipe(options))
    mean, deviation = (torch.tensor(numbers).reshape(1, 3, 1, 1) for numbers in (MEAN, DEVIATION))
    x = (torch.from_numpy(images).float() / 255 - mean) / deviation
    bad = []

    def told(what, off, limit):
        print(f"{what:24} {off:.2e}{'' if off < limit else f'  above {limit:g}'}")
        if not off < limit:
            bad.append(what)

    told("whitening", whitened(torch, x, torch.from_numpy(first["whiten.weight"])), 1e-4)
    theirs = Recipe(torch, first, x, torch.from_numpy(labels).long(), options.steps)
    for number, loss in enumerate(losses):
        told(f"loss of step {number + 1}", abs(theirs.step(number) - loss) / loss, options.tolerance)
    for name, value in theirs.part.items():
        scale = theirs.features if name == "head.weight" else 1
        mine, began = torch.from_numpy(last[name]) * scale, torch.from_numpy(first[name]) * scale
        told(name, float((mine - value.detach()).norm() / (value.detach() - began).norm()), options.tolerance)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
