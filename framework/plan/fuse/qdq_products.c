/* SPDX-License-Identifier: MIT */
/* Inference: products with constant integer weights become quantized_conv2d. See qdq_integers.c. */
#include "framework/plan/fuse/qdq_operands.h"

#include <math.h>
#include <stdlib.h>

/* Matches x minus a computed zero point, where both are copies of bytes: the origin of these. */
static bool find_difference(const sdlf_plan *plan, const sdlf_tensor *x, const sdlf_calculator *calculator,
                            quantized_origin *from)
{
    if (plan->buffers[x->buffer].kind != BUFFER_ARENA || !sdlf_tensor_is_contiguous(x) ||
        !plan_covers_buffer(plan, x) || plan_count_writers(plan, x->buffer) != 1)
        return false;
    const plan_step *step = &plan->steps[plan_first_writer(plan, x->buffer)];
    const sdlf_operation *op = &step->operation;
    if (step->calculator != calculator || op->kind != SDLF_BINARY || op->binary.function != SDLF_BINARY_SUBTRACT ||
        !sdlf_tensor_present(&op->in[0]) || !sdlf_tensor_present(&op->in[1]))
        return false;
    sdlf_tensor zero = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), NULL);
    zero.buffer = op->in[1].buffer, zero.offset = op->in[1].offset;
    quantized_origin point;
    bool one = plan->buffers[zero.buffer].bytes == (int64_t)sizeof(float);
    if (!one || !plan_quantized_origin(plan, &op->in[0], calculator, from) ||
        !plan_quantized_origin(plan, &zero, calculator, &point))
        return false;
    from->zero_point = point.bytes;
    return from->scale == 1 && from->zero == 0 && point.scale == 1 && point.zero == 0 &&
           from->bytes.dtype == point.bytes.dtype;
}

/* A multiplication of a product's accumulators before they are quantised: by a scalar, or per filter. */
typedef struct factor {
    int step; /* -1: none */
    double number;
    int parameter; /* -1: the scalar */
} factor;

/* The constant parameter that holds exactly one value per element of axis 1; -1: something else. */
static int filters_parameter(const sdlf_plan *plan, const sdlf_tensor *x)
{
    const plan_buffer *buffer = &plan->buffers[x->buffer];
    if (!sdlf_tensor_present(x) || buffer->kind != BUFFER_PARAMETER || !buffer->constant || x->shape.rank < 2 ||
        x->offset != 0 || buffer->bytes != x->shape.dim[1] * (int64_t)sizeof(float))
        return -1;
    for (int i = 0; i < x->shape.rank; i++)
        if (x->shape.dim[i] > 1 && x->stride[i] != (i == 1)) return -1;
    return buffer->parameter;
}

static factor find_factor(const sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const sdlf_tensor *y = &step->operation.out[0];
    factor f = {.step = -1, .number = 1, .parameter = -1};
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, i) : -1;
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return f;
    const sdlf_operation *op = &plan->steps[reader].operation;
    bool same = op->kind == SDLF_BINARY && op->in[0].buffer == y->buffer &&
                sdlf_shape_equal(op->in[0].shape, y->shape) && sdlf_tensor_is_contiguous(&op->in[0]);
    if (!same || op->binary.function != SDLF_BINARY_MULTIPLY) return f;
    f.parameter = filters_parameter(plan, &op->in[1]);
    if (sdlf_tensor_present(&op->in[1]) && f.parameter < 0) return f;
    f.number = sdlf_tensor_present(&op->in[1]) ? 1 : op->binary.scalar;
    f.step = reader;
    return f;
}

/* A product as a convolution: its float operands, in these shapes. */
typedef struct product {
    sdlf_window2d window;
    int groups;
    sdlf_shape x, w, y;
    int64_t filters, each;
    bool transposed; /* the weights are (each, filters) */
    const sdlf_tensor *bias;
    sdlf_activation activation;
} product;

