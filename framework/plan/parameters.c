/* SPDX-License-Identifier: MIT */
/* Parameters and states between a plan and its model: copies in other spaces, and what inference derives from them
 * (weights with normalisations and scales folded in, weights prepacked for a kernel). */
#include "framework/plan/passes.h"
#include "framework/require.h"

#include <stdlib.h>
#include <string.h>

/* Elements moved at a time: a parameter can be most of the available memory. */
enum { PIECE = 1 << 17 };

typedef struct room {
    double converted[PIECE]; /* in the copy's dtype */
    float read[PIECE];
} room;

static sdlf_tensor *model_tensor(const sdlf_plan *plan, const plan_buffer *buffer)
{
    sdlf_parameter *parameter = &plan->model->parameters[buffer->parameter];
    return buffer->kind == BUFFER_PARAMETER ? &parameter->value : &parameter->state[buffer->state];
}

bool plan_is_copy_of_model(const sdlf_plan *plan, const plan_buffer *buffer)
{
    return (buffer->kind == BUFFER_PARAMETER || buffer->kind == BUFFER_STATE) && buffer->offset >= 0 &&
           buffer->memory != NULL && buffer->memory != model_tensor(plan, buffer)->data;
}

/* Overwrites the model's values with those at `from`. Returns whether any bit changed. */
static bool store_values(float *to, sdlf_dtype dtype, const char *from, int64_t count)
{
    enum { BLOCK = 1024 };
    float block[BLOCK];
    bool changed = false;
    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t length = count - i < BLOCK ? count - i : BLOCK;
        sdlf_convert(SDLF_FLOAT32, block, dtype, from + (size_t)i * sdlf_dtype_size(dtype), length);
        changed = changed || memcmp(to + i, block, (size_t)length * sizeof *block) != 0;
        memcpy(to + i, block, (size_t)length * sizeof *block);
    }
    return changed;
}

/* Loads values of a parameter into a copy, piece by piece in the copy's dtype, straight from the file if they are still
 * there. */
static sdlf_status load_pieces(sdlf_plan *plan, int buffer, room *piece)
{
    const plan_buffer *to = &plan->buffers[buffer];
    bool left = model_reads_pieces(plan->model, to->parameter);
    const float *values = model_tensor(plan, to)->data;
    int64_t size = (int64_t)sdlf_dtype_size(to->dtype), total = to->bytes / size;
    sdlf_status status = SDLF_OK;
    for (int64_t first = 0; first < total && status == SDLF_OK; first += PIECE) {
        int64_t count = total - first < PIECE ? total - first : PIECE;
        const float *from = left ? piece->read : values + first;
        if (left) status = model_read_values(plan->model, to->parameter, first, count, piece->read);
        if (status == SDLF_OK && to->dtype != SDLF_FLOAT32)
            sdlf_convert(to->dtype, piece->converted, SDLF_FLOAT32, from, count);
        const void *ready = to->dtype == SDLF_FLOAT32 ? (const void *)from : piece->converted;
        if (status == SDLF_OK) status = plan_upload(plan, buffer, first * size, ready, count * size);
    }
    return status;
}

/* Loads the model's values into a copy. */
static sdlf_status load_values(sdlf_plan *plan, int buffer, room *piece)
{
    const plan_buffer *to = &plan->buffers[buffer];
    if (model_reads_pieces(plan->model, to->parameter)) return load_pieces(plan, buffer, piece);
    sdlf_status status = to->kind == BUFFER_PARAMETER ? model_fetch_values(plan->model, to->parameter) : SDLF_OK;
    if (status != SDLF_OK) return status;
    if (to->dtype != SDLF_FLOAT32) return load_pieces(plan, buffer, piece);
    return plan_upload(plan, buffer, 0, model_tensor(plan, to)->data, to->bytes);
}

/* Stores a copy's values in the model. */
static sdlf_status fetch_values(sdlf_plan *plan, int buffer, const sdlf_tensor *tensor, room *piece)
{
    sdlf_dtype dtype = plan->buffers[buffer].dtype;
    int64_t size = (int64_t)sdlf_dtype_size(dtype), total = sdlf_tensor_count(tensor);
    sdlf_status status = SDLF_OK;
    for (int64_t first = 0; first < total && status == SDLF_OK; first += PIECE) {
        int64_t count = total - first < PIECE ? total - first : PIECE;
        status = plan_download(plan, buffer, first * size, piece->converted, count * size);
        if (status == SDLF_OK &&
            store_values((float *)tensor->data + first, dtype, (const char *)piece->converted, count))
            model_note_change(plan->model);
    }
    return status;
}

static sdlf_status load_fold(sdlf_plan *plan, int buffer, room *piece)
{
    const plan_buffer *to = &plan->buffers[buffer];
    const plan_fold *fold = &plan->folds[to->fold];
    bool bias = to->source == fold->folded_bias;
    int64_t size = (int64_t)sdlf_dtype_size(to->dtype), total = to->bytes / size;
    int needed[PLAN_FOLDED];
    sdlf_status status = SDLF_OK;
    for (int i = plan_source_parameters(plan, to, needed) - 1; i >= 0 && status == SDLF_OK; i--)
        status = model_fetch_values(plan->model, needed[i]);
    for (int64_t first = 0; first < total && status == SDLF_OK; first += PIECE) {
        int64_t count = total - first < PIECE ? total - first : PIECE;
        const bool narrow = to->dtype == SDLF_FLOAT32;
        plan_compute_fold(plan, fold, bias, first, count, piece->converted);
        if (narrow) sdlf_convert(SDLF_FLOAT32, piece->read, SDLF_FLOAT64, piece->converted, count);
        status = plan_upload(plan, buffer, first * size, narrow ? (void *)piece->read : piece->converted, count * size);
    }
    return status;
}

