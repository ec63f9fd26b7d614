# SPDX-License-Identifier: MIT
"""simple_cnn trained by JAX, for scripts/compare-pytorch-training.py: an epoch is one lax.scan, and a step for the shorter last batch."""
import os
import time

RATE, MOMENTUM = 0.01, 0.9
PRECISION = {"fp32": "highest", "tf32": "default", "bf16": "default"}  # of matrix products; "default" is TF32 on a GPU


def set_up(device):
    """Call before importing JAX: it then allocates memory on demand instead of most of the device, and uses the same device as the others."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("JAX_PLATFORMS", device)


def loss_of(jax, mode, weights, x, labels):
    """The mean cross-entropy; in bf16 matrix products have 16-bit operands and weights stay float32, as in PyTorch's autocast."""
    jnp, lax = jax.numpy, jax.lax
    kind = jnp.bfloat16 if mode == "bf16" else jnp.float32
    w = {name: value.astype(kind) for name, value in weights.items()}
    h = lax.conv_general_dilated(x.astype(kind), w["0.weight"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
    h = jax.nn.relu(h + w["0.bias"][None, :, None, None])
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").reshape(len(labels), -1)
    h = jax.nn.relu(h @ w["4.weight"].T + w["4.bias"])
    logits = (h @ w["6.weight"].T + w["6.bias"]).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))


def epoch_of(jax, mode, data, batch):
    """(weights, velocities, order) -> the same after an epoch, and the loss of every batch."""
    jnp, lax = jax.numpy, jax.lax
    images, labels, mean, scale = data
    images, labels = jnp.asarray(images)[:, None], jnp.asarray(labels.astype("int32"))
    whole = len(labels) // batch * batch

    def step(state, rows, images, labels):
        weights, velocities = state
        x = (images[rows].astype(jnp.float32) - mean) * scale
        loss, gradients = jax.value_and_grad(lambda w: loss_of(jax, mode, w, x, labels[rows]))(weights)
        velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocities, gradients)
        return (jax.tree.map(lambda w, v: w - RATE * v, weights, velocities), velocities), loss

    def epoch(state, order, images, labels):
        state, losses = lax.scan(lambda s, rows: step(s, rows, images, labels), state, order[:whole].reshape(-1, batch))
        if whole == len(order):
            return state, losses
        state, last = step(state, order[whole:], images, labels)
        return state, jnp.concatenate([losses, last[None]])

    compiled = jax.jit(epoch, donate_argnums=0)
    return lambda state, order: compiled(state, order, images, labels)


def turn(jax, mode, batches, data, weights, orders):
    """Seconds of each epoch, and the last one's loss. The first one's time includes compilation."""
    seconds = []
    with jax.default_matmul_precision(PRECISION[mode]):
        epoch = epoch_of(jax, mode, data, batches[0])
        state = ({name: jax.numpy.asarray(value) for name, value in weights.items()},
                 {name: jax.numpy.zeros(value.shape) for name, value in weights.items()})
        for order in orders:
            rows = jax.numpy.asarray(order.astype("int32")).block_until_ready()
            start = time.perf_counter()
            state, losses = epoch(state, rows)
            losses.block_until_ready()
            seconds.append(time.perf_counter() - start)
    return seconds, sum(loss * batch for loss, batch in zip(jax.device_get(losses).tolist(), batches)) / sum(batches)
