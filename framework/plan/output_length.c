/* SPDX-License-Identifier: MIT */
/* Outputs whose length depends on the data: reading the valid part of the buffer that a run fills. */
#include <inttypes.h>
#include <string.h>

#include "framework/model_internal.h"
#include "framework/plan/plan_internal.h"
#include "framework/require.h"

static sdlf_status read_length(sdlf_plan *plan, const model_output *output, int64_t most, int64_t *length)
{
    const char *name = plan->model->outputs[output->length].name;
    sdlf_status status = sdlf_plan_read(plan, name, length, SDLF_INT64, (int64_t)sizeof *length);
    if (status != SDLF_OK || (*length >= 0 && *length <= most)) return status;
    return sdlf_fail(SDLF_ERROR_NUMERIC,
                     "output '%s' has at most %" PRId64 " elements along axis %d, and '%s' says %" PRId64, output->name,
                     most, output->axis, name, *length);
}

sdlf_status sdlf_plan_trim(sdlf_plan *plan, const char *output, sdlf_tensor *host)
{
    SDLF_REQUIRE(plan);
    SDLF_REQUIRE(output);
    SDLF_REQUIRE(host);
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_output(plan, output, &binding);
    if (status != SDLF_OK) return status;
    if (!sdlf_shape_equal(binding.tensor.shape, host->shape) || binding.tensor.dtype != host->dtype)
        return sdlf_fail(SDLF_ERROR_SHAPE, "output '%s' is %s %s, found %s %s", output,
                         sdlf_dtype_name(binding.tensor.dtype), sdlf_shape_print(binding.tensor.shape).text,
                         sdlf_dtype_name(host->dtype), sdlf_shape_print(host->shape).text);
    const model_output *which = NULL;
    for (int i = 0; i < plan->model->output_count; i++)
        if (strcmp(plan->model->outputs[i].name, output) == 0) which = &plan->model->outputs[i];
    if (which == NULL || which->length < 0 || which->axis >= host->shape.rank) return SDLF_OK;
    int64_t most = host->shape.dim[which->axis], length = 0;
    status = read_length(plan, which, most, &length);
    if (status != SDLF_OK) return status;
    int64_t outer = sdlf_shape_span(host->shape, 0, which->axis);
    int64_t inner = sdlf_shape_span(host->shape, which->axis + 1, host->shape.rank);
    size_t row = (size_t)inner * sdlf_dtype_size(host->dtype);
    char *data = host->data;
    for (int64_t i = 1; i < outer; i++)
        memmove(data + (size_t)(i * length) * row, data + (size_t)(i * most) * row, (size_t)length * row);
    sdlf_shape shape = host->shape;
    shape.dim[which->axis] = length;
    *host = sdlf_tensor_view(host->dtype, shape, data);
    return SDLF_OK;
}
