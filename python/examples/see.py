# SPDX-License-Identifier: MIT
"""From nothing to a plotted training and a Grad-CAM: python see.py (needs matplotlib)

Trains a network on digits that SDLF draws, and writes training.png and grad_cam.png.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import sdlf
from sdlf import nn, optim

train, test = sdlf.Dataset.open("digits:10000", "train"), sdlf.Dataset.open("digits:10000", "test")
model = sdlf.Model.sequential((1, 28, 28), [
    nn.Conv2d(filters=16, kernel=5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(filters=32, kernel=3, padding=1), nn.ReLU(),
    nn.Conv2d(filters=64, kernel=3, padding=1), nn.BatchNorm2d(), nn.ReLU(),
    nn.GlobalAvgPool2d(), nn.Flatten(), nn.Linear(10), nn.Softmax()])
history = sdlf.Trainer(model, train, test, epochs=5, optimizer=optim.SGD(momentum=0.9), schedule=optim.OneCycle(0.05)).run()

figure, axes = plt.subplots(1, 2, figsize=(9, 3.5))
for axis, key in zip(axes, ("loss", "accuracy")):
    axis.plot(history["epoch"], history[key], label="training")
    axis.plot(history["epoch"], history["test_" + key], "--", label="test")
    axis.set(xlabel="epoch", ylabel=key)
    axis.legend()
figure.savefig("training.png", bbox_inches="tight")

pictures = test.samples[:8]
mean, deviation = (np.reshape(part, (1, -1, 1, 1)) for part in model.normalization)
x = ((pictures - mean) / deviation).astype(np.float32)
figure, axes = plt.subplots(2, 8, figsize=(9, 2.6))
for column, (picture, heat, scores) in enumerate(zip(pictures, model.grad_cam(x), model(x))):
    axes[0, column].imshow(picture[0], cmap="gray")
    axes[0, column].set_title(int(scores.argmax()))
    axes[1, column].imshow(picture[0], cmap="gray")
    axes[1, column].imshow(heat, cmap="inferno", alpha=0.7, extent=(-0.5, 27.5, 27.5, -0.5), interpolation="bilinear")
for axis in axes.flat:
    axis.axis("off")
figure.savefig("grad_cam.png", bbox_inches="tight")
print("training.png and grad_cam.png")
