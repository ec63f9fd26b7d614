# SPDX-License-Identifier: MIT
"""Layers as objects, for lists: Model.sequential(shape, [Conv2d(filters=32, kernel=3), ReLU(), ...]). Made by python/tools/generate_layers.py.

An object is called with the nodes that the function of sdlf.layers takes, and adds a layer each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import layers
from ._add import Layer, Pair


class Conv2d(Layer):
    """2-D convolution with groups, stride, padding and dilation. layers.conv2d says what its options are.

    Shapes: (N,C,H,W) -> (N,K,P,Q), K = filters
    """

    def __init__(
        self, *, filters: int | None = None, kernel: Pair | None = None, stride: Pair | None = None,
        padding: Pair | None = None, padding_extra: Pair | None = None, dilation: Pair | None = None,
        groups: int | None = None, no_bias: bool | None = None, initializer: str | None = None,
        initializer_scale: float | None = None, name: str | None = None,
    ):
        super().__init__(layers.conv2d, name, {
            "filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "padding_extra": padding_extra,
            "dilation": dilation, "groups": groups, "no_bias": no_bias, "initializer": initializer,
            "initializer_scale": initializer_scale,
        })


class MaxPool2d(Layer):
    """The largest value of each window. layers.max_pool2d says what its options are.

    Shapes: (N,C,H,W) -> (N,C,P,Q)
    """

    def __init__(
        self, window: Pair | None = None, *, stride: Pair | None = None, padding: Pair | None = None,
        padding_extra: Pair | None = None, dilation: Pair | None = None, ties: str | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.max_pool2d, name, {
            "window": window, "stride": stride, "padding": padding, "padding_extra": padding_extra,
            "dilation": dilation, "ties": ties,
        })


class AvgPool2d(Layer):
    """The mean of each window. layers.avg_pool2d says what its options are.

    Shapes: (N,C,H,W) -> (N,C,P,Q)
    """

    def __init__(
        self, window: Pair | None = None, *, stride: Pair | None = None, padding: Pair | None = None,
        padding_extra: Pair | None = None, count_padding: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.avg_pool2d, name, {
            "window": window, "stride": stride, "padding": padding, "padding_extra": padding_extra,
            "count_padding": count_padding,
        })


class GlobalAvgPool2d(Layer):
    """The mean of each channel.

    Shapes: (N,C,H,W) -> (N,C,1,1)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.global_avg_pool2d, name, {})


class Linear(Layer):
    """Each output a weighted sum of all inputs. layers.fully_connected says what its options are.

    Shapes: (N,...) -> (N,U), U = units; with axis=-1 (N,...,I) -> (N,...,U)
    """

    def __init__(
        self, units: int | None = None, *, no_bias: bool | None = None, initializer: str | None = None,
        axis: int | None = None, initializer_scale: float | None = None, name: str | None = None,
    ):
        super().__init__(layers.fully_connected, name, {
            "units": units, "no_bias": no_bias, "initializer": initializer, "axis": axis,
            "initializer_scale": initializer_scale,
        })


class GraphConv(Layer):
    """Each node a weighted sum over its neighbours, times a matrix. layers.graph_conv says what its options are.

    Shapes: (N,I) of N nodes, sparse (N,N), its transpose (N,N) -> (N,U), U = units
    """

    def __init__(
        self, *, units: int | None = None, no_bias: bool | None = None, no_decay: bool | None = None,
        initializer: str | None = None, name: str | None = None,
    ):
        super().__init__(layers.graph_conv, name, {
            "units": units, "no_bias": no_bias, "no_decay": no_decay, "initializer": initializer,
        })


class BatchNorm2d(Layer):
    """Each channel normalised, scaled and shifted. layers.batch_norm2d says what its options are.

    Shapes: (N,C,H,W) -> (N,C,H,W), or (N,C) -> (N,C)
    """

    def __init__(
        self, *, epsilon: float | None = None, momentum: float | None = None, no_scale: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.batch_norm2d, name, {"epsilon": epsilon, "momentum": momentum, "no_scale": no_scale})


class Dropout(Layer):
    """Zeroes elements at random while training. layers.dropout says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, probability: float | None = None, *, name: str | None = None):
        super().__init__(layers.dropout, name, {"probability": probability})


class ReLU(Layer):
    """Max(x, 0).

    Shapes: (...) -> (...)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.relu, name, {})


class ReLU6(Layer):
    """Min(max(x, 0), 6).

    Shapes: (...) -> (...)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.relu6, name, {})


class Clip(Layer):
    """Min(max(x, low), high). layers.clip says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, low: float | None = None, high: float | None = None, name: str | None = None):
        super().__init__(layers.clip, name, {"low": low, "high": high})