/* ---- all of them ---- */

/* Loads or derives the buffer's content from the model, if it has any. */
static sdlf_status load_buffer(sdlf_plan *plan, int buffer, room *piece)
{
    const plan_buffer *to = &plan->buffers[buffer];
    if (plan_is_copy_of_model(plan, to)) return load_values(plan, buffer, piece);
    if (to->kind != BUFFER_DERIVED || to->memory == NULL) return SDLF_OK;
    if (to->weight_only > 0) return plan_load_weight_only(plan, buffer);
    return to->integers > 0 ? plan_load_integers(plan, buffer) : load_fold(plan, buffer, piece);
}

/* Loads the raw weights that a step prepacks, if they are raw: into their shared buffer, or into the model's own
 * memory. */
static sdlf_status load_raw(sdlf_plan *plan, sdlf_tensor *weights, room *piece)
{
    plan_buffer *buffer = &plan->buffers[weights->buffer];
    if (!buffer->raw) return SDLF_OK;
    if (buffer->offset >= 0) return load_buffer(plan, weights->buffer, piece);
    sdlf_status status = model_fetch_values(plan->model, buffer->parameter);
    buffer->memory = model_tensor(plan, buffer)->data;
    *weights = plan_bound(plan, *weights);
    buffer->memory = NULL; /* no other reader finds it there */
    return status;
}

/* Prepacks weights for their kernels. */
static sdlf_status prepare_weights(sdlf_plan *plan, const int *steps, int count, const int *taken, room *piece)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        plan_step *step = &plan->steps[steps[i]];
        sdlf_operation *operation = &step->operation;
        for (int j = 1; j < SDLF_MAX_INPUTS && status == SDLF_OK; j++) {
            if (plan_is_prepacked(operation, j)) status = load_raw(plan, &operation->in[j], piece);
        }
        if (status == SDLF_OK)
            status = sdlf_calculator_slot(step->calculator, operation)->prepare(step->calculator, operation);
        for (int j = 1; j < SDLF_MAX_INPUTS && status == SDLF_OK && taken != NULL; j++) {
            if (plan_is_prepacked(operation, j))
                plan_take_after(plan, taken, operation->in[j].buffer, plan->buffer_count + i);
        }
    }
    return status;
}

/* `parameters`: loads these too, not only what is derived from them. A plan that takes over its model's parameters
 * frees each after its last use. */
static sdlf_status load_all(sdlf_plan *plan, bool parameters, room *piece)
{
    int *taken = NULL, *steps = NULL, count = 0;
    sdlf_status status = plan_order_preparing(plan, &steps, &count);
    if (status == SDLF_OK && plan->options.consume_parameters) status = plan_find_taken(plan, steps, count, &taken);
    for (int i = 1; i < plan->buffer_count && status == SDLF_OK; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->raw || !(parameters || buffer->kind == BUFFER_DERIVED)) continue;
        status = load_buffer(plan, i, piece);
        if (status == SDLF_OK && taken != NULL) plan_take_after(plan, taken, i, i);
    }
    for (int i = 0; i < plan->weight_only_count && plan->options.consume_parameters; i++)
        plan_release_scales(&plan->weight_only[i]);
    if (status == SDLF_OK) status = prepare_weights(plan, steps, count, taken, piece);
    free(taken);
    free(steps);
    return status;
}

static sdlf_status fetch_all(sdlf_plan *plan, room *piece)
{
    sdlf_status status = SDLF_OK;
    for (int i = 1; i < plan->buffer_count && status == SDLF_OK; i++) {
        const plan_buffer *buffer = &plan->buffers[i];
        if (buffer->source != i || buffer->constant || !plan_is_copy_of_model(plan, buffer)) continue;
        status = fetch_values(plan, i, model_tensor(plan, buffer), piece);
    }
    return status;
}

/* True if anything is transferred piece by piece. */
static bool needs_piece(const sdlf_plan *plan)
{
    for (int i = 1; i < plan->buffer_count; i++) {
        if (plan->buffers[i].kind == BUFFER_DERIVED || plan_is_copy_of_model(plan, &plan->buffers[i])) return true;
    }
    return false;
}

typedef enum direction {
    STORE,
    LOAD,
    DERIVE, /* load derived buffers, but no parameters */
} direction;

static sdlf_status exchange_parameters(sdlf_plan *plan, direction to)
{
    room *piece = needs_piece(plan) ? malloc(sizeof *piece) : NULL;
    if (piece == NULL && needs_piece(plan))
        return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory to convert parameters in");
    sdlf_status status = to == STORE ? fetch_all(plan, piece) : load_all(plan, to == LOAD, piece);
    free(piece);
    return status;
}

/* ---- load and store ---- */

static sdlf_status load(sdlf_plan *plan, direction to)
{
    if (plan->taken) return SDLF_OK; /* only this plan has had the values since */
    uint64_t changes = atomic_load_explicit(&plan->model->changes, memory_order_relaxed);
    sdlf_status status = exchange_parameters(plan, to);
    if (status == SDLF_OK) plan->loaded = changes;
    return status;
}

sdlf_status sdlf_plan_load_parameters(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    return load(plan, LOAD);
}

sdlf_status plan_prepare_parameters(sdlf_plan *plan)
{
    return load(plan, DERIVE);
}

sdlf_status sdlf_plan_store_parameters(sdlf_plan *plan)
{
    SDLF_REQUIRE(plan);
    sdlf_status status = sdlf_plan_synchronize(plan);
    return status == SDLF_OK && !plan->taken ? exchange_parameters(plan, STORE) : status;
}
