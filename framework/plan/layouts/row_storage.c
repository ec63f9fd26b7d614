/* SPDX-License-Identifier: MIT */
/* The pass that stores row-major activations in 16 bits, in inference: values passed between GEMMs, attention,
 * normalisation and elementwise kinds in a transformer. (Channels-last images get their storage type from
 * layouts.c.)
 *
 * A calculator is asked for each GEMM (sdlf_calculator_storage). If those that it would store have at least half of
 * the FLOPs that layouts.c left, their operands are stored, and so are outputs of the steps before them, as far as
 * kernels exist for it and 16 bits suffice for the function: the request propagates from readers to writers. Copies
 * follow. A stored content has its own buffer beside the float32 one; conversions are inserted where steps that
 * support only float32 meet the others. */
#include "framework/operand.h"
#include "framework/plan/layouts/layouts.h"

#include <stdlib.h>

/* Who writes a buffer: no step yet, copies, one other step that could write the storage type, any others. */
typedef enum content_writers { NO_WRITER, COPIES, ONE_TAKER, OTHERS } content_writers;

/* The forms of a buffer's content. */
typedef struct stored_content {
    int twin;     /* the buffer that holds it in the storage type; 0: none */
    bool float32; /* it exists in float32 */
    bool wanted;  /* a stored step reads or writes it */
    bool taken;   /* a step that could be stored reads it */
    content_writers writers;
} stored_content;

typedef struct storage_pass {
    sdlf_plan *plan;
    plan_step *old; /* the original steps; the plan's list is rebuilt */
    int old_count;
    stored_content *content; /* of each buffer */
    bool *takes, *stores;    /* per original step: could it be stored, and will it be? */
    sdlf_dtype storage;
} storage_pass;

static bool is_output(int i)
{
    return i >= SDLF_MAX_INPUTS;
}

static bool is_arena(const storage_pass *p, const sdlf_tensor *tensor)
{
    return p->plan->buffers[tensor->buffer].kind == BUFFER_ARENA;
}

/* True if an output of any strides is all of its buffer: no two of its elements coincide. */
static bool fills_buffer(const storage_pass *p, const sdlf_tensor *out)
{
    return out->offset == 0 && sdlf_tensor_bytes(out) == p->plan->buffers[out->buffer].bytes;
}

/* True if the content could be written in the storage type. */
static bool is_storable(const storage_pass *p, const sdlf_tensor *tensor)
{
    content_writers writers = p->content[tensor->buffer].writers;
    return is_arena(p, tensor) && (writers == ONE_TAKER || writers == COPIES);
}

/* The operands that a stored step has in the storage type, as bits of a class. Operands that may be float32 beside them
 * are, except whole tensors that can be written in the storage type. */
static unsigned stored_operands(const storage_pass *p, const sdlf_operation *op)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    unsigned bits = 0;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        const sdlf_tensor *operand = sdlf_operand_at(op, i);
        if (!(type->storage >> i & 1) || !sdlf_tensor_present(operand)) continue;
        bool beside = type->float32_beside >> i & 1;
        if (beside && (!is_storable(p, operand) || !sdlf_tensor_is_contiguous(operand))) continue;
        bits |= 1u << i;
    }
    return bits;
}

/* The same part of the content in the storage type. */
static sdlf_tensor in_storage(const storage_pass *p, sdlf_tensor tensor)
{
    tensor.offset = tensor.offset / (int64_t)sdlf_dtype_size(tensor.dtype) * (int64_t)sdlf_dtype_size(p->storage);
    tensor.dtype = p->storage;
    tensor.buffer = p->content[tensor.buffer].twin;
    return tensor;
}

static bool is_copy(const plan_step *step)
{
    return step->operation.kind == SDLF_COPY && step->phase == SDLF_PHASE_FORWARD;
}