class LeakyReLU(Layer):
    """X, or slope x where x is negative. layers.leaky_relu says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, slope: float | None = None, name: str | None = None):
        super().__init__(layers.leaky_relu, name, {"slope": slope})


class Sigmoid(Layer):
    """1 / (1 + exp(-x)).

    Shapes: (...) -> (...)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.sigmoid, name, {})


class Tanh(Layer):
    """Hyperbolic tangent.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.tanh, name, {})


class Unary(Layer):
    """A function of each element. layers.unary says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(
        self, *, function: str | None = None, alpha: float | None = None, beta: float | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.unary, name, {"function": function, "alpha": alpha, "beta": beta})


class Flatten(Layer):
    """Each sample as one row.

    Shapes: (N,...) -> (N,I), I the product of the others
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.flatten, name, {})


class Reshape(Layer):
    """Each sample under another shape. layers.reshape says what its options are.

    Shapes: (N,...) -> (N,...) of as many elements
    """

    def __init__(self, *, shape: Sequence[int] | None = None, whole: bool | None = None, name: str | None = None):
        super().__init__(layers.reshape, name, {"shape": shape, "whole": whole})


class Add(Layer):
    """Elementwise sum of two inputs.

    Shapes: (...), (...) -> (...)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.add, name, {})


class Concat(Layer):
    """Inputs joined along an axis. layers.concat says what its options are.

    Shapes: (N,A,...), (N,B,...), ... -> (N,A+B+...,...), or joined along another axis
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.concat, name, {"axis": axis})


class Binary(Layer):
    """A function of two inputs, broadcast, or of one and a number. layers.binary says what its options are.

    Shapes: (...), (...) -> (...), broadcast as NumPy's
    """

    def __init__(
        self, *, function: str | None = None, scalar: float | None = None, scalar_first: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.binary, name, {"function": function, "scalar": scalar, "scalar_first": scalar_first})


class Select(Layer):
    """One of two inputs, element by element, by a condition.

    Shapes: bool (...), (...), (...) -> (...), broadcast as NumPy's
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.select, name, {})


class Reduce(Layer):
    """Some axes reduced to one element. layers.reduce says what its options are.

    Shapes: (...) -> (...) without the axes that are folded, or with 1 in their place
    """

    def __init__(
        self, *, function: str | None = None, axes: Sequence[int] | None = None, keep: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.reduce, name, {"function": function, "axes": axes, "keep": keep})


class ArgReduce(Layer):
    """Where the largest element along an axis is. layers.arg_reduce says what its options are.

    Shapes: (...) -> int64 (...) without the axis, or with 1 in its place
    """

    def __init__(
        self, *, axis: int | None = None, smallest: bool | None = None, last: bool | None = None,
        keep: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.arg_reduce, name, {"axis": axis, "smallest": smallest, "last": last, "keep": keep})


class Gather(Layer):
    """Elements picked by their indices along an axis. layers.gather says what its options are.

    Shapes: (A,...), integers (B...) -> (A,...) with the axis replaced by (B...)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.gather, name, {"axis": axis})


class Matmul(Layer):
    """Products of matrices. layers.matmul says what its options are.

    Shapes: (...,m,k), (...,k,n) -> (...,m,n), leading axes broadcast as NumPy's
    """

    def __init__(self, *, transpose_a: bool | None = None, transpose_b: bool | None = None, name: str | None = None):
        super().__init__(layers.matmul, name, {"transpose_a": transpose_a, "transpose_b": transpose_b})


class ConvTranspose2d(Layer):
    """Transposed 2-D convolution. layers.conv_transpose2d says what its options are.

    Shapes: (N,C,H,W) -> (N,K,P,Q), K = filters
    """

    def __init__(
        self, *, filters: int | None = None, kernel: Pair | None = None, stride: Pair | None = None,
        padding: Pair | None = None, padding_extra: Pair | None = None, output_padding: Pair | None = None,
        dilation: Pair | None = None, groups: int | None = None, no_bias: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.conv_transpose2d, name, {
            "filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "padding_extra": padding_extra,
            "output_padding": output_padding, "dilation": dilation, "groups": groups, "no_bias": no_bias,
        })


class LayerNorm(Layer):
    """Each sample's last axes normalised, scaled and shifted. layers.layer_norm says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, axis: int | None = None, epsilon: float | None = None, name: str | None = None):
        super().__init__(layers.layer_norm, name, {"axis": axis, "epsilon": epsilon})


