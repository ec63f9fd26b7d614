# SPDX-License-Identifier: MIT
"""Multi-head attention as separate nodes, and the choice of the blocks (blocks.py) of a random network."""
import math

import numpy as np

from mutations import blocks
from mutations.changes import change_samples
from mutations.networks import Network, Value


def heads_of(g, x, heads, first, keys):
    """(L, N, C) or (N, L, C) to (N, heads, L, C / heads); `keys`: the last two swapped."""
    each = x.channels // heads
    length, n = (x.shape[0], x.shape[1]) if first else (x.shape[1], x.shape[0])
    if first:  # sequence first: heads are folded into the batch, as torch does
        pattern = [length, -1 if g.open else n * heads, each]
        y = g.op("Reshape", [x, g.integers(*pattern)], [length, n * heads, each], "any")
        return g.transpose(y, (1, 2, 0) if keys else (1, 0, 2), "any")
    y = g.reshape(x, [n, length, heads, each], "any")
    return g.transpose(y, (0, 2, 3, 1) if keys else (0, 2, 1, 3), "any")


def mask(g, scores, n, heads):
    """Add a mask to the scores: a causal or random constant, or an input that masks keys per sample."""
    rows, columns = scores.shape[-2:]
    hidden = hiding(g, rows, columns)
    if len(scores.shape) == 4 and g.chance(0.3):
        shape = [n, 1, 1, columns]
        drawn = np.where(g.random.random_sample(shape) < 0.3, -1e4, 0).astype(np.float32)
        drawn[..., 0] = 0
        return g.like("Add", scores, g.input(drawn))
    if g.chance(0.2):
        return g.op("Where", [g.weight(hidden == 0), scores, g.weight(np.float32(-1e4))], scores.shape, "any")
    shape = g.r.choice([(rows, columns), (1, rows, columns)] + ([(1, 1, rows, columns)] if len(scores.shape) == 4 else []))
    return g.swapped("Add", scores, g.weight((hidden * np.float32(g.r.choice([-1e4, -1.5]))).reshape(shape)))


def hiding(g, rows, columns):
    """1 where a key is masked; never a whole row."""
    hidden = np.triu(np.ones((rows, columns), np.float32), 1) if g.chance(0.6) else (g.random.random_sample((rows, columns)) < 0.3).astype(np.float32)
    hidden[:, 0] = 0
    return hidden


def projections(g, x, context, heads):
    """Queries, keys and values: three matrix products, or one that is split."""
    c = x.channels
    if context is x and g.chance(0.35):
        whole = blocks.dense(g, x, 3 * c)
        sizes = [g.integers(c, c, c)]
        g.node("Split", [whole.name, *sizes], 3, axis=g.r.choice([-1, len(x.shape) - 1]))
        g.read.add(whole.name)
        return [Value(name, x.shape, "last") for name in g.nodes[-1].output]
    return [blocks.dense(g, v, c) for v in (x, context, context)]


