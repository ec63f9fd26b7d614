/* SPDX-License-Identifier: MIT */
/* gemm: dispatches to the algorithms, and applies the parts of the epilogue that cuBLAS does not.
 *
 * In fp16 and bf16 cuBLAS gets 16-bit operands. Rounding them first takes 6 bytes of memory traffic an element, and a workspace of
 * half the operands' bytes; constant weights are rounded once, when they are prepacked. Operands in 16-bit storage are used in place. */
#include "calculators/cuda/gemm/gemm.h"

#include "calculators/cuda/gemm/blas.h"
#include "calculators/cuda/gemm/convert_operands.h"

const char *const gemm_algorithms_cuda[] = {
    [GEMM_AUTO] = "auto", /* gemm_automatic_cuda chooses */
    [GEMM_CUBLAS] = "cublas",
    LAB_GEMM_NAMES,
    [GEMM_TALL_SKINNY] = "tall-skinny",
    [GEMM_REGISTER_STATIONARY] = "register-stationary",
    [GEMM_SKINNY_M] = "skinny-m",
    [GEMM_SKINNY_N] = "skinny-n",
    [GEMM_GEMV] = "gemv",
    [GEMM_STORED] = "implicit-gemm",
    [GEMM_ALGORITHMS] = NULL,
};

static const cuda_calculator *known(const sdlf_calculator *calculator)
{
    return (const cuda_calculator *)calculator;
}

static int chosen(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (op->algorithm == GEMM_AUTO) return gemm_automatic_cuda(base, op);
    bool aligned = op->algorithm == GEMM_SKINNY_M || op->algorithm == GEMM_GEMV;
    return aligned && !cuda_gemm_lies_aligned(op) ? GEMM_CUBLAS : op->algorithm;
}

/* ---- the slot ---- */

bool gemm_supports_cuda(const sdlf_calculator *calculator, const sdlf_operation *op)
{
    return cuda_gemm_takes(known(calculator), op, op->algorithm);
}

static bool rounds_for(const sdlf_calculator *base, const sdlf_operation *op, int algorithm)
{
    return cuda_gemm_rounds(known(base), op) && sdlf_tensor_count(&op->out[0]) > 0 && cuda_gemm_sizes_of(op).k > 0 &&
           algorithm == GEMM_CUBLAS;
}

/* Independent of alignment, like the workspace: an algorithm that replaces one for aligned operands needs no workspace, and does not round. */
static bool rounds(const sdlf_calculator *base, const sdlf_operation *op)
{
    sdlf_operation aligned = *op;
    aligned.in[0].data = aligned.in[1].data = NULL;
    return rounds_for(base, op, chosen(base, &aligned));
}

static int64_t rounded_bytes(const sdlf_tensor *operand)
{
    return cuda_operand16_bytes(operand->shape.dim[0], operand->shape.dim[1]);
}

static bool is_stored(const sdlf_operation *op)
{
    return sdlf_operation_storage(op) != SDLF_NONE;
}

/* a in 16-bit storage beside c in float32: by cuBLAS. */
static bool writes_float32(const sdlf_operation *op)
{
    return is_stored(op) && op->out[0].dtype == SDLF_FLOAT32;
}

/* Then only b may have to be rounded. */
static int64_t rounded_b_bytes(const sdlf_operation *op)
{
    return op->in[1].dtype == SDLF_FLOAT32 ? rounded_bytes(&op->in[1]) : 0;
}

int64_t gemm_workspace_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    if (writes_float32(op)) return sdlf_tensor_present(&op->prepared) ? 0 : rounded_b_bytes(op);
    if (is_stored(op)) return gemm_stored_workspace(op);
    if (!rounds(base, op)) return 0;
    return rounded_bytes(&op->in[0]) + (sdlf_tensor_present(&op->prepared) ? 0 : rounded_bytes(&op->in[1]));
}

/* Weights of a GEMM with few rows are prepacked in 16 bits, or in tf32 in 20. */
int64_t gemm_prepared_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_math math = known(base)->math;
    if (writes_float32(op)) return rounded_b_bytes(op);
    if (is_stored(op)) return gemm_stored_prepared(op);
    const int algorithm = op->algorithm == GEMM_AUTO ? cuda_gemm_choose(known(base), op, true) : chosen(base, op);
    bool gemv = algorithm == GEMM_GEMV;
    if (gemv && math == SDLF_MATH_TF32) return cuda_packed_bytes(op->in[1].shape.dim[0], op->in[1].shape.dim[1]);
    return (gemv && cuda_has_operands16(math)) || rounds_for(base, op, algorithm) ? rounded_bytes(&op->in[1]) : 0;
}

