/* SPDX-License-Identifier: MIT */
/* lstm and gru step by step: a gemm, which applies the math mode, and a kernel for the cells. The workspace holds the gates' product
 * (forward), a state and the carried state, (N,H) each, and gemm's own workspace. */
#include "calculators/cuda/recurrent/recurrent.h"

enum { ALIGNMENT = 256 };

typedef struct places {
    char *product, *h, *carried, *gemm;
    int64_t gemm_bytes, bytes;
} places;

static char *take(char *base, int64_t *bytes, int64_t wanted)
{
    char *place = base != NULL ? base + *bytes : NULL;
    *bytes += cuda_ceil_div(wanted, ALIGNMENT) * ALIGNMENT;
    return place;
}

static sdlf_tensor matrix(sdlf_dtype dtype, int64_t rows, int64_t columns, void *data)
{
    return sdlf_tensor_view(dtype, sdlf_shape(rows, columns), data);
}

/* Forward: product (N,GH) = h weight^T + bias. Backward: h (N,H) = db weight, for gru + carried. */
static sdlf_operation product_of(const sdlf_operation *operation, const places *at)
{
    const sdlf_tensor *weight = &operation->in[1];
    int64_t samples = operation->in[0].shape.dim[1], row = weight->shape.dim[0], units = weight->shape.dim[1];
    sdlf_dtype t = weight->dtype;
    bool backward = recurrent_is_backward(operation);
    sdlf_operation op = {.kind = SDLF_GEMM, .gemm = {.transpose_b = !backward, .alpha = 1}};
    op.in[1] = *weight;
    op.in[2] = op.in[3] = (sdlf_tensor){.dtype = SDLF_NONE};
    if (backward) {
        op.in[0] = matrix(t, samples, row, NULL), op.out[0] = matrix(t, samples, units, at->h);
        if (recurrent_gates(operation) == 3) op.in[3] = matrix(t, samples, units, at->carried);
    } else {
        op.in[0] = matrix(t, samples, units, at->h), op.out[0] = matrix(t, samples, row, at->product);
        op.in[2] = operation->in[2];
    }
    if (at->gemm_bytes > 0) op.workspace = matrix(SDLF_UINT8, 1, at->gemm_bytes, at->gemm);
    return op;
}

static places places_in(const sdlf_calculator *calculator, const sdlf_operation *operation, void *workspace)
{
    const int64_t *weight = operation->in[1].shape.dim, samples = operation->in[0].shape.dim[1];
    int64_t size = (int64_t)sdlf_dtype_size(operation->in[1].dtype), state = samples * weight[1] * size;
    places at = {.bytes = 0};
    at.product = take(workspace, &at.bytes, recurrent_is_backward(operation) ? 0 : samples * weight[0] * size);
    at.h = take(workspace, &at.bytes, state);
    at.carried = take(workspace, &at.bytes, state);
    sdlf_operation op = product_of(operation, &(places){.bytes = 0});
    op.in[1].data = NULL; /* the size must not depend on the operands' addresses */
    at.gemm_bytes = gemm_workspace_cuda(calculator, &op);
    at.gemm = take(workspace, &at.bytes, at.gemm_bytes);
    return at;
}

int64_t recurrent_steps_workspace(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    return places_in(calculator, operation, NULL).bytes;
}

static sdlf_status forward(sdlf_calculator *base, const sdlf_operation *operation, const recurrent_arguments *p)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_dtype t = operation->in[1].dtype;
    places at = places_in(base, operation, operation->workspace.data);
    recurrent_cells cells = {recurrent_gates(operation), 0, true, at.product, at.h, at.carried};
    const sdlf_operation product = product_of(operation, &at);
    sdlf_status status = recurrent_take_state(calculator, p, t, p->h0, at.h);
    if (status == SDLF_OK && cells.gates == 4) status = recurrent_take_state(calculator, p, t, p->c0, at.carried);
    for (; cells.step < p->steps && status == SDLF_OK; cells.step++) {
        status = gemm_cuda(base, &product);
        if (status == SDLF_OK) status = recurrent_cells_forward(calculator, p, t, cells);
    }
    return status;
}

/* The gradient with respect to the initial state is written to dh0. */
static sdlf_status backward(sdlf_calculator *base, const sdlf_operation *operation, const recurrent_arguments *p)
{
    const cuda_calculator *calculator = cuda_calculator_from(base);
    const sdlf_dtype t = operation->in[1].dtype;
    places at = places_in(base, operation, operation->workspace.data);
    recurrent_cells cells = {recurrent_gates(operation), p->steps - 1, true, NULL, at.h, at.carried};
    sdlf_operation product = product_of(operation, &at);
    sdlf_status status = SDLF_OK;
    if (cells.gates == 4) status = recurrent_take_state(calculator, p, t, p->dcn, at.carried);
    for (; cells.step >= 0 && status == SDLF_OK; cells.step--, cells.first = false) {
        status = recurrent_cells_backward(calculator, p, t, cells);
        if (cells.step == 0 && p->dh0.data == NULL) break;
        int64_t place = p->reverse ? p->steps - 1 - cells.step : cells.step;
        product.in[0].data = (char *)p->db.data + place * p->db.step * (int64_t)sdlf_dtype_size(t);
        if (cells.step == 0) product.out[0].data = p->dh0.data;
        if (status == SDLF_OK) status = gemm_cuda(base, &product);
    }
    return status;
}

sdlf_status recurrent_by_steps(sdlf_calculator *calculator, const sdlf_operation *operation,
                               const recurrent_arguments *p)
{
    return recurrent_is_backward(operation) ? backward(calculator, operation, p) : forward(calculator, operation, p);
}
