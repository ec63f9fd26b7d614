/* SPDX-License-Identifier: MIT */
/* The pass that stores row-major activations, and their gradients, in 16 bits: values passed between GEMMs, attention,
 * normalisation and elementwise kinds in a transformer. (Channels-last images get their storage type from
 * layouts.c.) Gradients of parameters stay float32.
 *
 * A calculator is asked for each GEMM (sdlf_calculator_storage). If those that it would store have at least half of
 * the FLOPs that layouts.c left, their operands are stored, and so are outputs of the steps before them, as far as
 * kernels exist for it and 16 bits suffice for the function: the request propagates from readers to writers. Copies
 * follow; so do steps whose inputs are all stored, such as the sum of a bias's gradient. A stored content has its own
 * buffer beside the float32 one; conversions are inserted where steps that support only float32 meet the others. */
#include "framework/plan/layouts/row_storage.h"

#include <stdlib.h>

static bool is_arena(const storage_pass *p, const sdlf_tensor *tensor)
{
    return p->plan->buffers[tensor->buffer].kind == BUFFER_ARENA;
}

/* True if the outputs of any strides in that buffer are all of it: no two of their elements coincide. */
static bool fill_buffer(const storage_pass *p, const sdlf_operation *op, int buffer)
{
    int64_t bytes = 0;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++)
        if (sdlf_tensor_present(&op->out[i]) && op->out[i].buffer == buffer) bytes += sdlf_tensor_bytes(&op->out[i]);
    return bytes == p->plan->buffers[buffer].bytes;
}

/* True if the content could be written in the storage type. */
static bool is_storable_content(const storage_pass *p, const sdlf_tensor *tensor)
{
    content_writers writers = p->content[tensor->buffer].writers;
    return is_arena(p, tensor) && (writers == ONE_STORABLE || writers == COPIES);
}

/* True if an output that may be float32 beside stored inputs is stored, too: if a GEMM reads it, directly or through
 * other kinds (logits, for example, are not), or if a residual is added to it, which has its type. */
static bool is_output_stored(const storage_pass *p, const sdlf_operation *op, const sdlf_tensor *out)
{
    const stored_content *content = &p->content[out->buffer];
    int residual = plan_residual_of(op);
    bool adds = residual >= 0 && sdlf_tensor_present(&op->in[residual]);
    return (content->feeds_gemm || adds) && !content->gradient && is_arena(p, out) && fill_buffer(p, op, out->buffer);
}

unsigned storage_operands(const storage_pass *p, const sdlf_operation *op)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    unsigned bits = 0;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *operand = sdlf_operand_at(op, i);
        if (!(type->storage >> i & 1) || !sdlf_tensor_present(operand)) continue;
        bool beside = type->float32_beside >> i & 1, whole = beside && sdlf_tensor_is_contiguous(operand);
        if (beside && !(whole && (is_output(i) ? is_output_stored(p, op, operand) : is_storable_content(p, operand))))
            continue;
        bits |= 1u << i;
    }
    return bits;
}

static bool is_training(const sdlf_plan *plan)
{
    return plan->options.mode == SDLF_TRAIN;
}

/* In training: neither a parameter, a state or another kept tensor, nor a gradient of a parameter. */
static bool may_be_stored(const storage_pass *p, const sdlf_tensor *out)
{
    return is_arena(p, out) && !p->content[out->buffer].gradient;
}