/* True if the step's operands and its calculator allow it to be stored. */
static bool could_take(const storage_pass *p, const plan_step *step)
{
    const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
    sdlf_operation stored = step->operation;
    unsigned operands = stored_operands(p, &stored);
    bool images = type->channels_last != 0, any = false;
    if (operands == 0 || images || stored.algorithm != 0 || sdlf_operation_storage(&stored) != SDLF_NONE) return false;
    if (type->suits_16_bits != NULL && !type->suits_16_bits(&stored)) return false;
    for (int i = 0; i < SDLF_MAX_OPERANDS; i++) {
        sdlf_tensor *operand = sdlf_operand_at(&stored, i);
        if (!(operands >> i & 1)) continue;
        if (operand->dtype != SDLF_FLOAT32 || operand->layout != SDLF_DENSE || operand->offset % 32 != 0) return false;
        if (is_output(i) && !fills_buffer(p, operand)) return false;
        /* a parameter would be converted in every run */
        if (!is_output(i) && p->plan->buffers[operand->buffer].constant) return false;
        any = any || is_arena(p, operand);
        operand->dtype = p->storage;
    }
    return any && sdlf_operation_check(&stored) == SDLF_OK && sdlf_calculator_supports(step->calculator, &stored);
}

/* Records whether the step is the only writer of its outputs, or one of several copies. */
static void note_writer(storage_pass *p, const plan_step *step, bool takes)
{
    const sdlf_operation *op = &step->operation;
    for (int i = 0; i < SDLF_MAX_OUTPUTS; i++) {
        const sdlf_tensor *out = &op->out[i];
        if (!sdlf_tensor_present(out)) continue;
        content_writers *writers = &p->content[out->buffer].writers;
        bool floats = out->dtype == SDLF_FLOAT32 && out->layout == SDLF_DENSE;
        bool stored = takes && stored_operands(p, op) >> (SDLF_MAX_INPUTS + i) & 1;
        bool copied = is_copy(step) && floats && is_arena(p, out) &&
                      (op->in[0].dtype == SDLF_FLOAT32 || op->in[0].dtype == p->storage);
        if (copied && *writers <= COPIES)
            *writers = COPIES;
        else
            *writers = *writers == NO_WRITER && stored ? ONE_TAKER : OTHERS;
    }
}

/* Excludes a GEMM whose residual may be a mask, with values that 16 bits cannot hold: what follows, such as softmax,
 * supports only float32. */
static void leave_masks(storage_pass *p)
{
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        unsigned stored = p->takes[i] ? stored_operands(p, op) : 0;
        for (int j = 0; j < SDLF_MAX_INPUTS; j++) {
            if (stored >> j & 1) p->content[op->in[j].buffer].taken = true;
        }
        if (is_copy(&p->old[i])) p->content[op->in[0].buffer].taken = true;
    }
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        int residual = p->takes[i] ? plan_residual_of(op) : -1;
        if (residual >= 0 && sdlf_tensor_present(&op->in[residual]) && !p->content[op->out[0].buffer].taken)
            p->takes[i] = false;
    }
}

/* Finds the steps that could be stored. */
static void find_takers(storage_pass *p)
{
    for (int i = 0; i < p->old_count; i++) {
        p->takes[i] = !is_copy(&p->old[i]) && could_take(p, &p->old[i]);
        note_writer(p, &p->old[i], p->takes[i]);
    }
    for (int i = 0; i < p->old_count; i++) {
        const sdlf_operation *op = &p->old[i].operation;
        unsigned stored = p->takes[i] ? stored_operands(p, op) : 0;
        if (is_copy(&p->old[i])) p->takes[i] = p->content[op->out[0].buffer].writers == COPIES;
        for (int j = 0; j < SDLF_MAX_OUTPUTS; j++) {
            bool written = stored >> (SDLF_MAX_INPUTS + j) & 1;
            if (written && p->content[op->out[j].buffer].writers != ONE_TAKER) p->takes[i] = false;
        }
    }
    leave_masks(p);
}

/* ---- which steps are stored ---- */

static void want_operands(storage_pass *p, int i)
{
    const sdlf_operation *op = &p->old[i].operation;
    unsigned operands = is_copy(&p->old[i]) ? 1u << 0 | 1u << SDLF_MAX_INPUTS : stored_operands(p, op);
    p->stores[i] = true;
    for (int j = 0; j < SDLF_MAX_OPERANDS; j++) {
        if (operands >> j & 1) p->content[sdlf_operand_at(op, j)->buffer].wanted = true;
    }
}

