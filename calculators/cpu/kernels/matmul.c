/* SPDX-License-Identifier: MIT */
/* matmul: the tiles of all matrices of a batch, shared among threads; products with a dedicated kernel run one after
 * another. Contract: <sdlf/operation.h>. */
#include "calculators/matmul.h"

#include "calculators/cpu/kernels/gemm_context.h"

static int64_t count_matrices(const sdlf_operation *operation)
{
    const sdlf_shape *y = &operation->out[0].shape;
    return sdlf_shape_span(*y, 0, y->rank - 2);
}

static bool is_one_by_one(const sdlf_operation *first, int64_t matrices)
{
    return matrices < 2 || gemm_takes_alone_cpu(first);
}

int64_t matmul_workspace_cpu(const sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from_const(calculator);
    sdlf_operation first = sdlf_matmul_product(operation, 0);
    if (is_one_by_one(&first, count_matrices(operation))) return gemm_workspace_cpu(calculator, &first);
    return cpu->threads * PRODUCT_SCRATCH * (int64_t)sizeof(element);
}

sdlf_status matmul_cpu(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    const cpu_calculator *cpu = cpu_from(calculator);
    int64_t matrices = count_matrices(operation);
    sdlf_operation first = sdlf_matmul_product(operation, 0);
    if (is_one_by_one(&first, matrices)) return sdlf_matmul_by_gemm(calculator, operation);
    gemm_context gemm = gemm_context_of_cpu(cpu, &first, matrices);
    const product *all = &gemm.all;
    gemm.operation = operation;
    cpu_parallel(cpu, matrices * gemm.column_tiles * gemm.row_tiles,
                 cpu_time_of_flops(2 * matrices * all->m * all->n * cpu_max(all->k, 8)), gemm_straight_tile_cpu, &gemm);
    return SDLF_OK;
}