/* True if the step's operands and its calculator allow it to be stored. */
static bool is_storable_step(const storage_pass *p, const plan_step *step)
{
    const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
    sdlf_operation stored = step->operation;
    unsigned operands = storage_operands(p, &stored);
    bool images = type->channels_last != 0, any = false;
    if (operands == 0 || images || !is_forward_or_backward(step) || stored.algorithm != 0 ||
        sdlf_operation_storage(&stored) != SDLF_NONE)
        return false;
    if (type->suits_16_bits != NULL && !type->suits_16_bits(&stored)) return false;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *operand = sdlf_operand_at(&stored, i);
        if (!(operands >> i & 1)) continue;
        if (operand->dtype != SDLF_FLOAT32 || operand->layout != SDLF_DENSE || operand->offset % 32 != 0) return false;
        if (is_output(i) && !fill_buffer(p, &step->operation, operand->buffer)) return false;
        if (is_output(i) && is_training(p->plan) && !may_be_stored(p, operand)) return false;
        /* a parameter would be converted in every run */
        if (!is_output(i) && p->plan->buffers[operand->buffer].constant) return false;
        any = any || is_arena(p, operand);
        operand->dtype = p->storage;
    }
    return any && sdlf_operation_check(&stored) == SDLF_OK && sdlf_calculator_supports(step->calculator, &stored);
}

/* The first output that is in the same buffer as out[i]. */
static int first_in_buffer(const sdlf_operation *op, int i)
{
    int first = 0;
    while (!sdlf_tensor_present(&op->out[first]) || op->out[first].buffer != op->out[i].buffer) first++;
    return first;
}

/* Records whether the step is the only writer of its outputs, or one of several copies. */
static void note_writer(storage_pass *p, const plan_step *step, bool storable)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *out = &op->out[i];
        if (!sdlf_tensor_present(out)) continue;
        content_writers *writers = &p->content[out->buffer].writers;
        bool floats = out->dtype == SDLF_FLOAT32 && out->layout == SDLF_DENSE;
        bool stored = storable && storage_operands(p, op) >> (SDLF_MAX_INPUTS + i) & 1;
        bool copied = is_copy(step) && floats && is_arena(p, out) &&
                      (op->in[0].dtype == SDLF_FLOAT32 || op->in[0].dtype == p->storage);
        if (copied && *writers <= COPIES)
            *writers = COPIES;
        else if (!stored || first_in_buffer(op, i) == i)
            *writers = *writers == NO_WRITER && stored ? ONE_STORABLE : OTHERS;
    }
}

/* Excludes a GEMM whose residual may be a mask, with values that 16 bits cannot hold: what follows, such as softmax,
 * supports only float32. */
static void exclude_masks(storage_pass *p)
{
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        unsigned stored = p->storable[i] ? storage_operands(p, op) : 0;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
            if (stored >> j & 1) p->content[op->in[j].buffer].read_by_storable = true;
        }
        if (is_copy(&p->old[i])) p->content[op->in[0].buffer].read_by_storable = true;
    }
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        int residual = p->storable[i] ? plan_residual_of(op) : -1;
        if (residual >= 0 && sdlf_tensor_present(&op->in[residual]) && !p->content[op->out[0].buffer].read_by_storable)
            p->storable[i] = false;
    }
}

/* Records which contents are gradients of parameters, or copied or added to become one. */
static void note_gradients(storage_pass *p)
{
    const sdlf_plan *plan = p->plan;
    for (int i = 0; plan->gradients != NULL && i < plan->model->parameter_count; i++)
        if (sdlf_tensor_present(&plan->gradients[i])) p->content[plan->gradients[i].buffer].gradient = true;
    for (int i = p->old_count - 1; i >= 0; i--) {
        const sdlf_operation *op = &p->old[i].operation;
        bool passes = op->kind == SDLF_COPY || op->kind == SDLF_ADD || op->kind == SDLF_BINARY;
        bool kept = passes && (!is_arena(p, &op->out[0]) || p->content[op->out[0].buffer].gradient);
        for (int j = 0; j < SDLF_MAX_INPUTS && kept && is_training(plan); j++)
            if (sdlf_tensor_present(&op->in[j])) p->content[op->in[j].buffer].gradient = true;
    }
}

static bool is_requested(const storage_pass *p, const plan_step *step)
{
    return sdlf_calculator_storage(step->calculator, &step->operation, is_training(p->plan)) == p->storage;
}

