/* SPDX-License-Identifier: MIT */
/* Inference in float32: a fully connected layer whose weights are integers with scales in the file keeps them so
 * (weight-only quantisation), and its GEMM dequantises them as it reads (framework/operations/gemm_weight_only.h). In
 * the model they are floats, from which the integers are recovered: each block's weights are multiples of one scale.
 * Weights with a range of 16 are stored in 4 bits. */
#include "framework/operations/gemm_weight_only.h"

#include <stdlib.h>
#include <string.h>

#include "framework/plan/passes.h"

static bool is_candidate(const sdlf_plan *plan, const plan_step *step, plan_weight_only *w)
{
    const sdlf_operation *op = &step->operation;
    const sdlf_tensor *b = &op->in[1];
    const model_source *source = &plan->model->source;
    if (step->dead || op->kind != SDLF_GEMM || !op->gemm.transpose_b || op->gemm.transpose_a) return false;
    if (source->file == NULL || source->shared_scale == NULL || sdlf_gemm_is_weight_only(op)) return false;
    const plan_buffer *buffer = &plan->buffers[b->buffer];
    if (buffer->kind != BUFFER_PARAMETER || !buffer->constant || !plan_covers_buffer(plan, b) ||
        strcmp(step->calculator->space, SDLF_HOST_SPACE) != 0 || plan_count_readers(plan, b->buffer) != 1 ||
        step->calculator->type->kernel[SDLF_GEMM].supports == NULL)
        return false;
    *w = (plan_weight_only){.weight = buffer->parameter, .units = b->shape.dim[0], .inputs = b->shape.dim[1]};
    w->block = source->shared_scale(source->file, w->weight);
    if (w->block <= 0 || w->units < 1 || w->inputs < 1) return false;
    if (w->block > w->inputs) w->block = w->inputs;
    w->blocks = (w->inputs + w->block - 1) / w->block;
    return sdlf_gemm_block(w->inputs, w->blocks) == w->block;
}

static const float *block_of(const sdlf_plan *plan, const plan_weight_only *w, int64_t unit, int64_t block,
                             int64_t *count)
{
    const float *weight = plan->model->parameters[w->weight].value.data;
    int64_t first = block * w->block;
    *count = w->inputs - first < w->block ? w->inputs - first : w->block;
    return weight + unit * w->inputs + first;
}

void plan_release_scales(plan_weight_only *w)
{
    free(w->scale);
    free(w->zero);
    w->scale = w->zero = NULL;
}

/* Finds whether all blocks have a scale, and whether their integers fit 4 bits. Releases the values again: the plan
 * loads them once it is bound. */
static sdlf_status inspect_values(sdlf_plan *plan, plan_weight_only *w, bool *found)
{
    sdlf_status status = model_fetch_values(plan->model, w->weight);
    w->scale = malloc((size_t)(w->units * w->blocks) * sizeof *w->scale);
    w->zero = malloc((size_t)(w->units * w->blocks) * sizeof *w->zero);
    if (status == SDLF_OK && (w->scale == NULL || w->zero == NULL))
        status = sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    *found = w->halves = true;
    for (int64_t i = 0; status == SDLF_OK && i < w->units * w->blocks && *found; i++) {
        int64_t count;
        int low, high;
        double scale;
        const float *block = block_of(plan, w, i / w->blocks, i % w->blocks, &count);
        *found = plan_find_largest_scale(block, count, &scale, &low, &high);
        w->scale[i] = (float)scale;
        w->zero[i] = (float)-low;
        w->halves = w->halves && high - low < 16;
    }
    model_drop_values(plan->model, w->weight);
    return status;
}

