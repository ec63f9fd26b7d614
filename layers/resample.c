/* SPDX-License-Identifier: MIT */
/* See resample.h. */
#include "layers/resample.h"

static sdlf_status one_axis(sdlf_layer_context *context, sdlf_operation_kind kind, const sdlf_resample_options *step,
                            int axis, sdlf_tensor from, sdlf_tensor to)
{
    sdlf_operation operation = {.kind = kind, .in = {from}, .out = {to}, .resample = *step};
    operation.resample.axis = axis;
    return sdlf_emit(context, &operation);
}

sdlf_status sdlf_layer_resample(sdlf_layer_context *context, sdlf_tensor x, sdlf_tensor y,
                                const sdlf_resample_options *steps, unsigned axes)
{
    sdlf_tensor now = x;
    sdlf_status status = SDLF_OK;
    if (axes == 0) return sdlf_layer_copy(context, x, y);
    for (int axis = 0; axes >> axis != 0 && status == SDLF_OK; axis++) {
        if (!(axes >> axis & 1)) continue;
        sdlf_shape shape = now.shape;
        shape.dim[axis] = y.shape.dim[axis];
        sdlf_tensor next = axes >> axis == 1 ? y : sdlf_scratch(context, x.dtype, shape);
        status = one_axis(context, SDLF_RESAMPLE, &steps[axis], axis, now, next);
        now = next;
    }
    return status;
}

sdlf_status sdlf_layer_resample_backward(sdlf_layer_context *context, sdlf_tensor dy, sdlf_tensor dx,
                                         const sdlf_resample_options *steps, unsigned axes)
{
    sdlf_tensor now = dy;
    sdlf_status status = SDLF_OK;
    if (!sdlf_tensor_present(&dx)) return SDLF_OK;
    if (axes == 0) return sdlf_layer_copy(context, dy, dx);
    for (int axis = dy.shape.rank - 1; axis >= 0 && status == SDLF_OK; axis--) {
        if (!(axes >> axis & 1)) continue;
        sdlf_shape shape = now.shape;
        shape.dim[axis] = dx.shape.dim[axis];
        bool done = (axes & ((1u << axis) - 1)) == 0;
        sdlf_tensor next = done ? dx : sdlf_scratch(context, dy.dtype, shape);
        status = one_axis(context, SDLF_RESAMPLE_BACKWARD, &steps[axis], axis, now, next);
        now = next;
    }
    return status;
}
