"""Layers as objects, for lists: Model.sequential(shape, [Conv2d(filters=32, kernel=3), ReLU(), ...]). Made by python/tools/generate_layers.py.

An object is called with the nodes that the function of sdlf.layers takes, and adds a layer each time.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import layers
from ._add import Layer, Pair


class Conv2d(Layer):
    """2-D convolution with groups, stride, padding and dilation.

    filters: output channels
    kernel: height and width of the kernel
    stride: steps between windows (default 1)
    padding: zeros around the image
    padding_extra: more zeros below and right; fewer if negative
    dilation: distance between the kernel's elements (default 1)
    groups: groups of channels; as many as channels: depthwise (default 1)
    no_bias: leave the bias out
    initializer: how the weight starts; he_uniform by default: default, zero, one, he_uniform, he_normal,
        xavier_uniform, xavier_normal, lecun_uniform, uniform, normal
    """

    def __init__(
        self, *, filters: int | None = None, kernel: Pair | None = None, stride: Pair | None = None,
        padding: Pair | None = None, padding_extra: Pair | None = None, dilation: Pair | None = None,
        groups: int | None = None, no_bias: bool | None = None, initializer: str | None = None, name: str | None = None,
    ):
        super().__init__(layers.conv2d, name, {
            "filters": filters, "kernel": kernel, "stride": stride, "padding": padding, "padding_extra": padding_extra,
            "dilation": dilation, "groups": groups, "no_bias": no_bias, "initializer": initializer,
        })


class MaxPool2d(Layer):
    """The largest value of each window.

    window: height and width of the window
    stride: steps between windows; the window by default
    padding: a border that never wins
    padding_extra: more border below and right; less if negative
    dilation: distance between the window's elements (default 1)
    ties: who gets the gradient of equal maxima: share, first
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
    """The mean of each window.

    window: height and width of the window
    stride: steps between windows; the window by default
    padding: a border of zeros
    padding_extra: more border below and right; less if negative
    count_padding: the border counts in the mean
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
    """The mean of each channel."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.global_avg_pool2d, name, {})


class Linear(Layer):
    """Each output a weighted sum of all inputs.

    units: outputs of a sample
    no_bias: leave the bias out
    initializer: how the weight starts; he_uniform by default: default, zero, one, he_uniform, he_normal,
        xavier_uniform, xavier_normal, lecun_uniform, uniform, normal
    axis: where the inputs of an output begin; -1: with the last axis, for each token by itself (default 1)
    """

    def __init__(
        self, units: int | None = None, *, no_bias: bool | None = None, initializer: str | None = None,
        axis: int | None = None, name: str | None = None,
    ):
        super().__init__(layers.fully_connected, name, {
            "units": units, "no_bias": no_bias, "initializer": initializer, "axis": axis,
        })


class GraphConv(Layer):
    """Each node a weighted sum over its neighbours, times a matrix.

    units: outputs of a node
    no_bias: leave the bias out
    no_decay: weight decay leaves the weight alone
    initializer: how the weight starts; xavier_uniform by default: default, zero, one, he_uniform, he_normal,
        xavier_uniform, xavier_normal, lecun_uniform, uniform, normal
    """

    def __init__(
        self, *, units: int | None = None, no_bias: bool | None = None, no_decay: bool | None = None,
        initializer: str | None = None, name: str | None = None,
    ):
        super().__init__(layers.graph_conv, name, {
            "units": units, "no_bias": no_bias, "no_decay": no_decay, "initializer": initializer,
        })


class BatchNorm2d(Layer):
    """Each channel normalised, scaled and shifted.

    epsilon: added to the variance (default 1e-05)
    momentum: weight of the newest batch in the running statistics (default 0.1)
    """

    def __init__(self, *, epsilon: float | None = None, momentum: float | None = None, name: str | None = None):
        super().__init__(layers.batch_norm2d, name, {"epsilon": epsilon, "momentum": momentum})


class Dropout(Layer):
    """Zeroes elements at random while training.

    probability: share of the elements that become zero
    """

    def __init__(self, probability: float | None = None, *, name: str | None = None):
        super().__init__(layers.dropout, name, {"probability": probability})


class ReLU(Layer):
    """Max(x, 0)."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.relu, name, {})


class ReLU6(Layer):
    """Min(max(x, 0), 6)."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.relu6, name, {})


class Clip(Layer):
    """Min(max(x, low), high).

    low: smallest output
    high: largest output
    """

    def __init__(self, *, low: float | None = None, high: float | None = None, name: str | None = None):
        super().__init__(layers.clip, name, {"low": low, "high": high})


class LeakyReLU(Layer):
    """X, or slope x where x is negative.

    slope: slope of the negative side (default 0.01)
    """

    def __init__(self, *, slope: float | None = None, name: str | None = None):
        super().__init__(layers.leaky_relu, name, {"slope": slope})


class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.sigmoid, name, {})