/* Stores a step if a stored one reads its result, or the rest of its buffer. */
static void spread_to(storage_pass *p, int i)
{
    const sdlf_operation *op = &p->old[i].operation;
    if (!p->takes[i] || p->stores[i]) return;
    unsigned operands = is_copy(&p->old[i]) ? 1u << SDLF_MAX_INPUTS : stored_operands(p, op);
    for (int j = 0; j < SDLF_MAX_OUTPUTS && !p->stores[i]; j++) {
        bool written = operands >> (SDLF_MAX_INPUTS + j) & 1;
        if (written && is_arena(p, &op->out[j]) && p->content[op->out[j].buffer].wanted) want_operands(p, i);
    }
}

/* Chooses GEMMs first; from these, propagates against the order of steps. */
static bool choose_steps(storage_pass *p)
{
    double all = 0, wanted = 0;
    int products = 0;
    for (int i = 0; i < p->old_count; i++) {
        const plan_step *step = &p->old[i];
        if (sdlf_operation_storage(&step->operation) != SDLF_NONE) continue;
        all += (double)step->cost.flops;
        if (!p->takes[i] || is_copy(step)) continue;
        if (sdlf_calculator_storage(step->calculator, &step->operation, false) != p->storage) continue;
        wanted += (double)step->cost.flops;
        products++;
        want_operands(p, i);
    }
    if (products < 2 || 2 * wanted < all) return false;
    for (int i = p->old_count - 1; i >= 0; i--) spread_to(p, i);
    return true;
}

/* ---- rebuilding the steps ---- */

/* A tensor over all of a buffer's content. */
static sdlf_tensor whole(const storage_pass *p, int buffer)
{
    const plan_buffer *of = &p->plan->buffers[buffer];
    int64_t count = of->bytes / (int64_t)sdlf_dtype_size(of->dtype);
    sdlf_tensor tensor = sdlf_tensor_view(of->dtype, sdlf_shape(count), NULL);
    tensor.buffer = buffer;
    return tensor;
}

static sdlf_status append_copy(storage_pass *p, const plan_step *beside, int from, int to)
{
    plan_step step = {.operation = {.kind = SDLF_COPY, .in = {whole(p, from)}, .out = {whole(p, to)}},
                      .calculator = beside->calculator,
                      .phase = beside->phase,
                      .serves = beside->phase,
                      .node = beside->node};
    step.cost = sdlf_operation_cost(&step.operation);
    return plan_append_step(p->plan, &step);
}

static sdlf_status add_twin(storage_pass *p, int buffer)
{
    stored_content *content = &p->content[buffer];
    if (content->twin != 0) return SDLF_OK;
    int64_t count = p->plan->buffers[buffer].bytes / (int64_t)sizeof(float);
    content->twin = plan_new_buffer(p->plan, BUFFER_ARENA, p->storage, count * (int64_t)sdlf_dtype_size(p->storage));
    return content->twin != 0 ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for its list of buffers");
}

static sdlf_status need_stored(storage_pass *p, const plan_step *reader, int buffer)
{
    if (p->content[buffer].twin != 0) return SDLF_OK;
    sdlf_status status = add_twin(p, buffer);
    return status == SDLF_OK ? append_copy(p, reader, buffer, p->content[buffer].twin) : status;
}

static sdlf_status need_float32(storage_pass *p, const plan_step *reader, int buffer)
{
    stored_content *content = &p->content[buffer];
    if (content->float32) return SDLF_OK;
    content->float32 = true;
    return append_copy(p, reader, content->twin, buffer);
}

/* The content has been rewritten in float32. */
static void note_float32(storage_pass *p, int buffer)
{
    p->content[buffer].twin = 0;
    p->content[buffer].float32 = true;
}