/* *taken: the plan now owns w's scales. */
static sdlf_status replace(sdlf_plan *plan, int step, plan_weight_only *w, bool *taken)
{
    sdlf_operation op = plan->steps[step].operation;
    int64_t groups = (w->inputs + SDLF_GEMM_GROUP - 1) / SDLF_GEMM_GROUP;
    sdlf_shape scales = sdlf_shape(w->units, w->blocks);
    sdlf_shape integers = sdlf_shape(w->units, w->halves ? groups * (SDLF_GEMM_GROUP / 2) : w->inputs);
    op.in[1] = sdlf_tensor_view(w->halves ? SDLF_UINT8 : SDLF_INT8, integers, NULL);
    op.in[4] = sdlf_tensor_view(SDLF_FLOAT32, scales, NULL);
    if (w->halves) op.in[5] = op.in[4];
    if (sdlf_operation_check(&op) != SDLF_OK || !sdlf_calculator_supports(plan->steps[step].calculator, &op))
        return SDLF_OK;
    plan_weight_only *list = realloc(plan->weight_only, (size_t)(plan->weight_only_count + 1) * sizeof *list);
    if (list == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->weight_only = list;
    list[plan->weight_only_count] = *w;
    w = &list[plan->weight_only_count++];
    *taken = true;
    sdlf_status status = SDLF_OK;
    for (int i = 1; i < 6 && status == SDLF_OK; i++)
        if ((i == 1 || i > 3) && sdlf_tensor_present(&op.in[i]))
            status = plan_new_tensor(plan, BUFFER_DERIVED, op.in[i].dtype, op.in[i].shape, &op.in[i]);
    if (status != SDLF_OK) return status;
    w->integers = op.in[1].buffer, w->scales = op.in[4].buffer, w->zeros = op.in[5].buffer;
    for (int i = 1; i < 6; i++)
        if ((i == 1 || i > 3) && sdlf_tensor_present(&op.in[i]))
            plan->buffers[op.in[i].buffer].weight_only = plan->weight_only_count;
    return plan_replace_operation(plan, step, &op);
}

sdlf_status plan_fuse_weight_only(sdlf_plan *plan)
{
    sdlf_status status = SDLF_OK;
    const sdlf_plan_options *options = &plan->options;
    if (options->mode != SDLF_INFER || options->dtype != SDLF_FLOAT32 || !options->consume_parameters) return SDLF_OK;
    for (int i = 0; i < plan->step_count && status == SDLF_OK; i++) {
        plan_weight_only w;
        bool found = is_candidate(plan, &plan->steps[i], &w);
        bool candidate = found, taken = false;
        if (found) status = inspect_values(plan, &w, &found);
        if (status == SDLF_OK && found) status = replace(plan, i, &w, &taken);
        if (candidate && !taken) plan_release_scales(&w);
    }
    return status;
}

/* ---- once memory is bound ---- */

/* Packs the integers of a block. */
static void pack(const plan_weight_only *w, const float *values, int64_t first, int64_t count, double scale, int zero,
                 uint8_t *row)
{
    for (int64_t i = 0; i < count; i++) {
        double whole = (double)values[i] / scale;
        int integer = (int)(whole < 0 ? whole - 0.5 : whole + 0.5) + zero;
        int64_t at = first + i, half = SDLF_GEMM_GROUP / 2;
        if (w->halves)
            row[at / SDLF_GEMM_GROUP * half + at % half] |=
                (uint8_t)(at % SDLF_GEMM_GROUP < half ? integer : integer << 4);
        else
            row[at] = (uint8_t)(int8_t)integer;
    }
}

sdlf_status plan_load_weight_only(sdlf_plan *plan, int buffer)
{
    const plan_buffer *to = &plan->buffers[buffer];
    plan_weight_only *w = &plan->weight_only[to->weight_only - 1];
    int64_t bytes = to->bytes / w->units;
    if (to->source == w->scales) return plan_upload(plan, buffer, 0, w->scale, to->bytes);
    if (to->source == w->zeros) return plan_upload(plan, buffer, 0, w->zero, to->bytes);
    sdlf_status status = model_fetch_values(plan->model, w->weight);
    uint8_t *row = malloc((size_t)bytes + 1);
    if (row == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    for (int64_t unit = 0; unit < w->units && status == SDLF_OK; unit++) {
        memset(row, 0, (size_t)bytes);
        for (int64_t g = 0; g < w->blocks; g++) {
            int64_t count, which = unit * w->blocks + g;
            const float *values = block_of(plan, w, unit, g, &count);
            pack(w, values, g * w->block, count, (double)w->scale[which], w->halves ? (int)w->zero[which] : 0, row);
        }
        status = plan_upload(plan, buffer, unit * bytes, row, bytes);
    }
    free(row);
    return status;
}