/* Records which contents GEMMs read, directly or through copies and kinds that could store their results. */
static void note_readers(storage_pass *p)
{
    for (int i = p->old_count - 1; i >= 0; i--) {
        const sdlf_operation *op = &p->old[i].operation;
        const sdlf_operation_class *type = sdlf_operation_type(op);
        bool copy = is_copy(&p->old[i]), feeds_gemm = false;
        if (!is_forward_or_backward(&p->old[i]) || (!copy && (type->storage == 0 || type->channels_last != 0)))
            continue;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            bool stored = copy || type->storage >> (SDLF_MAX_INPUTS + j) & 1;
            feeds_gemm =
                feeds_gemm || (stored && sdlf_tensor_present(&op->out[j]) && p->content[op->out[j].buffer].feeds_gemm);
        }
        feeds_gemm = feeds_gemm || is_requested(p, &p->old[i]);
        for (int j = 0; j < SDLF_MAX_INPUTS && feeds_gemm; j++)
            if (sdlf_tensor_present(&op->in[j]) && (copy || type->storage >> j & 1))
                p->content[op->in[j].buffer].feeds_gemm = true;
    }
}

/* Finds the steps that could be stored. */
static void find_storable_steps(storage_pass *p)
{
    note_gradients(p);
    note_readers(p);
    for (int i = 0; i < p->old_count; i++) {
        p->storable[i] = !is_copy(&p->old[i]) && is_storable_step(p, &p->old[i]);
        note_writer(p, &p->old[i], p->storable[i]);
    }
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        p->storable[i] = p->storable[i] && is_storable_step(p, &p->old[i]); /* again: all writers are known now */
        unsigned stored = p->storable[i] ? storage_operands(p, op) : 0;
        if (is_copy(&p->old[i])) p->storable[i] = p->content[op->out[0].buffer].writers == COPIES;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            bool written = stored >> (SDLF_MAX_INPUTS + j) & 1;
            if (written && p->content[op->out[j].buffer].writers != ONE_STORABLE) p->storable[i] = false;
        }
    }
    exclude_masks(p);
}

/* ---- which steps are stored ---- */

static void store_step(storage_pass *p, int i)
{
    const sdlf_operation *op = &p->old[i].operation;
    unsigned operands = is_copy(&p->old[i]) ? 1u << 0 | 1u << SDLF_MAX_INPUTS : storage_operands(p, op);
    p->stored[i] = true;
    for (int j = 0; j < SDLF_MAX_OPERANDS; j++) {
        if (operands >> j & 1) p->content[sdlf_operand_at(op, j)->buffer].stored = true;
    }
}

/* Stores a step if a stored one reads its result, or the rest of its buffer. */
static void store_if_read_stored(storage_pass *p, int i)
{
    const sdlf_operation *op = &p->old[i].operation;
    if (!p->storable[i] || p->stored[i]) return;
    unsigned operands = is_copy(&p->old[i]) ? 1u << SDLF_MAX_INPUTS : storage_operands(p, op);
    for (int j = 0; j < SDLF_MAX_OUTPUTS && !p->stored[i]; j++) {
        bool written = operands >> (SDLF_MAX_INPUTS + j) & 1;
        if (written && is_arena(p, &op->out[j]) && p->content[op->out[j].buffer].stored) store_step(p, i);
    }
}

/* Stores a step whose inputs all are, where they may be: it would convert them. In inference only if no output is
 * stored for it, since that may be a result, which keeps its precision. */
static void store_if_inputs_are(storage_pass *p, int i)
{
    const sdlf_operation *op = &p->old[i].operation;
    if (!p->storable[i] || p->stored[i] || is_copy(&p->old[i])) return;
    unsigned operands = storage_operands(p, op), marked = sdlf_operation_type(op)->storage;
    int inputs = 0;
    for (int j = 0; j < SDLF_MAX_OPERANDS; j++) {
        const sdlf_tensor *operand = sdlf_operand_at(op, j);
        if (!(marked >> j & 1) || !sdlf_tensor_present(operand)) continue;
        if (is_output(j) ? !is_training(p->plan) : !(operands >> j & 1) || !p->content[operand->buffer].stored) return;
        inputs += !is_output(j);
    }
    if (inputs > 0) store_step(p, i);
}

