/* SPDX-License-Identifier: MIT */
/* Measuring one operation: its operands are created in the calculator's memory and filled with valid values, and it is
 * run for a while. Floating-point values are in [-1, 1), or in [1/2, 3/2) if they must be positive. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/kernels/kernels.h"
#include "apps/system/memory.h"
#include "apps/timing/operation.h"

enum { OPERANDS = SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS };

/* ---- an operation's operands, inputs before outputs ---- */

static sdlf_tensor *operand_at(sdlf_operation *op, int i)
{
    return i < SDLF_MAX_INPUTS ? &op->in[i] : &op->out[i - SDLF_MAX_INPUTS];
}

static const sdlf_operand *declared_at(const sdlf_operation *op, int i)
{
    const sdlf_operation_class *type = sdlf_operation_type(op);
    return i < SDLF_MAX_INPUTS ? &type->in[i] : &type->out[i - SDLF_MAX_INPUTS];
}

/* Elements from the first to the last, including gaps. */
static int64_t extent_of(const sdlf_tensor *tensor)
{
    int64_t last = 0;
    for (int i = 0; i < tensor->shape.rank; i++) last += (tensor->shape.dim[i] - 1) * tensor->stride[i];
    return last + 1;
}

static int64_t bytes_of(const sdlf_tensor *tensor)
{
    if (tensor->layout == SDLF_CSR) return sdlf_tensor_bytes(tensor);
    return extent_of(tensor) * (int64_t)sdlf_dtype_size(tensor->dtype);
}

/* ---- filling ---- */

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static bool is_positive(const sdlf_operand *operand)
{
    static const char *const names[] = {"rate", "variance", "inverse_std", "saved_inverse_std"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(operand->name, names[i]) == 0) return true;
    }
    return operand->updated;
}

/* The upper bound (exclusive) of this operand's integers. */
static int64_t bound_of(const sdlf_operation *op, const char *name, sdlf_dtype dtype)
{
    if (strcmp(name, "labels") == 0) return op->in[0].shape.dim[1];
    if (dtype == SDLF_UINT8 || dtype == SDLF_INT8) return 256;
    if (dtype == SDLF_BOOL) return 2;
    if (strcmp(name, "index") != 0) return 1;
    if (op->kind == SDLF_GATHER_BATCH) return op->in[0].shape.dim[0];
    return (op->kind == SDLF_GATHER ? op->in[0] : op->out[0]).shape.dim[op->index.axis];
}

static void write_integers(unsigned char *to, sdlf_dtype dtype, int64_t count, int64_t bound, bool bits)
{
    uint64_t state = 5;
    for (int64_t i = 0; i < count; i++) {
        uint32_t value = next(&state);
        value = bits ? 1u << value % 4 : (uint32_t)(value % (uint64_t)bound); /* bits: a mask of windows of four */
        if (dtype == SDLF_INT64)
            ((int64_t *)(void *)to)[i] = value;
        else if (dtype == SDLF_INT32)
            ((int32_t *)(void *)to)[i] = (int32_t)value;
        else
            to[i] = (unsigned char)value;
    }
}

static void write_floats(unsigned char *to, sdlf_dtype dtype, int64_t count, double low)
{
    uint64_t state = 11;
    for (int64_t i = 0; i < count; i++) {
        double value = low + (double)next(&state) * (low < 0 ? 0x1p-31 : 0x1p-32);
        if (dtype == SDLF_FLOAT64)
            ((double *)(void *)to)[i] = value;
        else
            ((float *)(void *)to)[i] = (float)value;
    }
}

/* Writes a sparse matrix with equally many elements in each row, at random columns. */
static void write_graph(unsigned char *to, const sdlf_tensor *tensor)
{
    sdlf_tensor graph = *tensor;
    graph.data = to;
    int64_t rows = graph.shape.dim[0], *offsets = sdlf_csr_offsets(&graph);
    for (int64_t r = 0; r <= rows; r++) offsets[r] = graph.stored / rows * r;
    write_integers((unsigned char *)sdlf_csr_columns(&graph), SDLF_INT32, graph.stored, graph.shape.dim[1], false);
    write_floats(sdlf_csr_values(&graph), graph.dtype, graph.stored, -1);
}

