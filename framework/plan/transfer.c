/* SPDX-License-Identifier: MIT */
/* Transfers between the host and a plan's buffers in any space. */
#include "framework/plan/plan_internal.h"

#include <string.h>

sdlf_status plan_upload(sdlf_plan *plan, int buffer, int64_t offset, const void *host, int64_t bytes)
{
    const plan_buffer *target = &plan->buffers[buffer];
    if (target->memory == NULL || target->memory == host || bytes == 0) return SDLF_OK;
    char *to = (char *)target->memory + offset;
    if (plan_is_host_space(plan, target->space)) {
        memcpy(to, host, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[target->space].calculator;
    return calculator->type->upload(calculator, to, host, bytes);
}

sdlf_status plan_download(sdlf_plan *plan, int buffer, int64_t offset, void *host, int64_t bytes)
{
    const plan_buffer *source = &plan->buffers[buffer];
    if (source->memory == NULL || source->memory == host || bytes == 0) return SDLF_OK;
    const char *from = (const char *)source->memory + offset;
    if (plan_is_host_space(plan, source->space)) {
        memcpy(host, from, (size_t)bytes);
        return SDLF_OK;
    }
    sdlf_calculator *calculator = plan->spaces[source->space].calculator;
    return calculator->type->download(calculator, host, from, bytes);
}

/* Copies the contiguous pieces of an operand in host memory, from axis `axis` on, to or from the packed elements at
 * `packed`. Returns the end of these. */
static char *move_pieces(const sdlf_tensor *x, int axis, char *at, char *packed, bool from_packed)
{
    int64_t size = (int64_t)sdlf_dtype_size(x->dtype);
    sdlf_tensor piece = *x;
    piece.shape.rank = x->shape.rank - axis;
    for (int i = axis; i < x->shape.rank; i++) {
        piece.shape.dim[i - axis] = x->shape.dim[i];
        piece.stride[i - axis] = x->stride[i];
    }
    if (sdlf_tensor_is_contiguous(&piece)) {
        int64_t bytes = sdlf_tensor_bytes(&piece);
        memcpy(from_packed ? at : packed, from_packed ? packed : at, (size_t)bytes);
        return packed + bytes;
    }
    for (int64_t i = 0; i < x->shape.dim[axis]; i++)
        packed = move_pieces(x, axis + 1, at + i * x->stride[axis] * size, packed, from_packed);
    return packed;
}

sdlf_status plan_upload_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, const void *host)
{
    if (sdlf_tensor_is_contiguous(tensor))
        return plan_upload(plan, tensor->buffer, tensor->offset, host, sdlf_tensor_bytes(tensor));
    move_pieces(tensor, 0, tensor->data, (char *)host, true);
    return SDLF_OK;
}

sdlf_status plan_download_tensor(sdlf_plan *plan, const sdlf_tensor *tensor, void *host)
{
    if (sdlf_tensor_is_contiguous(tensor))
        return plan_download(plan, tensor->buffer, tensor->offset, host, sdlf_tensor_bytes(tensor));
    move_pieces(tensor, 0, tensor->data, host, false);
    return SDLF_OK;
}

sdlf_status plan_set_control(sdlf_plan *plan, plan_control control, double value)
{
    for (int i = 0; i < plan->control_buffer_count; i++) {
        const plan_buffer *buffer = &plan->buffers[plan->control_buffers[i]];
        if (buffer->control != (int)control) continue;
        union {
            float f;
            double d;
            int64_t i;
        } bits;
        if (buffer->dtype == SDLF_INT64)
            bits.i = (int64_t)value;
        else if (buffer->dtype == SDLF_FLOAT32)
            bits.f = (float)value;
        else
            bits.d = value;
        sdlf_status status = plan_upload(plan, plan->control_buffers[i], 0, &bits, buffer->bytes);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
}