/* Stores the other copies into a buffer that some copies write in 16 bits. */
static void complete_copies(storage_pass *p)
{
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_tensor *out = &p->old[i].operation.out[0];
        if (is_copy(&p->old[i]) && p->storable[i] && !p->stored[i] && p->content[out->buffer].stored) store_step(p, i);
    }
}

/* True if most bytes of what stored steps read and write are converted for other steps. */
static bool converts_most(storage_pass *p)
{
    int64_t all = 0, converted = 0;
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        unsigned stored = !p->stored[i] ? 0 : is_copy(&p->old[i]) ? ~0u : storage_operands(p, op);
        for (int j = 0; j < SDLF_MAX_OPERANDS; j++) {
            const sdlf_tensor *operand = sdlf_operand_at(op, j);
            if (sdlf_tensor_present(operand) && !(stored >> j & 1)) p->content[operand->buffer].converted = true;
        }
    }
    for (int i = 0; i < p->plan->buffer_count; i++) {
        if (!p->content[i].stored || p->plan->buffers[i].kind != BUFFER_ARENA) continue;
        all += p->plan->buffers[i].bytes;
        converted += p->content[i].converted ? p->plan->buffers[i].bytes : 0;
    }
    return 2 * converted > all;
}

/* Chooses GEMMs first; from these, propagates against the order of steps, and then to the readers. */
static bool choose_steps(storage_pass *p)
{
    double all = 0, requested = 0;
    int products = 0;
    for (int i = 0; i < p->old_count; i++) {
        const plan_step *step = &p->old[i];
        if (sdlf_operation_storage(&step->operation) != SDLF_NONE || !is_forward_or_backward(step)) continue;
        all += (double)step->cost.flops;
        if (!p->storable[i] || is_copy(step) || !is_requested(p, step)) continue;
        requested += (double)step->cost.flops;
        products++;
        store_step(p, i);
    }
    if (products < 2 || 2 * requested < all) return false;
    for (int i = p->old_count - 1; i >= 0; i--) store_if_read_stored(p, i);
    for (int i = 0; i < p->old_count; i++) store_if_inputs_are(p, i);
    complete_copies(p);
    return !is_training(p->plan) || !converts_most(p);
}

/* The type in which the first calculator that has one would store rows. */
static sdlf_dtype storage_of(const sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
        if (type->storage == 0 || type->channels_last != 0) continue;
        if (sdlf_operation_storage(&step->operation) != SDLF_NONE) continue;
        sdlf_dtype storage = sdlf_calculator_storage(step->calculator, &step->operation, is_training(plan));
        if (storage != SDLF_NONE) return storage;
    }
    return SDLF_NONE;
}

static sdlf_status store_rows(storage_pass *p)
{
    sdlf_plan *plan = p->plan;
    int buffers = plan->buffer_count;
    p->content = calloc((size_t)buffers, sizeof *p->content);
    p->storable = calloc((size_t)p->old_count, 2 * sizeof *p->storable);
    if (p->content == NULL || p->storable == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    p->stored = p->storable + p->old_count;
    for (int i = 0; i < buffers; i++) p->content[i].float32 = true;
    find_storable_steps(p);
    if (!choose_steps(p)) return SDLF_OK;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    sdlf_status status = storage_append_steps(p);
    free(p->old);
    return status;
}

sdlf_status plan_store_rows(sdlf_plan *plan)
{
    const sdlf_plan_options *options = &plan->options;
    storage_pass p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count};
    if (options->no_fusion || options->keep_activations) return SDLF_OK;
    if (options->dtype != SDLF_FLOAT32 || options->state_count > 0) return SDLF_OK;
    p.storage = storage_of(plan);
    if (p.storage == SDLF_NONE || p.storage == SDLF_FLOAT32) return SDLF_OK;
    sdlf_status status = store_rows(&p);
    free(p.content);
    free(p.storable);
    return status;
}