static cuda_operand16 operand_of(const sdlf_tensor *from, void *to)
{
    return (cuda_operand16){from->data, to, from->shape.dim[0], from->shape.dim[1]};
}

/* Waits for completion: `gemv` reads the weights while the previous kernel runs. */
sdlf_status gemm_prepare_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    const int64_t *b = op->in[1].shape.dim;
    const cuda_operand16 operand = operand_of(&op->in[1], op->prepared.data);
    sdlf_status status = SDLF_OK;
    if (is_stored(op) && !writes_float32(op))
        status = gemm_stored_prepare(cuda_calculator_from(base), op, op->prepared.data);
    else if (known(base)->math != SDLF_MATH_TF32)
        status = cuda_convert_operands(base, &operand, 1);
    else if ((uintptr_t)op->in[1].data % 16 == 0) /* otherwise another algorithm is used */
        status = cuda_pack_operand(base, op->in[1].data, op->prepared.data, b[0], b[1]);
    return status == SDLF_OK ? cuda_check(cudaStreamSynchronize(cuda_stream(base)), "gemm, prepacked weights") : status;
}

/* ---- through cuBLAS ---- */

/* The rest of the epilogue after the GEMM: c = act(c + bias + residual), any of the three absent. */
static sdlf_status run_epilogue(sdlf_calculator *base, const sdlf_operation *op, bool bias, bool residual,
                                bool activation)
{
    const sdlf_tensor *c = &op->out[0];
    cuda_epilogue epilogue = {
        .dtype = c->dtype,
        .data = c->data,
        .bias = bias && sdlf_tensor_present(&op->in[2]) ? op->in[2].data : NULL,
        .residual = residual && sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL,
        .count = sdlf_tensor_count(c),
        .channels = c->shape.dim[1],
        .area = 1,
    };
    if (activation) epilogue.activation = op->gemm.activation;
    if (epilogue.bias == NULL && epilogue.residual == NULL && epilogue.activation.function == SDLF_IDENTITY)
        return SDLF_OK;
    return cuda_apply_epilogue(base, &epilogue);
}

/* k = 0, an empty sum: c = act(0 + bias + residual). */
static sdlf_status empty_sum(sdlf_calculator *base, const sdlf_operation *op)
{
    const sdlf_tensor *c = &op->out[0];
    size_t bytes = (size_t)sdlf_tensor_bytes(c);
    bool is_there = sdlf_tensor_present(&op->in[3]) && op->in[3].data == c->data; /* c holds the residual already */
    sdlf_status status = SDLF_OK;
    if (!is_there) status = cuda_check(cudaMemsetAsync(c->data, 0, bytes, cuda_stream(base)), "gemm");
    return status == SDLF_OK ? run_epilogue(base, op, true, !is_there, true) : status;
}

/* Round both operands to 16 bits: into the workspace; b may be prepacked. Without a workspace, which every plan provides, the
 * GEMM uses the unrounded operands. */
static sdlf_status round_both(sdlf_calculator *base, const sdlf_operation *op, cuda_blas_product *product)
{
    bool ready = sdlf_tensor_present(&op->prepared);
    int64_t bytes = rounded_bytes(&op->in[0]);
    if (!sdlf_tensor_present(&op->workspace)) return SDLF_OK;
    char *room = op->workspace.data;
    const cuda_operand16 operands[] = {operand_of(&op->in[0], room), operand_of(&op->in[1], room + bytes)};
    product->a = operands[0].to;
    product->b = ready ? op->prepared.data : operands[1].to;
    product->rounded = true;
    return cuda_convert_operands(base, operands, ready ? 1 : 2);
}

/* a in 16-bit storage is used in place; b is, too, or it is prepacked, or rounded into the workspace. */
static sdlf_status round_b(sdlf_calculator *base, const sdlf_operation *op, cuda_blas_product *product)
{
    product->rounded = true;
    product->math = cuda_math_of_storage(op->in[0].dtype);
    if (op->in[1].dtype != SDLF_FLOAT32) return SDLF_OK;
    product->b = sdlf_tensor_present(&op->prepared) ? op->prepared.data : op->workspace.data;
    if (sdlf_tensor_present(&op->prepared)) return SDLF_OK;
    const cuda_operand16 operand = operand_of(&op->in[1], op->workspace.data);
    return cuda_convert_operands(base, &operand, 1);
}

static sdlf_status make_operands(sdlf_calculator *base, const sdlf_operation *op, cuda_blas_product *product)
{
    if (is_stored(op)) return round_b(base, op, product);
    return rounds(base, op) ? round_both(base, op, product) : SDLF_OK;
}