def attend(g, x):
    heads = g.r.choice([h for h in (1, 2, 3, 4) if x.channels % h == 0])
    if len(x.shape) != 3:
        return blocks.dense(g, x)
    others = [v for v in g.values if len(v.shape) == 3 and v.layout == "last" and v.channels == x.channels]
    context = g.r.choice(others) if others and g.chance(0.2) else x
    first, each, n = g.chance(0.3), x.channels // heads, x.shape[0]
    y, z = (blocks.layer_norm(g, x), None) if g.chance(0.3) else (x, None)
    z = y if context is x else context
    if first:
        same = z is y
        y = g.transpose(y, (1, 0, 2), "last")
        z = y if same else g.transpose(z, (1, 0, 2), "last")
    q, k, v = projections(g, y, z, heads)
    before = g.chance(0.4)
    root = np.float32(1 / math.sqrt(each))
    if before:
        q = g.swapped("Mul", q, g.weight(root))
    q, k, v = heads_of(g, q, heads, first, False), heads_of(g, k, heads, first, True), heads_of(g, v, heads, first, False)
    s = g.op("MatMul", [q, k], [*q.shape[:-1], k.shape[-1]], "any")
    if not before:
        s = g.swapped("Mul", s, g.weight(root)) if g.chance(0.6) else g.like("Div", s, g.weight(np.float32(math.sqrt(each))))
    if g.chance(0.4):
        s = mask(g, s, n, heads)
    s = g.like("Softmax", s, axis=g.r.choice([-1, len(s.shape) - 1]))
    y = g.op("MatMul", [s, v], [*s.shape[:-1], each], "any")
    if first:
        y = g.transpose(y, (1, 0, 2), "any")
        y = g.op("Reshape", [y, g.integers(x.shape[1], -1 if g.open else n, x.channels)], [x.shape[1], n, x.channels], "last")
    else:
        y = g.reshape(g.transpose(y, (0, 2, 1, 3), "any"), [n, x.shape[1], x.channels], "last")
    y = blocks.dense(g, y, x.channels)
    if first:
        y = g.transpose(y, (1, 0, 2), "last")
    return g.swapped("Add", y, x) if g.chance(0.6) else y


IMAGE = ([blocks.conv_block] * 6 + [blocks.grouped_block] * 2 + [blocks.residual_block] * 3 + [blocks.in_last] * 3 + [blocks.pool] * 2
         + [blocks.squeeze_excite] * 2
         + [Network.activation, Network.scale, Network.scale, Network.residual, Network.residual, Network.concat, Network.concat, Network.gate,
            blocks.batch_norm, blocks.resize, blocks.pixel_shuffle, blocks.space_to_depth, blocks.channel_shuffle, blocks.channel_shuffle,
            blocks.instance_norm, blocks.permuted, blocks.permuted, blocks.deconvolve, blocks.pad, blocks.doubled, blocks.head,
            blocks.to_tokens, blocks.to_last])
LAST = ([attend] * 4 + [blocks.dense] * 3 + [blocks.perceptron] * 2 + [blocks.layer_norm] * 2
        + [Network.activation, Network.scale, Network.residual, Network.residual, Network.concat, Network.gate, blocks.permuted, blocks.softmax,
           blocks.token_mean, blocks.slice_tokens, blocks.from_last, blocks.from_last, blocks.to_image, blocks.doubled])
ANY = [Network.activation, Network.activation, Network.residual]


def network(r):
    """A case of at least 3 to 14 nodes; the last block may exceed that number."""
    g = Network(r)
    g.quantises = g.chance(0.12)
    if g.chance(0.25):
        g.open = True
        g.batch = r.choice([1, 2, 3])
    c = r.choice([1, 3, 3, 4, 4, 6, 8, 8, 12, 16, 16, 17, 24, 32])
    if g.chance(0.72):
        rank = r.choice([2] * 8 + [1, 1, 3])
        most = {1: 40, 2: 15, 3: 6}[rank]
        sizes = [r.randint(1, most)] * rank if g.chance(0.4) else [r.randint(1, most) for _ in range(rank)]
        while g.batch * c * math.prod(sizes) > 4000:
            sizes = [max(1, d // 2) for d in sizes]
        g.start([g.batch, c, *sizes], "image")
    elif g.chance(0.8):
        g.start([g.batch, r.choice([d for d in range(1, 20) if d != g.batch]), c], "last")
    else:
        g.start([g.batch, c], "last")
    if g.chance(0.1):
        g.start(g.values[0].shape, g.values[0].layout)
    fits = {"image": IMAGE, "last": LAST, "any": ANY}
    g.grow(lambda x: fits[x.layout], r.randint(3, 14))
    case = g.finish("network" + (" of integers" if g.quantises else ""))
    if g.batch == 1 and not g.open and g.chance(0.4):
        done = change_samples(case, r)
        case.changes += [done] if done else []
    return case