class Tanh(Layer):
    """Hyperbolic tangent."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.tanh, name, {})


class Unary(Layer):
    """A function of each element.

    function: what is computed of each element: silu, hard_swish, elu, selu, celu, gelu, gelu_tanh, mish, softplus,
        softsign, hard_sigmoid, erf, sqrt, exp, log, abs, negate, reciprocal, floor, ceil, round
    alpha: of elu, celu (1), selu (1.6732632), hard_sigmoid (0.2); 0 stands for these
    beta: of selu (1.050701), hard_sigmoid (0.5); 0 stands for these
    """

    def __init__(
        self, *, function: str | None = None, alpha: float | None = None, beta: float | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.unary, name, {"function": function, "alpha": alpha, "beta": beta})


class Flatten(Layer):
    """Each sample as one row."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.flatten, name, {})


class Reshape(Layer):
    """Each sample under another shape.

    shape: shape of one sample; a -1 is worked out
    whole: shape is the whole output's, batch and all
    """

    def __init__(self, *, shape: Sequence[int] | None = None, whole: bool | None = None, name: str | None = None):
        super().__init__(layers.reshape, name, {"shape": shape, "whole": whole})


class Add(Layer):
    """Elementwise sum of two inputs."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.add, name, {})


class Concat(Layer):
    """Inputs joined along an axis.

    axis: axis to join along; -1 is the last (default 1)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.concat, name, {"axis": axis})


class Binary(Layer):
    """A function of two inputs, broadcast, or of one and a number.

    function: what is computed of each pair: add, subtract, multiply, divide, power, minimum, maximum, prelu, equal,
        less, less_equal, greater, greater_equal, and, or, xor
    scalar: with one input: the other operand
    scalar_first: with one input: scalar op x instead of x op scalar
    """

    def __init__(
        self, *, function: str | None = None, scalar: float | None = None, scalar_first: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.binary, name, {"function": function, "scalar": scalar, "scalar_first": scalar_first})


class Select(Layer):
    """One of two inputs, element by element, as a condition says."""

    def __init__(self, *, name: str | None = None):
        super().__init__(layers.select, name, {})


class Reduce(Layer):
    """Some axes folded to one number.

    function: what is made of the elements: sum, mean, max, min, product, l1, l2, sum_squares, log_sum, log_sum_exp
    axes: axes that are folded, 0 being the batch, -1 the last; left out: all
    keep: the axes stay, with 1 element each
    """

    def __init__(
        self, *, function: str | None = None, axes: Sequence[int] | None = None, keep: bool | None = None,
        name: str | None = None,
    ):
        super().__init__(layers.reduce, name, {"function": function, "axes": axes, "keep": keep})


class ArgReduce(Layer):
    """Where the largest element along an axis is.

    axis: axis to search along; -1 is the last (default 1)
    smallest: the smallest instead of the largest
    last: of equal ones the last instead of the first
    keep: the axis stays, with 1 element
    """

    def __init__(
        self, *, axis: int | None = None, smallest: bool | None = None, last: bool | None = None,
        keep: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.arg_reduce, name, {"axis": axis, "smallest": smallest, "last": last, "keep": keep})


class Gather(Layer):
    """Elements picked by their indices along an axis.

    axis: axis to pick along; -1 is the last (default 1)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.gather, name, {"axis": axis})


class Matmul(Layer):
    """Products of matrices.

    transpose_a: the left matrices are turned first
    transpose_b: the right matrices are turned first
    """

    def __init__(self, *, transpose_a: bool | None = None, transpose_b: bool | None = None, name: str | None = None):
        super().__init__(layers.matmul, name, {"transpose_a": transpose_a, "transpose_b": transpose_b})


class ConvTranspose2d(Layer):
    """Transposed 2-D convolution.

    filters: output channels
    kernel: height and width of the kernel
    stride: distance between the kernel's places in the output (default 1)
    padding: rows and columns cut off around the output
    padding_extra: more cut off below and right; less if negative
    output_padding: rows and columns added below and right, fewer than the stride
    dilation: distance between the kernel's elements (default 1)
    groups: groups of channels (default 1)
    no_bias: leave the bias out
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
    """Each sample's last axes normalised, scaled and shifted.

    axis: first of the axes that are normalised; -1 is the last (default -1)
    epsilon: added to the variance (default 1e-05)
    """

    def __init__(self, *, axis: int | None = None, epsilon: float | None = None, name: str | None = None):
        super().__init__(layers.layer_norm, name, {"axis": axis, "epsilon": epsilon})


class GroupNorm(Layer):
    """Groups of channels, or single ones, normalised, scaled and shifted.

    groups: groups of channels; 0: as many as channels
    epsilon: added to the variance (default 1e-05)
    """

    def __init__(self, *, groups: int | None = None, epsilon: float | None = None, name: str | None = None):
        super().__init__(layers.group_norm, name, {"groups": groups, "epsilon": epsilon})


class LRN(Layer):
    """Each element divided by a mean over neighbouring channels.

    size: channels that are looked at, half of them before
    alpha: weight of the mean square (default 0.0001)
    beta: exponent (default 0.75)
    bias: added to it (default 1)
    """

    def __init__(
        self, *, size: int | None = None, alpha: float | None = None, beta: float | None = None,
        bias: float | None = None, name: str | None = None,
    ):
        super().__init__(layers.lrn, name, {"size": size, "alpha": alpha, "beta": beta, "bias": bias})