class RmsNorm(Layer):
    """Each row divided by the root of the mean of its squares. layers.rms_norm says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, epsilon: float | None = None, name: str | None = None):
        super().__init__(layers.rms_norm, name, {"epsilon": epsilon})


class GroupNorm(Layer):
    """Groups of channels, or single ones, normalised, scaled and shifted. layers.group_norm says what its options are.

    Shapes: (N,C,...) -> (N,C,...)
    """

    def __init__(self, *, groups: int | None = None, epsilon: float | None = None, name: str | None = None):
        super().__init__(layers.group_norm, name, {"groups": groups, "epsilon": epsilon})


class LRN(Layer):
    """Each element divided by a mean over neighbouring channels. layers.lrn says what its options are.

    Shapes: (N,C,H,W) -> (N,C,H,W)
    """

    def __init__(
        self, *, size: int | None = None, alpha: float | None = None, beta: float | None = None,
        bias: float | None = None, name: str | None = None,
    ):
        super().__init__(layers.lrn, name, {"size": size, "alpha": alpha, "beta": beta, "bias": bias})


class Embedding(Layer):
    """A row of weights for each token. layers.embedding says what its options are.

    Shapes: tokens (N,...) -> (N,...,U), U = units
    """

    def __init__(
        self, *, vocabulary: int | None = None, units: int | None = None, deviation: float | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.embedding, name, {"vocabulary": vocabulary, "units": units, "deviation": deviation})


class PositionEmbedding(Layer):
    """A learned vector added at each position. layers.position_embedding says what its options are.

    Shapes: (N,T,C) -> (N,T,C)
    """

    def __init__(self, *, deviation: float | None = None, name: str | None = None):
        super().__init__(layers.position_embedding, name, {"deviation": deviation})


class RotaryEmbedding(Layer):
    """Pairs of elements rotated by their position. layers.rotary_embedding says what its options are.

    Shapes: (...,T,D) -> (...,T,D)
    """

    def __init__(self, *, base: float | None = None, name: str | None = None):
        super().__init__(layers.rotary_embedding, name, {"base": base})


class MultiHeadAttention(Layer):
    """Self-attention of several heads, causal or masked. layers.multi_head_attention says what its options are.

    Shapes: (N,T,C), a mask that broadcasts to (N,heads,T,T) -> (N,T,C)
    """

    def __init__(
        self, *, heads: int | None = None, causal: bool | None = None, no_bias: bool | None = None,
        dropout: float | None = None, rotary: bool | None = None, base: float | None = None, name: str | None = None,
    ):
        super().__init__(layers.multi_head_attention, name, {
            "heads": heads, "causal": causal, "no_bias": no_bias, "dropout": dropout, "rotary": rotary, "base": base,
        })


class LSTM(Layer):
    """Long short-term memory over the positions of a sequence. layers.lstm says what its options are.

    Shapes: (N,T,I), first states (N,U), cells (N,U) -> (N,T,U), or with last (N,U), U = units
    """

    def __init__(
        self, *, units: int | None = None, last: bool | None = None, reverse: bool | None = None,
        no_bias: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.lstm, name, {"units": units, "last": last, "reverse": reverse, "no_bias": no_bias})


class GRU(Layer):
    """Gated recurrent units over the positions of a sequence. layers.gru says what its options are.

    Shapes: (N,T,I), first states (N,U) -> (N,T,U), or with last (N,U), U = units
    """

    def __init__(
        self, *, units: int | None = None, last: bool | None = None, reverse: bool | None = None,
        no_bias: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.gru, name, {"units": units, "last": last, "reverse": reverse, "no_bias": no_bias})


class TopK(Layer):
    """The largest elements along an axis, and where they are. layers.top_k says what its options are.

    Shapes: (...) -> (...) with k along the axis, int64 (...) of their indices: output 1
    """

    def __init__(
        self, *, k: int | None = None, axis: int | None = None, smallest: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.top_k, name, {"k": k, "axis": axis, "smallest": smallest})


class Resize(Layer):
    """Axes enlarged or shrunk. layers.resize says what its options are.

    Shapes: (N,C,H,W) -> (N,C,P,Q), or of other axes
    """

    def __init__(
        self, *, axes: Sequence[int] | None = None, sizes: Sequence[int] | None = None, scale: float | None = None,
        mode: str | None = None, coordinates: str | None = None, rounding: str | None = None,
        cubic: float | None = None, start: float | None = None, end: float | None = None,
        extrapolates: bool | None = None, outside: float | None = None, antialias: bool | None = None,
        exclude_outside: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.resize, name, {
            "axes": axes, "sizes": sizes, "scale": scale, "mode": mode, "coordinates": coordinates,
            "rounding": rounding, "cubic": cubic, "start": start, "end": end, "extrapolates": extrapolates,
            "outside": outside, "antialias": antialias, "exclude_outside": exclude_outside,
        })


class Cast(Layer):
    """Another element type. layers.cast says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, dtype: str | None = None, name: str | None = None):
        super().__init__(layers.cast, name, {"dtype": dtype})


