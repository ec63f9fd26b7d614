# SPDX-License-Identifier: MIT
"""The function that draws the cases of each operator, and the opsets to test."""
import onnx

from operators import elements, products, sampling, shapes, windows

FIRST, LAST = 7, 22

FAMILIES = {
    windows.conv: "Conv ConvTranspose",
    windows.pool: "MaxPool AveragePool",
    windows.global_pool: "GlobalAveragePool GlobalMaxPool GlobalLpPool",
    products.gemm: "Gemm",
    products.matmul: "MatMul",
    products.batch_norm: "BatchNormalization",
    products.layer_norm: "LayerNormalization",
    products.instance_norm: "InstanceNormalization",
    products.group_norm: "GroupNormalization",
    products.lrn: "LRN",
    elements.unary: "Relu LeakyRelu Elu Selu Celu Gelu Mish Softplus Softsign HardSigmoid HardSwish Sigmoid Tanh Erf Sqrt "
                    "Exp Log Abs Neg Reciprocal Floor Ceil Round Identity",
    elements.prelu: "PRelu",
    elements.clip: "Clip",
    elements.softmax: "Softmax LogSoftmax",
    elements.binary: "Add Sub Mul Div Pow Equal Greater Less GreaterOrEqual LessOrEqual And Or Xor",
    elements.many: "Min Max Mean Sum",
    shapes.concat: "Concat",
    shapes.split: "Split",
    shapes.slice_: "Slice",
    shapes.pad: "Pad",
    shapes.view: "Flatten Reshape Transpose Squeeze Unsqueeze",
    shapes.spread: "Expand Tile",
    elements.dropout: "Dropout",
    shapes.shape_of: "Shape Size",
    shapes.constant_of_shape: "ConstantOfShape",
    sampling.gather: "Gather",
    elements.cast: "Cast",
    elements.where: "Where",
    sampling.reduction: "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
                        "ReduceSumSquare",
    sampling.arg: "ArgMax ArgMin",
    sampling.top_k: "TopK",
    shapes.range_: "Range",
    sampling.resize: "Resize Upsample",
    shapes.depth: "DepthToSpace SpaceToDepth",
    elements.quantize: "QuantizeLinear DequantizeLinear",
}


def versions(kind):
    """The opsets from 7 to 22 that introduce a version of the operator."""
    every = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == kind and s.domain == ""]
    starts = sorted(s.since_version for s in every if s.since_version <= LAST)
    found = {max(FIRST, since) for since in starts}
    if starts and starts[0] > FIRST:
        found.discard(FIRST)
    return sorted(v for v in found if not onnx.defs.get_schema(kind, max_inclusive_version=v).deprecated)