class TopK(Layer):
    """The largest elements along an axis, and where they are.

    k: how many
    axis: axis to search along; -1 is the last (default -1)
    smallest: the smallest instead of the largest
    """

    def __init__(
        self, *, k: int | None = None, axis: int | None = None, smallest: bool | None = None, name: str | None = None,
    ):
        super().__init__(layers.top_k, name, {"k": k, "axis": axis, "smallest": smallest})


class Resize(Layer):
    """Axes enlarged or shrunk.

    axes: axes that are resized, 0 being the batch, -1 the last; left out: all from 2 on
    sizes: what becomes of each; left out: scale says
    scale: what all of them are stretched by
    mode: what an element is made of: nearest, linear, cubic
    coordinates: where it lies in the input: half_pixel, align_corners, asymmetric, pytorch_half_pixel,
        half_pixel_symmetric, crop
    rounding: which element is nearest: half_down, half_up, down, up
    cubic: parameter of Keys's kernel (default -0.75)
    start: crop: where it begins, as a part of the axis
    end: crop: where it ends (default 1)
    extrapolates: what lies outside of the input is `outside`, not its last element
    outside: what it is then
    antialias: shrinking looks at all elements that it leaves out
    exclude_outside: elements beyond the ends weigh nothing
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
    """Another element type.

    dtype: element type of the output; float is the network's own: float, int32, int64, uint8, int8, bool
    """

    def __init__(self, *, dtype: str | None = None, name: str | None = None):
        super().__init__(layers.cast, name, {"dtype": dtype})


class Transpose(Layer):
    """Axes in another order.

    order: input axis of each output axis, 0 being the batch; left out, they are reversed
    """

    def __init__(self, *, order: Sequence[int] | None = None, name: str | None = None):
        super().__init__(layers.transpose, name, {"order": order})


class Slice(Layer):
    """A part along some axes.

    axes: axes that are cut, 0 being the batch, -1 the last
    start: first index along each
    end: index along each that is no longer taken
    step: distance between what is taken, not 0; left out: 1
    """

    def __init__(
        self, *, axes: Sequence[int] | None = None, start: Sequence[int] | None = None,
        end: Sequence[int] | None = None, step: Sequence[int] | None = None, name: str | None = None,
    ):
        super().__init__(layers.slice, name, {"axes": axes, "start": start, "end": end, "step": step})


class Pad(Layer):
    """A border around some axes.

    before: elements before each axis, the batch first; negative: so many fewer
    after: elements behind each axis
    value: what they are, if constant
    mode: a constant, or how x goes on: constant, edge, reflect, wrap
    """

    def __init__(
        self, *, before: Sequence[int] | None = None, after: Sequence[int] | None = None, value: float | None = None,
        mode: str | None = None, name: str | None = None,
    ):
        super().__init__(layers.pad, name, {"before": before, "after": after, "value": value, "mode": mode})


class Expand(Layer):
    """Broadcast to a larger shape.

    shape: what to broadcast with, the batch included
    samples: the shape is one sample's: the batch comes before it
    """

    def __init__(self, *, shape: Sequence[int] | None = None, samples: bool | None = None, name: str | None = None):
        super().__init__(layers.expand, name, {"shape": shape, "samples": samples})


class Tile(Layer):
    """Repeated along its axes.

    repeats: times along each axis, the batch first
    """

    def __init__(self, *, repeats: Sequence[int] | None = None, name: str | None = None):
        super().__init__(layers.tile, name, {"repeats": repeats})


class DepthToSpace(Layer):
    """Blocks of pixels from channels.

    block: side of a block of pixels
    mode: order of the channels: block, then channel (dcr), or channel, then block (crd): dcr, crd
    """

    def __init__(self, *, block: int | None = None, mode: str | None = None, name: str | None = None):
        super().__init__(layers.depth_to_space, name, {"block": block, "mode": mode})


class SpaceToDepth(Layer):
    """Channels from blocks of pixels.

    block: side of a block of pixels
    mode: order of the channels: block, then channel (dcr), or channel, then block (crd): dcr, crd
    """

    def __init__(self, *, block: int | None = None, mode: str | None = None, name: str | None = None):
        super().__init__(layers.space_to_depth, name, {"block": block, "mode": mode})


class Softmax(Layer):
    """Probabilities along an axis.

    axis: axis of the classes; -1 is the last (default 1)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.softmax, name, {"axis": axis})


class LogSoftmax(Layer):
    """Logarithms of probabilities along an axis.

    axis: axis of the classes; -1 is the last (default 1)
    """

    def __init__(self, *, axis: int | None = None, name: str | None = None):
        super().__init__(layers.log_softmax, name, {"axis": axis})


class SoftmaxCrossEntropy(Layer):
    """Mean cross-entropy of logits against labels: a loss.

    smoothing: share of the target that is spread over all classes
    """

    def __init__(self, *, smoothing: float | None = None, name: str | None = None):
        super().__init__(layers.softmax_cross_entropy, name, {"smoothing": smoothing})
