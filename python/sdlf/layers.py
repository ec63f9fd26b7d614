# SPDX-License-Identifier: MIT
"""Layers as functions on nodes, as the C interface has them. Made by python/tools/generate_layers.py.

Each takes the nodes that it reads, and returns the node that it makes. An option left out has its default. `name` is the layer's, unique in
its model; left out, the layer is named after its class. Shapes include the batch N as axis 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import _sdlf
from ._add import Pair, add_layer, add_source

Node = _sdlf.Node


def conv2d(
    x: Node, *, filters: int | None = None, kernel: Pair | None = None, stride: Pair | None = None,
    padding: Pair | None = None, padding_extra: Pair | None = None, dilation: Pair | None = None,
    groups: int | None = None, no_bias: bool | None = None, initializer: str | None = None,
    initializer_scale: float | None = None, name: str | None = None,
) -> Node:
    """2-D convolution with groups, stride, padding and dilation.

    Shapes: (N,C,H,W) -> (N,K,P,Q), K = filters
    filters: output channels
    kernel: height and width of the kernel
    stride: steps between windows (default 1)
    padding: zeros around the image
    padding_extra: more zeros below and right; fewer if negative
    dilation: distance between the kernel's elements (default 1)
    groups: groups of channels; as many as channels: depthwise (default 1)
    no_bias: leave the bias out
    initializer: initial weight; he_uniform by default: default, zero, one, he_uniform, he_normal, xavier_uniform,
        xavier_normal, lecun_uniform, uniform, normal, identity, whitening
    initializer_scale: bound of uniform, deviation of normal (default 0.1)
    """
    return add_layer("conv2d", (x,), name, {
        "filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "padding_extra": padding_extra,
        "dilation": dilation, "groups": groups, "no_bias": no_bias, "initializer": initializer,
        "initializer_scale": initializer_scale,
    })


def max_pool2d(
    x: Node, *, window: Pair | None = None, stride: Pair | None = None, padding: Pair | None = None,
    padding_extra: Pair | None = None, dilation: Pair | None = None, ties: str | None = None, name: str | None = None,
) -> Node:
    """The largest value of each window.

    Shapes: (N,C,H,W) -> (N,C,P,Q)
    window: height and width of the window
    stride: steps between windows; the window by default
    padding: a border that is never the maximum
    padding_extra: more border below and right; less if negative
    dilation: distance between the window's elements (default 1)
    ties: which of equal maxima get the gradient: share, first
    """
    return add_layer("max_pool2d", (x,), name, {
        "window": window, "stride": stride, "padding": padding, "padding_extra": padding_extra, "dilation": dilation,
        "ties": ties,
    })


def avg_pool2d(
    x: Node, *, window: Pair | None = None, stride: Pair | None = None, padding: Pair | None = None,
    padding_extra: Pair | None = None, count_padding: bool | None = None, name: str | None = None,
) -> Node:
    """The mean of each window.

    Shapes: (N,C,H,W) -> (N,C,P,Q)
    window: height and width of the window
    stride: steps between windows; the window by default
    padding: a border of zeros
    padding_extra: more border below and right; less if negative
    count_padding: the border counts in the mean
    """
    return add_layer("avg_pool2d", (x,), name, {
        "window": window, "stride": stride, "padding": padding, "padding_extra": padding_extra,
        "count_padding": count_padding,
    })


def global_avg_pool2d(x: Node, *, name: str | None = None) -> Node:
    """The mean of each channel.

    Shapes: (N,C,H,W) -> (N,C,1,1)
    """
    return add_layer("global_avg_pool2d", (x,), name, {})


def fully_connected(
    x: Node, *, units: int | None = None, no_bias: bool | None = None, initializer: str | None = None,
    axis: int | None = None, initializer_scale: float | None = None, name: str | None = None,
) -> Node:
    """Each output a weighted sum of all inputs.

    Shapes: (N,...) -> (N,U), U = units; with axis=-1 (N,...,I) -> (N,...,U)
    units: outputs of a sample
    no_bias: leave the bias out
    initializer: initial weight; he_uniform by default: default, zero, one, he_uniform, he_normal, xavier_uniform,
        xavier_normal, lecun_uniform, uniform, normal, identity, whitening
    axis: first axis of an output's inputs; -1: the last axis, so each token by itself (default 1)
    initializer_scale: bound of uniform, deviation of normal (default 0.1)
    """
    return add_layer("fully_connected", (x,), name, {
        "units": units, "no_bias": no_bias, "initializer": initializer, "axis": axis,
        "initializer_scale": initializer_scale,
    })


def graph_conv(
    *inputs: Node, units: int | None = None, no_bias: bool | None = None, no_decay: bool | None = None,
    initializer: str | None = None, name: str | None = None,
) -> Node:
    """Each node a weighted sum over its neighbours, times a matrix.

    Shapes: (N,I) of N nodes, sparse (N,N), its transpose (N,N) -> (N,U), U = units
    units: outputs of a node
    no_bias: leave the bias out
    no_decay: no weight decay of the weight
    initializer: initial weight; xavier_uniform by default: default, zero, one, he_uniform, he_normal, xavier_uniform,
        xavier_normal, lecun_uniform, uniform, normal, identity, whitening
    """
    return add_layer("graph_conv", inputs, name, {
        "units": units, "no_bias": no_bias, "no_decay": no_decay, "initializer": initializer,
    })


def batch_norm2d(
    x: Node, *, epsilon: float | None = None, momentum: float | None = None, no_scale: bool | None = None,
    name: str | None = None,
) -> Node:
    """Each channel normalised, scaled and shifted.

    Shapes: (N,C,H,W) -> (N,C,H,W), or (N,C) -> (N,C)
    epsilon: added to the variance (default 1e-05)
    momentum: weight of the newest batch in the running statistics (default 0.1)
    no_scale: leave the scale at 1: its weight is not trained
    """
    return add_layer("batch_norm2d", (x,), name, {"epsilon": epsilon, "momentum": momentum, "no_scale": no_scale})


def dropout(x: Node, *, probability: float | None = None, name: str | None = None) -> Node:
    """Zeroes elements at random while training.

    Shapes: (...) -> (...)
    probability: share of the elements that become zero
    """
    return add_layer("dropout", (x,), name, {"probability": probability})


def relu(x: Node, *, name: str | None = None) -> Node:
    """Max(x, 0).

    Shapes: (...) -> (...)
    """
    return add_layer("relu", (x,), name, {})


def relu6(x: Node, *, name: str | None = None) -> Node:
    """Min(max(x, 0), 6).

    Shapes: (...) -> (...)
    """
    return add_layer("relu6", (x,), name, {})


def clip(x: Node, *, low: float | None = None, high: float | None = None, name: str | None = None) -> Node:
    """Min(max(x, low), high).

    Shapes: (...) -> (...)
    low: smallest output
    high: largest output
    """
    return add_layer("clip", (x,), name, {"low": low, "high": high})


def leaky_relu(x: Node, *, slope: float | None = None, name: str | None = None) -> Node:
    """X, or slope x where x is negative.

    Shapes: (...) -> (...)
    slope: slope of the negative side (default 0.01)
    """
    return add_layer("leaky_relu", (x,), name, {"slope": slope})


def sigmoid(x: Node, *, name: str | None = None) -> Node:
    """1 / (1 + exp(-x)).

    Shapes: (...) -> (...)
    """
    return add_layer("sigmoid", (x,), name, {})


def tanh(x: Node, *, name: str | None = None) -> Node:
    """Hyperbolic tangent.

    Shapes: (...) -> (...)
    """
    return add_layer("tanh", (x,), name, {})


def unary(
    x: Node, *, function: str | None = None, alpha: float | None = None, beta: float | None = None,
    name: str | None = None,
) -> Node:
    """A function of each element.

    Shapes: (...) -> (...)
    function: function of each element: silu, hard_swish, elu, selu, celu, gelu, gelu_tanh, mish, softplus, softsign,
        hard_sigmoid, erf, sqrt, exp, log, abs, negate, reciprocal, floor, ceil, round, sin, cos, tan, asin, acos, atan,
        sinh, cosh, asinh, acosh, atanh, sign
    alpha: for elu, celu (1), selu (1.6732632), hard_sigmoid (0.2); 0 means these
    beta: for selu (1.050701), hard_sigmoid (0.5); 0 means these
    """
    return add_layer("unary", (x,), name, {"function": function, "alpha": alpha, "beta": beta})


def flatten(x: Node, *, name: str | None = None) -> Node:
    """Each sample as one row.

    Shapes: (N,...) -> (N,I), I the product of the others
    """
    return add_layer("flatten", (x,), name, {})


def reshape(x: Node, *, shape: Sequence[int] | None = None, whole: bool | None = None, name: str | None = None) -> Node:
    """Each sample under another shape.

    Shapes: (N,...) -> (N,...) of as many elements
    shape: shape of one sample; a -1 is inferred
    whole: shape is the whole output's, including the batch
    """
    return add_layer("reshape", (x,), name, {"shape": shape, "whole": whole})


def add(a: Node, b: Node, *, name: str | None = None) -> Node:
    """Elementwise sum of two inputs.

    Shapes: (...), (...) -> (...)
    """
    return add_layer("add", (a, b), name, {})


def concat(*inputs: Node, axis: int | None = None, name: str | None = None) -> Node:
    """Inputs joined along an axis.

    Shapes: (N,A,...), (N,B,...), ... -> (N,A+B+...,...), or joined along another axis
    axis: axis to join along; -1 is the last (default 1)
    """
    return add_layer("concat", inputs, name, {"axis": axis})


def binary(
    *inputs: Node, function: str | None = None, scalar: float | None = None, scalar_first: bool | None = None,
    name: str | None = None,
) -> Node:
    """A function of two inputs, broadcast, or of one and a number.

    Shapes: (...), (...) -> (...), broadcast as NumPy's
    function: function of each pair: add, subtract, multiply, divide, power, minimum, maximum, prelu, remainder, modulo,
        bit_and, bit_or, bit_xor, shift_left, shift_right, equal, less, less_equal, greater, greater_equal, and, or, xor
    scalar: with one input: the other operand
    scalar_first: with one input: scalar op x instead of x op scalar
    """
    return add_layer("binary", inputs, name, {"function": function, "scalar": scalar, "scalar_first": scalar_first})


def select(*inputs: Node, name: str | None = None) -> Node:
    """One of two inputs, element by element, by a condition.

    Shapes: bool (...), (...), (...) -> (...), broadcast as NumPy's
    """
    return add_layer("select", inputs, name, {})


def reduce(
    x: Node, *, function: str | None = None, axes: Sequence[int] | None = None, keep: bool | None = None,
    name: str | None = None,
) -> Node:
    """Some axes reduced to one element.

    Shapes: (...) -> (...) without the axes that are folded, or with 1 in their place
    function: how the elements are combined: sum, mean, max, min, product, l1, l2, sum_squares, log_sum, log_sum_exp
    axes: axes to reduce, 0 being the batch, -1 the last; left out: all
    keep: the axes stay, with 1 element each
    """
    return add_layer("reduce", (x,), name, {"function": function, "axes": axes, "keep": keep})


def arg_reduce(
    x: Node, *, axis: int | None = None, smallest: bool | None = None, last: bool | None = None,
    keep: bool | None = None, name: str | None = None,
) -> Node:
    """Where the largest element along an axis is.

    Shapes: (...) -> int64 (...) without the axis, or with 1 in its place
    axis: axis to search along; -1 is the last (default 1)
    smallest: the smallest instead of the largest
    last: the last of equal elements instead of the first
    keep: the axis stays, with 1 element
    """
    return add_layer("arg_reduce", (x,), name, {"axis": axis, "smallest": smallest, "last": last, "keep": keep})


def gather(a: Node, b: Node, *, axis: int | None = None, name: str | None = None) -> Node:
    """Elements picked by their indices along an axis.

    Shapes: (A,...), integers (B...) -> (A,...) with the axis replaced by (B...)
    axis: axis to pick along; -1 is the last (default 1)
    """
    return add_layer("gather", (a, b), name, {"axis": axis})


def matmul(
    *inputs: Node, transpose_a: bool | None = None, transpose_b: bool | None = None, name: str | None = None,
) -> Node:
    """Products of matrices.

    Shapes: (...,m,k), (...,k,n) -> (...,m,n), leading axes broadcast as NumPy's
    transpose_a: the left matrices are transposed first
    transpose_b: the right matrices are transposed first
    """
    return add_layer("matmul", inputs, name, {"transpose_a": transpose_a, "transpose_b": transpose_b})


def conv_transpose2d(
    x: Node, *, filters: int | None = None, kernel: Pair | None = None, stride: Pair | None = None,
    padding: Pair | None = None, padding_extra: Pair | None = None, output_padding: Pair | None = None,
    dilation: Pair | None = None, groups: int | None = None, no_bias: bool | None = None, name: str | None = None,
) -> Node:
    """Transposed 2-D convolution.

    Shapes: (N,C,H,W) -> (N,K,P,Q), K = filters
    filters: output channels
    kernel: height and width of the kernel
    stride: distance between the kernel's positions in the output (default 1)
    padding: rows and columns cut off around the output
    padding_extra: more cut off below and right; less if negative
    output_padding: rows and columns added below and right, fewer than the stride
    dilation: distance between the kernel's elements (default 1)
    groups: groups of channels (default 1)
    no_bias: leave the bias out
    """
    return add_layer("conv_transpose2d", (x,), name, {
        "filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "padding_extra": padding_extra,
        "output_padding": output_padding, "dilation": dilation, "groups": groups, "no_bias": no_bias,
    })


def layer_norm(x: Node, *, axis: int | None = None, epsilon: float | None = None, name: str | None = None) -> Node:
    """Each sample's last axes normalised, scaled and shifted.

    Shapes: (...) -> (...)
    axis: first of the axes that are normalised; -1 is the last (default -1)
    epsilon: added to the variance (default 1e-05)
    """
    return add_layer("layer_norm", (x,), name, {"axis": axis, "epsilon": epsilon})


def rms_norm(x: Node, *, epsilon: float | None = None, name: str | None = None) -> Node:
    """Each row divided by the root of the mean of its squares.

    Shapes: (...) -> (...)
    epsilon: added to the mean of the squares (default 1e-05)
    """
    return add_layer("rms_norm", (x,), name, {"epsilon": epsilon})


def group_norm(x: Node, *, groups: int | None = None, epsilon: float | None = None, name: str | None = None) -> Node:
    """Groups of channels, or single ones, normalised, scaled and shifted.

    Shapes: (N,C,...) -> (N,C,...)
    groups: groups of channels; 0: as many as channels
    epsilon: added to the variance (default 1e-05)
    """
    return add_layer("group_norm", (x,), name, {"groups": groups, "epsilon": epsilon})


def lrn(
    x: Node, *, size: int | None = None, alpha: float | None = None, beta: float | None = None,
    bias: float | None = None, name: str | None = None,
) -> Node:
    """Each element divided by a mean over neighbouring channels.

    Shapes: (N,C,H,W) -> (N,C,H,W)
    size: channels in the window, half of them before
    alpha: weight of the mean square (default 0.0001)
    beta: exponent (default 0.75)
    bias: added to the weighted mean square (default 1)
    """
    return add_layer("lrn", (x,), name, {"size": size, "alpha": alpha, "beta": beta, "bias": bias})


def embedding(
    x: Node, *, vocabulary: int | None = None, units: int | None = None, deviation: float | None = None,
    name: str | None = None,
) -> Node:
    """A row of weights for each token.

    Shapes: tokens (N,...) -> (N,...,U), U = units
    vocabulary: number of different tokens (vocabulary size)
    units: elements for each token (embedding size)
    deviation: standard deviation of the initial weights (default 1)
    """
    return add_layer("embedding", (x,), name, {"vocabulary": vocabulary, "units": units, "deviation": deviation})


def position_embedding(x: Node, *, deviation: float | None = None, name: str | None = None) -> Node:
    """A learned vector added at each position.

    Shapes: (N,T,C) -> (N,T,C)
    deviation: standard deviation of the initial weights (default 0.02)
    """
    return add_layer("position_embedding", (x,), name, {"deviation": deviation})


def rotary_embedding(x: Node, *, base: float | None = None, name: str | None = None) -> Node:
    """Pairs of elements rotated by their position.

    Shapes: (...,T,D) -> (...,T,D)
    base: the slowest pair turns once in about 2 pi base positions (default 10000)
    """
    return add_layer("rotary_embedding", (x,), name, {"base": base})


def multi_head_attention(
    *inputs: Node, heads: int | None = None, causal: bool | None = None, no_bias: bool | None = None,
    dropout: float | None = None, rotary: bool | None = None, base: float | None = None, name: str | None = None,
) -> Node:
    """Self-attention of several heads, causal or masked.

    Shapes: (N,T,C), a mask that broadcasts to (N,heads,T,T) -> (N,T,C)
    heads: heads, which share the channels equally
    causal: a position attends only to itself and those before it
    no_bias: leave both biases out
    dropout: share of the probabilities that is dropped while training
    rotary: queries and keys are rotated by their position
    base: base of the rotary positions (default 10000)
    """
    return add_layer("multi_head_attention", inputs, name, {
        "heads": heads, "causal": causal, "no_bias": no_bias, "dropout": dropout, "rotary": rotary, "base": base,
    })


def lstm(
    *inputs: Node, units: int | None = None, last: bool | None = None, reverse: bool | None = None,
    no_bias: bool | None = None, name: str | None = None,
) -> Node:
    """Long short-term memory over the positions of a sequence.

    Shapes: (N,T,I), first states (N,U), cells (N,U) -> (N,T,U), or with last (N,U), U = units
    units: size of the state, which is the output
    last: the output is only the state after the last step
    reverse: steps go from the last position to the first
    no_bias: leave both biases out
    """
    return add_layer("lstm", inputs, name, {"units": units, "last": last, "reverse": reverse, "no_bias": no_bias})


def gru(
    *inputs: Node, units: int | None = None, last: bool | None = None, reverse: bool | None = None,
    no_bias: bool | None = None, name: str | None = None,
) -> Node:
    """Gated recurrent units over the positions of a sequence.

    Shapes: (N,T,I), first states (N,U) -> (N,T,U), or with last (N,U), U = units
    units: size of the state, which is the output
    last: the output is only the state after the last step
    reverse: steps go from the last position to the first
    no_bias: leave both biases out
    """
    return add_layer("gru", inputs, name, {"units": units, "last": last, "reverse": reverse, "no_bias": no_bias})


def top_k(
    x: Node, *, k: int | None = None, axis: int | None = None, smallest: bool | None = None, name: str | None = None,
) -> Node:
    """The largest elements along an axis, and where they are.

    Shapes: (...) -> (...) with k along the axis, int64 (...) of their indices: output 1
    k: how many
    axis: axis to search along; -1 is the last (default -1)
    smallest: the smallest instead of the largest
    """
    return add_layer("top_k", (x,), name, {"k": k, "axis": axis, "smallest": smallest})


def resize(
    x: Node, *, axes: Sequence[int] | None = None, sizes: Sequence[int] | None = None, scale: float | None = None,
    mode: str | None = None, coordinates: str | None = None, rounding: str | None = None, cubic: float | None = None,
    start: float | None = None, end: float | None = None, extrapolates: bool | None = None,
    outside: float | None = None, antialias: bool | None = None, exclude_outside: bool | None = None,
    name: str | None = None,
) -> Node:
    """Axes enlarged or shrunk.

    Shapes: (N,C,H,W) -> (N,C,P,Q), or of other axes
    axes: axes to resize, 0 being the batch, -1 the last; left out: all from 2 on
    sizes: size of each; left out: from scale
    scale: factor for all of them
    mode: how an element is interpolated: nearest, linear, cubic
    coordinates: how positions map to the input: half_pixel, align_corners, asymmetric, pytorch_half_pixel,
        half_pixel_symmetric, crop
    rounding: which element is nearest: half_down, half_up, down, up
    cubic: parameter of Keys's kernel (default -0.75)
    start: crop: its start, as a fraction of the axis
    end: crop: its end (default 1)
    extrapolates: elements outside of the input are `outside`, not its last element
    outside: value of those elements
    antialias: shrinking averages over all elements that it covers
    exclude_outside: elements beyond the ends have weight 0
    """
    return add_layer("resize", (x,), name, {
        "axes": axes, "sizes": sizes, "scale": scale, "mode": mode, "coordinates": coordinates, "rounding": rounding,
        "cubic": cubic, "start": start, "end": end, "extrapolates": extrapolates, "outside": outside,
        "antialias": antialias, "exclude_outside": exclude_outside,
    })


def value(
    model: _sdlf.Model, *, shape: Sequence[int] | None = None, dtype: str | None = None, trainable: bool | None = None,
    name: str | None = None,
) -> Node:
    """A value that belongs to the network.

    Shapes: -> shape
    shape: shape of the value, which has no batch
    dtype: element type; float is the network's own: float, int32, int64, uint8, int8, bool
    trainable: trained; only floats
    """
    return add_source("value", model, name, {"shape": shape, "dtype": dtype, "trainable": trainable})


def cast(x: Node, *, dtype: str | None = None, name: str | None = None) -> Node:
    """Another element type.

    Shapes: (...) -> (...)
    dtype: element type of the output; float is the network's own: float, int32, int64, uint8, int8, bool
    """
    return add_layer("cast", (x,), name, {"dtype": dtype})


def dynamic_quantize(x: Node, *, name: str | None = None) -> Node:
    """Floats quantised to uint8 by their range.

    Shapes: (...) -> uint8 (...); scale () and zero point () are outputs 1 and 2
    """
    return add_layer("dynamic_quantize", (x,), name, {})


def transpose(x: Node, *, order: Sequence[int] | None = None, name: str | None = None) -> Node:
    """Axes in another order.

    Shapes: (...) -> (...) in another order
    order: input axis of each output axis, 0 being the batch; left out, they are reversed
    """
    return add_layer("transpose", (x,), name, {"order": order})


def slice(
    x: Node, *, axes: Sequence[int] | None = None, start: Sequence[int] | None = None, end: Sequence[int] | None = None,
    step: Sequence[int] | None = None, name: str | None = None,
) -> Node:
    """A part along some axes.

    Shapes: (...) -> (...), shorter along the axes
    axes: axes to slice, 0 being the batch, -1 the last
    start: first index along each
    end: first index along each that is left out
    step: step of the slice, not 0; left out: 1
    """
    return add_layer("slice", (x,), name, {"axes": axes, "start": start, "end": end, "step": step})


def pad(
    x: Node, *, before: Sequence[int] | None = None, after: Sequence[int] | None = None, value: float | None = None,
    mode: str | None = None, name: str | None = None,
) -> Node:
    """A border around some axes.

    Shapes: (...) -> (...), longer along the axes
    before: elements before each axis, the batch first; negative: fewer
    after: elements after each axis
    value: their value, if constant
    mode: a constant, or how x is extended: constant, edge, reflect, wrap
    """
    return add_layer("pad", (x,), name, {"before": before, "after": after, "value": value, "mode": mode})


def expand(
    x: Node, *, shape: Sequence[int] | None = None, samples: bool | None = None, name: str | None = None,
) -> Node:
    """Broadcast to a larger shape.

    Shapes: (...) -> (...), broadcast with shape as NumPy's
    shape: shape to broadcast to, the batch included
    samples: the shape is one sample's: the batch comes before it
    """
    return add_layer("expand", (x,), name, {"shape": shape, "samples": samples})


def tile(x: Node, *, repeats: Sequence[int] | None = None, name: str | None = None) -> Node:
    """Repeated along its axes.

    Shapes: (...) -> (...), each axis times its repeats
    repeats: repeats along each axis, the batch first
    """
    return add_layer("tile", (x,), name, {"repeats": repeats})


def depth_to_space(x: Node, *, block: int | None = None, mode: str | None = None, name: str | None = None) -> Node:
    """Blocks of pixels from channels.

    Shapes: (N,C,H,W) -> (N,C/b^2,H b,W b), b = block
    block: side of a block of pixels
    mode: order of the channels: block, then channel (dcr), or channel, then block (crd): dcr, crd
    """
    return add_layer("depth_to_space", (x,), name, {"block": block, "mode": mode})


def space_to_depth(x: Node, *, block: int | None = None, mode: str | None = None, name: str | None = None) -> Node:
    """Channels from blocks of pixels.

    Shapes: (N,C,H,W) -> (N,C b^2,H/b,W/b), b = block
    block: side of a block of pixels
    mode: order of the channels: block, then channel (dcr), or channel, then block (crd): dcr, crd
    """
    return add_layer("space_to_depth", (x,), name, {"block": block, "mode": mode})


def softmax(x: Node, *, axis: int | None = None, name: str | None = None) -> Node:
    """Probabilities along an axis.

    Shapes: (...) -> (...)
    axis: axis of the classes; -1 is the last (default 1)
    """
    return add_layer("softmax", (x,), name, {"axis": axis})


def log_softmax(x: Node, *, axis: int | None = None, name: str | None = None) -> Node:
    """Logarithms of probabilities along an axis.

    Shapes: (...) -> (...)
    axis: axis of the classes; -1 is the last (default 1)
    """
    return add_layer("log_softmax", (x,), name, {"axis": axis})


def softmax_cross_entropy(*inputs: Node, smoothing: float | None = None, name: str | None = None) -> Node:
    """Mean cross-entropy of logits against labels: a loss.

    Shapes: logits (N,C,...), labels int32 (N,...), weights (N,...) -> loss (1)
    smoothing: share of the target that is spread over all classes
    """
    return add_layer("softmax_cross_entropy", inputs, name, {"smoothing": smoothing})


def mse(a: Node, b: Node, *, name: str | None = None) -> Node:
    """Mean squared difference from float targets: a loss.

    Shapes: (N,...), targets (N,...) -> loss (1)
    """
    return add_layer("mse", (a, b), name, {})


def mae(a: Node, b: Node, *, name: str | None = None) -> Node:
    """Mean absolute difference from float targets: a loss.

    Shapes: (N,...), targets (N,...) -> loss (1)
    """
    return add_layer("mae", (a, b), name, {})


def huber(a: Node, b: Node, *, delta: float | None = None, name: str | None = None) -> Node:
    """Huber loss against float targets: squared where small, linear beyond.

    Shapes: (N,...), targets (N,...) -> loss (1)
    delta: difference from which on the loss is linear (default 1)
    """
    return add_layer("huber", (a, b), name, {"delta": delta})


def bce_with_logits(a: Node, b: Node, *, name: str | None = None) -> Node:
    """Binary cross-entropy of logits against targets from 0 to 1: a loss.

    Shapes: logits (N,...), targets (N,...) -> loss (1)
    """
    return add_layer("bce_with_logits", (a, b), name, {})