static bool as_rows(product *p, int64_t rows, int64_t each, int64_t filters, bool transposed)
{
    p->window = (sdlf_window2d){{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
    p->groups = 1;
    p->x = sdlf_shape(rows, each, 1, 1);
    p->w = sdlf_shape(filters, each, 1, 1);
    p->y = sdlf_shape(rows, filters, 1, 1);
    p->filters = filters;
    p->each = each;
    p->transposed = transposed;
    return true;
}

static bool find_product(const sdlf_operation *op, product *p)
{
    const int64_t *a = op->in[0].shape.dim, *b = op->in[1].shape.dim;
    int rank = op->in[0].shape.rank;
    *p = (product){.activation = {.function = SDLF_IDENTITY}};
    switch (op->kind) {
    case SDLF_CONV2D_FORWARD:
        if (sdlf_tensor_present(&op->in[3])) return false;
        *p = (product){.window = op->conv2d.window, .groups = op->conv2d.groups, .activation = op->conv2d.activation};
        p->x = op->in[0].shape, p->w = op->in[1].shape, p->y = op->out[0].shape;
        p->filters = b[0], p->each = sdlf_shape_span(p->w, 1, 4);
        p->bias = &op->in[2];
        return true;
    case SDLF_GEMM:
        if (op->gemm.transpose_a || op->gemm.alpha != 1 || sdlf_tensor_present(&op->in[3])) return false;
        p->activation = op->gemm.activation;
        p->bias = &op->in[2];
        return op->gemm.transpose_b ? as_rows(p, a[0], a[1], b[0], false) : as_rows(p, a[0], a[1], b[1], true);
    case SDLF_MATMUL:
        if (op->matmul.transpose_a || op->matmul.transpose_b || rank < 2 || !sdlf_tensor_is_contiguous(&op->in[1]) ||
            sdlf_shape_count(op->in[1].shape) != b[op->in[1].shape.rank - 1] * a[rank - 1])
            return false; /* one matrix for all */
        return as_rows(p, sdlf_shape_span(op->in[0].shape, 0, rank - 1), a[rank - 1], b[op->in[1].shape.rank - 1],
                       true);
    default: return false;
    }
}

/* The constant parameter that an operand covers entirely; -1: none. */
static int parameter_of(const sdlf_plan *plan, const sdlf_tensor *tensor)
{
    const plan_buffer *buffer = &plan->buffers[tensor->buffer];
    bool whole = sdlf_tensor_is_contiguous(tensor) && plan_covers_buffer(plan, tensor);
    return buffer->kind == BUFFER_PARAMETER && buffer->constant && whole ? buffer->parameter : -1;
}

static sdlf_status has_integers(sdlf_plan *plan, plan_integers *w, bool *found)
{
    sdlf_status status = model_fetch_values(plan->model, w->weight);
    if (status == SDLF_OK && w->bias >= 0) status = model_fetch_values(plan->model, w->bias);
    const float *weight = plan->model->parameters[w->weight].value.data;
    const float *bias = w->bias >= 0 ? plan->model->parameters[w->bias].value.data : NULL;
    double scale = 0;
    int32_t sum;
    *found = weight != NULL && w->each > 0 && (bias != NULL || w->bias < 0);
    if (status != SDLF_OK || !*found) return status;
    w->scale = malloc((size_t)w->filters * sizeof *w->scale);
    if (w->scale == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan_filters filters;
    status = plan_filters_open(&filters, w, weight);
    for (int64_t k = 0; k < w->filters && *found && status == SDLF_OK; k++) {
        *found = plan_find_scale(plan_filters_at(&filters, k), w->each, &scale);
        if (bias != NULL) *found = *found && plan_find_bias_sum(bias[k], (double)w->x_scale * scale, &sum);
        w->scale[k] = (float)scale;
    }
    free(filters.tile);
    return status;
}

/* Adds the derived buffers. */
static sdlf_status add_integers(sdlf_plan *plan, plan_integers *w, const product *p, sdlf_operation *fused)
{
    plan_integers *list = realloc(plan->integers, (size_t)(plan->integers_count + 1) * sizeof *list);
    if (list == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory");
    plan->integers = list;
    sdlf_shape filters = sdlf_shape(p->filters);
    sdlf_status status = plan_new_tensor(plan, BUFFER_DERIVED, SDLF_INT8, p->w, &fused->in[1]);
    if (status == SDLF_OK && w->bias >= 0)
        status = plan_new_tensor(plan, BUFFER_DERIVED, SDLF_INT32, filters, &fused->in[2]);
    if (status == SDLF_OK && sdlf_tensor_present(&fused->in[3]))
        status = plan_new_tensor(plan, BUFFER_DERIVED, SDLF_FLOAT32, filters, &fused->in[3]);
    if (status != SDLF_OK) return status;
    w->integers = fused->in[1].buffer, w->bias_sums = fused->in[2].buffer, w->multipliers = fused->in[3].buffer;
    list[plan->integers_count++] = *w;
    for (int i = 1; i < 4; i++)
        if (sdlf_tensor_present(&fused->in[i])) plan->buffers[fused->in[i].buffer].integers = plan->integers_count;
    return SDLF_OK;
}

/* A copy to int32 that is the only reader of step i's output; low and high: no bounds. */
static quantized_target find_sums(const sdlf_plan *plan, int i)
{
    const sdlf_tensor *y = &plan->steps[i].operation.out[0];
    quantized_target to = {.y = *y, .scale = 1, .low = -INFINITY, .high = INFINITY, .step = -1};
    int reader = plan_is_between(plan, y) ? plan_next_reader(plan, y->buffer, i) : -1;
    if (reader < 0 || plan->steps[reader].calculator != plan->steps[i].calculator) return to;
    const sdlf_operation *op = &plan->steps[reader].operation;
    if (op->kind != SDLF_COPY || op->out[0].dtype != SDLF_INT32 || !sdlf_tensor_is_contiguous(&op->in[0]) ||
        !sdlf_tensor_is_contiguous(&op->out[0]))
        return to;
    to.y = sdlf_tensor_reshape(op->out[0], y->shape);
    to.step = reader;
    return to;
}

sdlf_status plan_fuse_qdq_product(sdlf_plan *plan, int i)
{
    const sdlf_operation *op = &plan->steps[i].operation;
    product p;
    quantized_origin from;
    if (!find_product(op, &p)) return SDLF_OK;
    const sdlf_calculator *calculator = plan->steps[i].calculator;
    bool computed = !plan_quantized_origin(plan, &op->in[0], calculator, &from);
    if (computed && !find_difference(plan, &op->in[0], calculator, &from)) return SDLF_OK;
    bool has_bias = p.bias != NULL && sdlf_tensor_present(p.bias);
    plan_integers w = {.weight = parameter_of(plan, &op->in[1]),
                       .bias = has_bias ? parameter_of(plan, p.bias) : -1,
                       .filters = p.filters,
                       .each = p.each,
                       .transposed = p.transposed,
                       .x_scale = from.scale};
    factor f = find_factor(plan, i);
    bool plain = p.activation.function == SDLF_IDENTITY;
    quantized_target to = plan_quantized_target(plan, f.step >= 0 && plain ? f.step : i);
    if (to.step < 0) {
        f = (factor){.step = -1, .number = 1, .parameter = -1};
        to.y = op->out[0];
    }
    quantized_target sums = find_sums(plan, i);
    bool is_sum = sums.step >= 0 && plain && !has_bias && from.scale == 1;
    if (computed && !is_sum) return SDLF_OK;
    if (is_sum) {
        f = (factor){.step = -1, .number = 1, .parameter = -1};
        to = sums;
    }
    w.factor = (float)f.number;
    w.factors = f.parameter;
    if (w.weight < 0 || (has_bias && w.bias < 0) || !plan_quantized_bound(&p.activation, &to)) return SDLF_OK;
    if (to.step < 0 && !sdlf_tensor_is_contiguous(&to.y)) return SDLF_OK;
    w.y_scale = to.scale;
    sdlf_operation fused = {.kind = SDLF_QUANTIZED_CONV2D,
                            .in = {sdlf_tensor_reshape(from.bytes, p.x), sdlf_tensor_view(SDLF_INT8, p.w, NULL)},
                            .out = {sdlf_tensor_reshape(to.y, p.y)},
                            .quantized_conv2d = {p.window, p.groups, from.zero, to.zero, to.low, to.high}};
    fused.in[1].buffer = op->in[1].buffer;
    if (!is_sum) fused.in[3] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(p.filters), NULL);
    fused.in[4] = from.zero_point;
    if (has_bias) fused.in[2] = sdlf_tensor_view(SDLF_INT32, sdlf_shape(p.filters), NULL);
    bool found = plan_quantized_is_taken(plan, i, &fused);
    sdlf_status status = found ? has_integers(plan, &w, &found) : SDLF_OK;
    for (int64_t k = 0; k < p.filters && found && is_sum; k++) found = w.scale[k] == 1;
    if (status == SDLF_OK && found) status = add_integers(plan, &w, &p, &fused);
    if (status != SDLF_OK || !found) {
        free(w.scale);
        return status;
    }
    if (f.step >= 0) {
        plan->steps[f.step].dead = true;
        plan_join_groups(plan, plan->steps[i].node, plan->steps[f.step].node);
    }
    return plan_quantized_replace(plan, i, &to, &fused);
}