/* Converts the step's operands to the forms it reads; appends it, and conversions of outputs read outside. */
static sdlf_status append_stored(storage_pass *p, plan_step *step, unsigned operands)
{
    sdlf_operation *op = &step->operation;
    int written[SDLF_MAX_OUTPUTS] = {0};
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < SDLF_MAX_OPERANDS && status == SDLF_OK; i++) {
        sdlf_tensor *operand = sdlf_operand_at(op, i);
        if (!sdlf_tensor_present(operand)) continue;
        if (!(operands >> i & 1)) {
            if (is_output(i))
                note_float32(p, operand->buffer);
            else
                status = need_float32(p, step, operand->buffer);
            continue;
        }
        if (is_output(i)) {
            written[i - SDLF_MAX_INPUTS] = operand->buffer;
            p->content[operand->buffer].float32 = false;
            status = add_twin(p, operand->buffer);
        } else {
            status = need_stored(p, step, operand->buffer);
        }
        if (status == SDLF_OK) *operand = in_storage(p, *operand);
    }
    step->cost = sdlf_operation_cost(op);
    if (status == SDLF_OK) status = plan_append_step(p->plan, step);
    for (int i = 0; i < SDLF_MAX_OUTPUTS && status == SDLF_OK; i++) {
        if (written[i] != 0 && p->plan->buffers[written[i]].kind != BUFFER_ARENA)
            status = need_float32(p, step, written[i]);
    }
    return status;
}

/* A copy reads whichever form exists. */
static unsigned copied_operands(const storage_pass *p, const plan_step *step, bool stores)
{
    const sdlf_tensor *in = &step->operation.in[0];
    bool has_twin = in->dtype == SDLF_FLOAT32 && p->content[in->buffer].twin != 0;
    return (has_twin && (stores || !p->content[in->buffer].float32) ? 1u << 0 : 0) |
           (stores ? 1u << SDLF_MAX_INPUTS : 0);
}

static sdlf_status append_all(storage_pass *p)
{
    sdlf_status status = SDLF_OK;
    int forward = p->plan->forward_steps;
    for (int i = 0; i < p->old_count && status == SDLF_OK; i++) {
        plan_step step = p->old[i];
        unsigned operands = 0;
        if (i == forward) p->plan->forward_steps = p->plan->step_count;
        if (is_copy(&step))
            operands = copied_operands(p, &step, p->stores[i]);
        else if (p->stores[i])
            operands = stored_operands(p, &step.operation);
        status = append_stored(p, &step, operands);
    }
    if (forward == p->old_count) p->plan->forward_steps = p->plan->step_count;
    return status;
}

/* The type in which the first calculator that has one would store rows. */
static sdlf_dtype storage_of(const sdlf_plan *plan)
{
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        const sdlf_operation_class *type = sdlf_operation_type(&step->operation);
        if (type->storage == 0 || type->channels_last != 0) continue;
        if (sdlf_operation_storage(&step->operation) != SDLF_NONE) continue;
        sdlf_dtype storage = sdlf_calculator_storage(step->calculator, &step->operation, false);
        if (storage != SDLF_NONE) return storage;
    }
    return SDLF_NONE;
}

static sdlf_status store_rows(storage_pass *p)
{
    sdlf_plan *plan = p->plan;
    int buffers = plan->buffer_count;
    p->content = calloc((size_t)buffers, sizeof *p->content);
    p->takes = calloc((size_t)p->old_count, 2 * sizeof *p->takes);
    if (p->content == NULL || p->takes == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    p->stores = p->takes + p->old_count;
    for (int i = 0; i < buffers; i++) p->content[i].float32 = true;
    find_takers(p);
    if (!choose_steps(p)) return SDLF_OK;
    plan->steps = NULL;
    plan->step_count = plan->step_capacity = 0;
    sdlf_status status = append_all(p);
    free(p->old);
    return status;
}

sdlf_status plan_store_rows(sdlf_plan *plan)
{
    const sdlf_plan_options *options = &plan->options;
    storage_pass p = {.plan = plan, .old = plan->steps, .old_count = plan->step_count};
    if (options->mode != SDLF_INFER || options->no_fusion || options->keep_activations) return SDLF_OK;
    if (options->dtype != SDLF_FLOAT32 || options->state_count > 0) return SDLF_OK;
    p.storage = storage_of(plan);
    if (p.storage == SDLF_NONE || p.storage == SDLF_FLOAT32) return SDLF_OK;
    sdlf_status status = store_rows(&p);
    free(p.content);
    free(p.takes);
    return status;
}