/* True if the calculator can draw the values itself: a large tensor takes long on the host, and longer to upload. */
static bool draws(const sdlf_calculator *calculator, sdlf_operation *uniform, const sdlf_tensor *tensor, double low)
{
    int64_t count = extent_of(tensor);
    *uniform = (sdlf_operation){.kind = SDLF_RANDOM_UNIFORM,
                                .out = {sdlf_tensor_view(tensor->dtype, sdlf_shape(count), tensor->data)},
                                .random = {.seed = 1, .a = (float)low, .b = low < 0 ? 1 : 1.5f}};
    return sdlf_calculator_supports(calculator, uniform);
}

static sdlf_status fill(sdlf_calculator *calculator, const sdlf_operation *op, int i, const sdlf_tensor *tensor)
{
    const sdlf_operand *declared = declared_at(op, i);
    if (i >= SDLF_MAX_INPUTS && !declared->updated) return SDLF_OK;
    bool graph = tensor->layout == SDLF_CSR, floats = sdlf_dtype_is_float(tensor->dtype);
    double low = is_positive(declared) ? 0.5 : -1;
    sdlf_operation uniform;
    if (!graph && floats && draws(calculator, &uniform, tensor, low)) return sdlf_calculator_run(calculator, &uniform);
    int64_t bytes = bytes_of(tensor), count = extent_of(tensor);
    unsigned char *host = memory_allocate((size_t)bytes);
    if (graph)
        write_graph(host, tensor);
    else if (floats)
        write_floats(host, tensor->dtype, count, low);
    else
        write_integers(host, tensor->dtype, count, bound_of(op, declared->name, tensor->dtype),
                       strcmp(declared->name, "mask") == 0);
    sdlf_status status = calculator->type->upload(calculator, tensor->data, host, bytes);
    free(host);
    return status;
}

/* ---- measuring ---- */

static bool take(sdlf_calculator *calculator, int64_t bytes, void **memory, kernel_result *result)
{
    if (calculator->type->allocate(calculator, bytes, memory) == SDLF_OK) return true;
    snprintf(result->time.why, sizeof result->time.why, "no memory for %.0f MB", 1e-6 * (double)bytes);
    return false;
}

sdlf_status kernel_measure(kernel_result *result, sdlf_calculator *calculator, const kernel_row *row, int algorithm,
                           const lab_effort *effort)
{
    sdlf_operation op = row->operation;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, &op);
    void *memory[OPERANDS + 1] = {NULL};
    op.algorithm = algorithm;
    *result = (kernel_result){.row = row, .cost = sdlf_operation_cost(&op)};
    sdlf_status status = sdlf_operation_check(&op);
    if (status != SDLF_OK || !sdlf_calculator_supports(calculator, &op)) return status;
    if (slot->algorithms) result->algorithm = slot->algorithms[algorithm];
    result->automatic =
        algorithm == 0 || (slot->automatic && slot->automatic(calculator, &row->operation) == algorithm);
    bool fits = true;
    for (int i = 0; i < OPERANDS && fits && status == SDLF_OK; i++) {
        sdlf_tensor *tensor = operand_at(&op, i);
        if (!sdlf_tensor_present(tensor)) continue;
        fits = take(calculator, bytes_of(tensor), &memory[i], result);
        tensor->data = memory[i];
        if (fits) status = fill(calculator, &op, i, tensor);
    }
    int64_t bytes = sdlf_calculator_workspace(calculator, &op);
    if (fits && status == SDLF_OK && bytes > 0) {
        fits = take(calculator, bytes, &memory[OPERANDS], result);
        op.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), memory[OPERANDS]);
    }
    if (fits && status == SDLF_OK) {
        status = lab_time(&result->time, calculator, &op, effort);
        result->time.ran = status == SDLF_OK;
    }
    for (int i = 0; i <= OPERANDS; i++) {
        if (memory[i]) calculator->type->deallocate(calculator, memory[i]);
    }
    return sdlf_fail_context(status, "%s of %s", row->text, calculator->type->name);
}
