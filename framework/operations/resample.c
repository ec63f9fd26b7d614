/* SPDX-License-Identifier: MIT */
/* resample, resample_backward: enlarging, shrinking and padding along an axis. Contracts: <sdlf/operation.h>. */
#include "framework/operations/check.h"
#include "framework/operations/operations.h"

/* y has x's shape except for the axis. */
static sdlf_status check_resample(const sdlf_operation *operation, const sdlf_tensor *x, const sdlf_tensor *y)
{
    const sdlf_resample_options *options = &operation->resample;
    sdlf_check check = {.operation = operation};
    sdlf_expect(&check, (unsigned)options->mode < SDLF_RESAMPLE_MODE_COUNT, "%d is not a valid mode",
                (int)options->mode);
    sdlf_expect(&check, (unsigned)options->coordinates < SDLF_RESAMPLE_COORDINATES_COUNT,
                "%d is not a valid kind of coordinates", (int)options->coordinates);
    sdlf_expect(&check, (unsigned)options->rounding < SDLF_RESAMPLE_ROUNDING_COUNT, "%d is not a valid rounding",
                (int)options->rounding);
    sdlf_expect_axis(&check, options->axis, x);
    bool weighs = options->mode == SDLF_RESAMPLE_LINEAR || options->mode == SDLF_RESAMPLE_CUBIC;
    if (weighs || options->extrapolates || operation->kind == SDLF_RESAMPLE_BACKWARD) sdlf_expect_floating(&check, x);
    if (options->mode <= SDLF_RESAMPLE_CUBIC)
        sdlf_expect(&check, options->scale > 1e-9 && options->scale < 1e9, "scale is %g, expected 1e-9 to 1e9",
                    options->scale);
    sdlf_expect_between(&check, "cubic", (double)options->cubic, -10, 10);
    sdlf_expect_rank(&check, y, x->shape.rank);
    if (check.status != SDLF_OK) return check.status;
    sdlf_shape shape = x->shape;
    shape.dim[options->axis] = y->shape.dim[options->axis];
    sdlf_expect(&check, x->shape.dim[options->axis] > 0 && x->shape.dim[options->axis] < INT64_MAX / 4,
                "operand 'x' has shape %s: axis %d holds nothing to make the output of",
                sdlf_shape_print(x->shape).text, options->axis);
    sdlf_expect_operand(&check, y, x->dtype, shape);
    return check.status;
}

static sdlf_status check_forward(const sdlf_operation *operation)
{
    return check_resample(operation, &operation->in[0], &operation->out[0]);
}

static int64_t forward_flops(const sdlf_operation *operation)
{
    static const int64_t each[SDLF_RESAMPLE_MODE_COUNT] = {0, 3, 7, 0, 0, 0};
    return sdlf_product(each[operation->resample.mode], sdlf_tensor_count(&operation->out[0]), 1, 1);
}

const sdlf_operation_class sdlf_resample_operation = {
    .name = "resample",
    .in = {{.name = "x"}},
    .out = {{.name = "y"}},
    .check = check_forward,
    .flops = forward_flops,
};

static sdlf_status check_backward(const sdlf_operation *operation)
{
    return check_resample(operation, &operation->out[0], &operation->in[0]);
}

static int64_t backward_flops(const sdlf_operation *operation)
{
    return sdlf_product(4, sdlf_tensor_count(&operation->in[0]), 1, 1);
}

const sdlf_operation_class sdlf_resample_backward_operation = {
    .name = "resample_backward",
    .in = {{.name = "dy"}},
    .out = {{.name = "dx"}},
    .check = check_backward,
    .flops = backward_flops,
};