class DynamicQuantize(Layer):
    """Floats quantised to uint8 by their range.

    Shapes: (...) -> uint8 (...); scale () and zero point () are outputs 1 and 2
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.dynamic_quantize, name, {})


class Transpose(Layer):
    """Axes in another order. layers.transpose says what its options are.

    Shapes: (...) -> (...) in another order
    """

    def __init__(self, *, order: Sequence[int] | None = None, name: str | None = None):
        super().__init__(layers.transpose, name, {"order": order})


class Slice(Layer):
    """A part along some axes. layers.slice says what its options are.

    Shapes: (...) -> (...), shorter along the axes
    """

    def __init__(
        self, *, axes: Sequence[int] | None = None, start: Sequence[int] | None = None,
        end: Sequence[int] | None = None, step: Sequence[int] | None = None, name: str | None = None,
    ):
        super().__init__(layers.slice, name, {"axes": axes, "start": start, "end": end, "step": step})


class Pad(Layer):
    """A border around some axes. layers.pad says what its options are.

    Shapes: (...) -> (...), longer along the axes
    """

    def __init__(
        self, *, before: Sequence[int] | None = None, after: Sequence[int] | None = None, value: float | None = None,
        mode: str | None = None, name: str | None = None,
    ):
        super().__init__(layers.pad, name, {"before": before, "after": after, "value": value, "mode": mode})


class Expand(Layer):
    """Broadcast to a larger shape. layers.expand says what its options are.

    Shapes: (...) -> (...), broadcast with shape as NumPy's
    """

    def __init__(self, *, shape: Sequence[int] | None = None, samples: bool | None = None, name: str | None = None):
        super().__init__(layers.expand, name, {"shape": shape, "samples": samples})


class Tile(Layer):
    """Repeated along its axes. layers.tile says what its options are.

    Shapes: (...) -> (...), each axis times its repeats
    """

    def __init__(self, *, repeats: Sequence[int] | None = None, name: str | None = None):
        super().__init__(layers.tile, name, {"repeats": repeats})


class DepthToSpace(Layer):
    """Blocks of pixels from channels. layers.depth_to_space says what its options are.

    Shapes: (N,C,H,W) -> (N,C/b^2,H b,W b), b = block
    """

    def __init__(self, *, block: int | None = None, mode: str | None = None, name: str | None = None):
        super().__init__(layers.depth_to_space, name, {"block": block, "mode": mode})


class SpaceToDepth(Layer):
    """Channels from blocks of pixels. layers.space_to_depth says what its options are.

    Shapes: (N,C,H,W) -> (N,C b^2,H/b,W/b), b = block
    """

    def __init__(self, *, block: int | None = None, mode: str | None = None, name: str | None = None):
        super().__init__(layers.space_to_depth, name, {"block": block, "mode": mode})


class Softmax(Layer):
    """Probabilities along an axis. layers.softmax says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.softmax, name, {"axis": axis})


class LogSoftmax(Layer):
    """Logarithms of probabilities along an axis. layers.log_softmax says what its options are.

    Shapes: (...) -> (...)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.log_softmax, name, {"axis": axis})


class SoftmaxCrossEntropy(Layer):
    """Mean cross-entropy of logits against labels: a loss. layers.softmax_cross_entropy says what its options are.

    Shapes: logits (N,C,...), labels int32 (N,...), weights (N,...) -> loss (1)
    """

    def __init__(self, *, smoothing: float | None = None, name: str | None = None):
        super().__init__(layers.softmax_cross_entropy, name, {"smoothing": smoothing})


class MSE(Layer):
    """Mean squared difference from float targets: a loss.

    Shapes: (N,...), targets (N,...) -> loss (1)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.mse, name, {})


class MAE(Layer):
    """Mean absolute difference from float targets: a loss.

    Shapes: (N,...), targets (N,...) -> loss (1)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.mae, name, {})


class Huber(Layer):
    """Huber loss against float targets: squared where small, linear beyond. layers.huber says what its options are.

    Shapes: (N,...), targets (N,...) -> loss (1)
    """

    def __init__(self, *, delta: float | None = None, name: str | None = None):
        super().__init__(layers.huber, name, {"delta": delta})


class BCEWithLogits(Layer):
    """Binary cross-entropy of logits against targets from 0 to 1: a loss.

    Shapes: logits (N,...), targets (N,...) -> loss (1)
    """

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.bce_with_logits, name, {})