/* How many rows of a float32 GEMM to compute as a GEMM of their own, 0 if none. cuBLAS's kernels for it have tiles of 128 x 128,
 * one per multiprocessor at a time. If there are few waves and the last leaves multiprocessors idle, the rows of all full waves
 * are computed first; the rest is a GEMM so small that cuBLAS also splits it along k, if k is long (10,000 x 1,024 x 6,272 on 132
 * multiprocessors: 2.05 + 0.42 ms, and 3.01 in one). With more waves the last one matters less: 4,096 x 4,096 x 4,096, eight
 * waves, took 2.89 ms in two parts and 2.69 in one; 131,072 x 128 x 128 took 128 us and 112. */
static int64_t first_rows(const cuda_calculator *calculator, const sdlf_operation *op)
{
    enum { SIDE = 128, LEAST_TURNS = 2, MOST_TURNS = 5, SHORTEST = 512 };
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    int64_t across = (s.n + SIDE - 1) / SIDE, turn = calculator->multiprocessors;
    int64_t tiles = (s.m + SIDE - 1) / SIDE * across, turns = tiles / turn, rest = tiles % turn;
    bool simple = op->out[0].dtype == SDLF_FLOAT32 && calculator->math == SDLF_MATH_FP32 && !op->gemm.transpose_a &&
                  !is_stored(op);
    if (!simple || s.k < SHORTEST || turns < LEAST_TURNS || turns > MOST_TURNS || rest * 8 > turn * 7) return 0;
    int64_t lines = turns * turn / across; /* rows of tiles; whole ones may leave some of the last wave over */
    return lines * across * 8 >= turns * turn * 7 && lines * SIDE < s.m ? lines * SIDE : 0;
}

static sdlf_status by_cublas(sdlf_calculator *base, const sdlf_operation *op)
{
    cuda_calculator *calculator = cuda_calculator_from(base);
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    if (s.k == 0) return empty_sum(base, op);
    bool wide = op->out[0].dtype == SDLF_FLOAT64;
    cuda_blas_product product = {
        .m = s.m,
        .n = s.n,
        .k = s.k,
        .dtype = op->out[0].dtype,
        .math = calculator->math,
        .transpose_a = op->gemm.transpose_a,
        .transpose_b = op->gemm.transpose_b,
        .relu = op->gemm.activation.function == SDLF_RELU && !wide,
        .a = op->in[0].data,
        .b = op->in[1].data,
        .bias = sdlf_tensor_present(&op->in[2]) && !wide ? op->in[2].data : NULL,
        .residual = sdlf_tensor_present(&op->in[3]) ? op->in[3].data : NULL,
        .c = op->out[0].data,
        .alpha = op->gemm.alpha,
        .beta = 1,
    };
    int64_t rows = first_rows(calculator, op);
    sdlf_status status = make_operands(base, op, &product);
    if (status == SDLF_OK && rows > 0) status = cuda_blas_multiply_first(calculator, &product, rows);
    if (status == SDLF_OK) status = cuda_blas_multiply(calculator, &product);
    if (status != SDLF_OK) return status;
    return run_epilogue(base, op, product.bias == NULL, false, !product.relu);
}

static sdlf_status by_register_stationary(sdlf_calculator *base, const sdlf_operation *op)
{
    if (!gemm_register_stationary_aligned(op)) return gemm_tall_skinny_cuda(base, op);
    return op->out[0].dtype == SDLF_FLOAT32 ? gemm_register_stationary_cuda(base, op)
                                            : gemm_register_stationary64_cuda(base, op);
}

sdlf_status gemm_cuda(sdlf_calculator *base, const sdlf_operation *op)
{
    if (sdlf_tensor_count(&op->out[0]) == 0) return SDLF_OK;
    int algorithm = chosen(base, op);
    switch (algorithm) {
    case GEMM_CUBLAS: return by_cublas(base, op);
    case GEMM_SKINNY_M: return cuda_gemm_skinny_m(base, op);
    case GEMM_SKINNY_N: return cuda_gemm_skinny_n(base, op);
    case GEMM_GEMV: return cuda_gemm_gemv(base, op);
    case GEMM_TALL_SKINNY: return gemm_tall_skinny_cuda(base, op);
    case GEMM_REGISTER_STATIONARY: return by_register_stationary(base, op);
    case GEMM_STORED: return gemm_stored_cuda(base, op);
    default: return lab_gemm(base, op, algorithm - GEMM_LAB);
    }
}
