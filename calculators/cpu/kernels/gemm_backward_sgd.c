/* SPDX-License-Identifier: MIT */
/* gemm_backward_sgd: a linear layer's backward pass fused with its SGD update. Contract: calculators/fusions/gemm_backward_sgd.h.
 *
 * Up to SKINNY_ROWS rows of x it is one pass over w (gemm_backward_sgd_skinny.c). Above, it is compute-bound: dx is a gemm, and
 * so is the weight gradient, whose tiles are consumed by the update at once.
 *
 * 4 N U I FLOPs (2 N U I without dx), 16 U I bytes: at N = 16 on a machine with 60 GB/s and 400 GFLOP/s both floors are about the
 * same. */
#include "calculators/cpu/kernels/gemm_backward_sgd_skinny.h"
#include "calculators/cpu/kernels/gemm_context.h"

enum { SKINNY_ROWS = 64 };

/* The bias update and the activation's gradient move so little data that separate passes cost nothing. */
bool gemm_backward_sgd_supports_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    return !sdlf_tensor_present(&operation->out[3]) &&
           gemm_backward_sgd_options_of(operation)->activation.function == SDLF_IDENTITY;
}

static bool is_skinny(const sdlf_operation *operation)
{
    return operation->in[0].shape.dim[0] <= SKINNY_ROWS;
}

typedef struct update {
    gemm_context gemm; /* w takes the place of g where tiles are cut */
    element *v, *tiles;
    int64_t rows; /* rows of a tile updated at once: few, unless b is so large that more rows should reuse it */
    sgd_rule rule;
} update;

static int64_t tile_size(const update *u)
{
    return u->rows * u->gemm.tile_columns;
}

static update update_of(const cpu_calculator *cpu, const sdlf_operation *dw, const sdlf_operation *operation)
{
    update u = {.gemm = gemm_context_of_cpu(cpu, dw, 1), .v = output(operation, 1), .rule = rule_of(operation)};
    u.rows = u.gemm.all.k <= PRODUCT_INNER ? TILE_ROWS : u.gemm.tile_rows;
    return u;
}

static sdlf_operation input_gradient_of(const sdlf_operation *operation)
{
    return (sdlf_operation){.kind = SDLF_GEMM,
                            .in = {operation->in[1], operation->out[0]},
                            .out = {operation->out[2]},
                            .workspace = operation->workspace,
                            .gemm = {.alpha = 1}};
}

static sdlf_operation weight_gradient_of(const sdlf_operation *operation)
{
    return (sdlf_operation){.kind = SDLF_GEMM,
                            .in = {operation->in[1], operation->in[0]},
                            .out = {operation->out[0]},
                            .workspace = operation->workspace,
                            .gemm = {.transpose_a = true, .alpha = 1}};
}

static void update_part(void *context, int64_t index, int thread)
{
    const update *u = context;
    const gemm_context *gemm = &u->gemm;
    int64_t row, column, all_rows, w_row = gemm->all.c_row;
    product part = gemm_straight_part_cpu(gemm, index, &row, &column);
    element *w = part.c, *v = u->v ? u->v + (w - gemm->all.c) : NULL;
    all_rows = part.m;
    part.c = u->tiles + thread * tile_size(u);
    part.c_row = gemm->tile_columns;
    for (int64_t first = 0; first < all_rows; first += u->rows) {
        part.m = cpu_min(u->rows, all_rows - first);
        if (u->rows == TILE_ROWS && first + 2 * TILE_ROWS <= all_rows)
            fetch_rows(w + TILE_ROWS * w_row, v ? v + TILE_ROWS * w_row : NULL, w_row, part.n);
        product_compute_cpu(&part, gemm->scratch + thread * gemm->scratch_size);
        for (int64_t i = 0; i < part.m; i++, w += w_row, v += v ? w_row : 0)
            update_row(&u->rule, w, v, part.c + i * part.c_row, part.n);
        part.a += part.m * part.a_row;
    }
}

static sdlf_status multiply_twice(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    if (sdlf_tensor_present(&operation->out[2])) {
        sdlf_operation dx = input_gradient_of(operation);
        sdlf_status status = gemm_cpu(calculator, &dx);
        if (status != SDLF_OK) return status;
    }
    sdlf_operation dw = weight_gradient_of(operation);
    update u = update_of(cpu, &dw, operation);
    const product *all = &u.gemm.all;
    u.rule.rate = input(operation, 2)[0];
    u.tiles = u.gemm.packed + gemm_context_size_cpu(cpu, &u.gemm);
    gemm_pack_shared_cpu(cpu, &u.gemm);
    cpu_parallel_static(cpu, u.gemm.column_tiles * u.gemm.row_tiles, cpu_time_of_flops(2 * all->m * all->n * all->k),
                        update_part, &u);
    return SDLF_OK;
}

int64_t gemm_backward_sgd_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from_const(calculator);
    if (is_skinny(operation)) return gemm_backward_sgd_skinny_workspace_cpu(cpu, operation);
    sdlf_operation dx = input_gradient_of(operation), dw = weight_gradient_of(operation);
    update u = update_of(cpu, &dw, operation);
    int64_t most = (gemm_context_size_cpu(cpu, &u.gemm) + cpu->threads * tile_size(&u)) * (int64_t)sizeof(element);
    return sdlf_tensor_present(&dx.out[0]) ? cpu_max(most, gemm_workspace_cpu(calculator, &dx)) : most;
}

sdlf_status gemm_backward_sgd_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    if (operation->in[1].shape.dim[1] == 0) { /* no units */
        if (sdlf_tensor_present(&operation->out[2]))
            memset(output(operation, 2), 0, (size_t)sdlf_tensor_count(&operation->out[2]) * sizeof(element));
        return SDLF_OK;
    }
    if (!is_skinny(operation)) return multiply_twice(calculator, operation);
    gemm_backward_sgd_skinny_cpu(cpu_from(calculator), operation);
    return SDLF_OK;
}
