/* SPDX-License-Identifier: MIT */
/* Diagnosis for files that leave the batch open: it is 1 unless set, and a constant may have been made for another one. */
#include "framework/formats/onnx/import/import.h"

#include <stdio.h>
#include <string.h>

/* Operators whose constants contain the batch if they are longer along its axis; those that broadcast, which align axes
 * at the last one; and those with indices along the axis of an attribute, or along several axes. */
static const char sizes[] = " Concat GatherElements Scatter ScatterElements TensorScatter ";
static const char broadcasting[] = " Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual "
                                   "Less LessOrEqual Max Mean Min Mod Mul Or PRelu Pow "
                                   "Sub Sum Where Xor ";
static const char places[] = " Gather GatherElements Scatter ScatterElements ";
static const char many_places[] = " GatherND ScatterND TensorScatter ";

static bool is_one(const onnx_context *c, const char *list)
{
    char wanted[64];
    int length = snprintf(wanted, sizeof wanted, " %s ", c->type->type);
    return length < (int)sizeof wanted && strstr(list, wanted) != NULL;
}

/* True if the constant has several times the length of x on x's batch axis. */
static bool holds_more(sdlf_shape constant, sdlf_shape x, int axis, bool from_last)
{
    int at = from_last ? axis - x.rank + constant.rank : axis;
    if (at < 0 || at >= constant.rank || (!from_last && constant.rank != x.rank)) return false;
    int64_t one = x.dim[axis], all = constant.dim[at];
    if (from_last && one == 1) return false; /* broadcasts, so it is not the cause */
    return one > 0 && all > one && all % one == 0;
}

/* True if its indices refer to that axis of input 0. */
static bool picks_along(const onnx_context *c, sdlf_shape x, int axis)
{
    if (is_one(c, many_places)) return true;
    const Onnx__AttributeProto *attribute = onnx_attribute(c, "axis");
    int64_t at = attribute != NULL ? attribute->i : 0;
    return is_one(c, places) && (at < 0 ? at + x.rank : at) == axis;
}

static bool may_mean_another(const onnx_context *c, sdlf_status status)
{
    const onnx_context reads = {.import = c->import};
    bool from_last = is_one(c, broadcasting);
    for (int i = 0; i < c->input_count; i++) {
        const onnx_value *x = c->input[i];
        int axis = x != NULL && x->kind == ONNX_FLOW ? onnx_batch_axis(&reads, x->flow) : -1;
        if (axis < 0) continue;
        for (int k = 0; k < c->input_count; k++) {
            if (!onnx_is_constant(c, k)) continue;
            if ((from_last || is_one(c, sizes)) &&
                holds_more(c->input[k]->tensor.shape, x->flow.shape, axis, from_last))
                return true;
            if (i == 0 && status == SDLF_ERROR_FORMAT && picks_along(c, x->flow.shape, axis)) return true;
        }
    }
    return false;
}

sdlf_status onnx_open_batch_say(onnx_context *c, sdlf_status status)
{
    char why[512];
    if (status == SDLF_OK || status == SDLF_ERROR_MEMORY || !c->import->open_batch || !may_mean_another(c, status))
        return status;
    snprintf(why, sizeof why, "%s", sdlf_error_message());
    return sdlf_fail(status,
                     "%s; the file leaves the batch open, and it is 1 by default: to use another, set it "
                     "(sdlf_onnx_options.batch, --batch)",
                     why);
}
