/* SPDX-License-Identifier: MIT */
/* gemm: which problems each algorithm supports, and which algorithm "auto" chooses. docs/reference/cuda-algorithms.md has the rule for users.
 * The thresholds are from measurements of every algorithm on an H200. */
#include "calculators/cuda/gemm/convert_operands.h"
#include "calculators/cuda/gemm/gemm.h"

/* ---- what each algorithm supports ---- */

/* A fully connected layer's forward pass, in float32. */
static bool is_forward(const sdlf_operation *op)
{
    return op->out[0].dtype == SDLF_FLOAT32 && !op->gemm.transpose_a && op->gemm.transpose_b;
}

static bool takes_skinny_n(const sdlf_operation *op)
{
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    return is_forward(op) && s.n <= SKINNY_N && s.m <= INT32_MAX;
}

static bool takes_skinny_m(const cuda_calculator *calculator, const sdlf_operation *op)
{
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    return is_forward(op) && s.m <= SKINNY_M && s.m * s.n * 4 <= CUDA_BLAS_WORKSPACE && s.n <= INT32_MAX && s.k > 0 &&
           s.k <= INT32_MAX && s.k % 4 == 0 && calculator->shared_most >= (s.m > 64 ? 222 : 150) << 10 &&
           calculator->math == SDLF_MATH_FP32;
}

static bool takes_gemv(const sdlf_operation *op)
{
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    return is_forward(op) && s.m <= GEMV_ROWS && s.n <= INT32_MAX && s.k > 0 && s.k <= INT32_MAX / GEMV_ROWS &&
           s.k % 8 == 0;
}

/* Tall and narrow GEMMs without transposition and epilogue. */
static bool is_plain(const sdlf_operation *op)
{
    return !op->gemm.transpose_a && !op->gemm.transpose_b && !sdlf_tensor_present(&op->in[2]) &&
           !sdlf_tensor_present(&op->in[3]) && op->gemm.activation.function == SDLF_IDENTITY;
}

static bool takes_tall_skinny(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return is_plain(op) && gemm_tall_skinny_fits(calculator, op);
}

static bool takes_register_stationary(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return is_plain(op) &&
           (gemm_register_stationary_fits(calculator, op) || gemm_register_stationary64_fits(calculator, op));
}

bool cuda_gemm_lies_aligned(const sdlf_operation *op)
{
    return ((uintptr_t)op->in[0].data | (uintptr_t)op->in[1].data) % 16 == 0;
}

/* Rows in 16-bit storage. */
static int stored_choice(const sdlf_operation *op)
{
    return op->out[0].dtype == SDLF_FLOAT32 ? GEMM_CUBLAS : GEMM_STORED;
}

static bool takes_stored(const cuda_calculator *calculator, const sdlf_operation *op, int algorithm)
{
    const int choice = stored_choice(op);
    if (algorithm != GEMM_AUTO && algorithm != choice) return false;
    return choice == GEMM_STORED ? gemm_stored_takes(calculator, op) : gemm_stored_takes_cublas(calculator, op);
}

bool cuda_gemm_takes(const cuda_calculator *calculator, const sdlf_operation *op, int algorithm)
{
    const bool stored = sdlf_operation_storage(op) != SDLF_NONE;
    if (stored) return takes_stored(calculator, op, algorithm);
    switch (algorithm) {
    case GEMM_AUTO:
    case GEMM_CUBLAS: return true;
    case GEMM_SKINNY_M: return takes_skinny_m(calculator, op);
    case GEMM_SKINNY_N: return takes_skinny_n(op);
    case GEMM_GEMV: return takes_gemv(op);
    case GEMM_TALL_SKINNY: return takes_tall_skinny(calculator, op);
    case GEMM_REGISTER_STATIONARY: return takes_register_stationary(calculator, op);
    case GEMM_STORED: return false;
    default: return is_plain(op) && lab_gemm_takes(op, algorithm - GEMM_LAB);
    }
}

/* ---- the rule of "auto" ---- */

bool cuda_gemm_rounds(const cuda_calculator *calculator, const sdlf_operation *op)
{
    return cuda_has_operands16(calculator->math) && op->out[0].dtype == SDLF_FLOAT32;
}

/* Tall and narrow GEMMs: `register-stationary` at memory bandwidth; `tall-skinny` if a is in the L2 cache and there are so many rows that each block
 * of the other would have several tiles. GEMM_AUTO: cuBLAS is as fast. */
static int tall_choice(const cuda_calculator *calculator, const sdlf_operation *op)
{
    enum { LEAST = 1024, MANY = 16384, CACHED = 48 << 20, NARROW = 16, SHORT = 64 };
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    bool wide = op->out[0].dtype == SDLF_FLOAT64, cached = sdlf_tensor_bytes(&op->in[0]) <= CACHED;
    bool many = s.m >= MANY && takes_tall_skinny(calculator, op);
    if (s.m < LEAST || s.k % 4 != 0) return GEMM_AUTO;
    if (wide && !cached) return GEMM_AUTO;
    if (wide && s.k <= NARROW && s.n <= NARROW && many) return GEMM_TALL_SKINNY;
    if (wide && s.n > NARROW / 2 && s.k > 96) return GEMM_AUTO; /* cuBLAS's Tensor Core kernels are well utilised */
    if (takes_register_stationary(calculator, op))
        return many && cached && !wide ? GEMM_TALL_SKINNY : GEMM_REGISTER_STATIONARY;
    return many && !wide && (s.n <= NARROW || s.k <= SHORT) ? GEMM_TALL_SKINNY : GEMM_AUTO;
}

/* The threads of a block share a dot product: with k below SHORT half of them are idle, which matters when rows are many; and with 11
 * columns and more, fewer registers are left for loads in flight. */
static bool suits_skinny_n(const cuda_calculator *calculator, const sdlf_operation *op)
{
    enum { SOME = 2560, MANY = 4096, MORE = 8192, MOST = 16384, SHORT = 512, LONG = 1024, NARROW = 10 };
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    bool exact = calculator->math == SDLF_MATH_FP32;
    if (!takes_skinny_n(op)) return false;
    if (!exact && s.n > NARROW && s.k >= SHORT) return s.m < SOME;
    return s.m < (s.k >= LONG ? MOST : s.k >= SHORT ? MORE : MANY);
}

/* One pass over b, 2 bytes an element if it is prepacked in fp16 and bf16; with more than two rows a large b then takes longer than
 * cuBLAS's GEMM. Where skinny-n also applies, gemv needs k large enough to occupy its threads. */
static bool suits_gemv(const cuda_calculator *calculator, const sdlf_operation *op, bool ready)
{
    enum { ROWS = 2, LONG = 1 << 24, SUM_OF_ROW = 256 };
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    if (!takes_gemv(op) || !cuda_gemm_lies_aligned(op) || (takes_skinny_n(op) && s.k < SUM_OF_ROW * s.m)) return false;
    return !ready || !cuda_gemm_rounds(calculator, op) || s.m <= ROWS || s.n * s.k < LONG;
}

/* With up to 16 rows, reading b is the bound; with more, arithmetic. skinny-m has 64 columns a block, and splits k so that there is a block
 * for each multiprocessor. With more than FULL columns cuBLAS has enough blocks by itself. A split has at least PART elements of k, so a
 * short k leaves multiprocessors idle. */
static bool suits_skinny_m(const cuda_calculator *calculator, const sdlf_operation *op)
{
    enum { LEAST = 16, FULL = 2112, PART = 256, BLOCK = 64 };
    const cuda_gemm_sizes s = cuda_gemm_sizes_of(op);
    bool narrow = s.m <= LEAST && s.n > SKINNY_N && s.k >= PART; /* else at least half a block of columns */
    if (!takes_skinny_m(calculator, op) || !cuda_gemm_lies_aligned(op)) return false;
    if (!narrow && (s.n < BLOCK || s.k < PART)) return false;
    if (s.m <= LEAST) return true;
    if (s.n > FULL) return false;
    int64_t blocks = (s.n + BLOCK - 1) / BLOCK;
    int64_t parts = s.k / PART, most = calculator->multiprocessors / blocks;
    if (parts > most) parts = most;
    return blocks * parts * 2 > calculator->multiprocessors;
}

/* Rows in 16-bit storage: implicit-gemm, which supports nothing else, or cublas if the result is float32. Otherwise, in this order:
 *   register-stationary  at least 1024 rows, up to 16 columns and k up to 128, neither operand transposed, no epilogue
 *   tall-skinny          the same from 16,384 rows on, with up to 32 columns and larger k: tall_choice
 *   gemv                 a (m,k) b (n,k)^T with up to 4 rows: one pass over b, which is the bound
 *   skinny-n             the same with up to 16 columns, but not many rows of small k
 *   skinny-m             the same in fp32 with up to 128 rows, 64 columns or more and k of 256 or more: suits_skinny_m
 *   cublas               everything else */
int cuda_gemm_choose(const cuda_calculator *calculator, const sdlf_operation *op, bool ready)
{
    if (sdlf_operation_storage(op) != SDLF_NONE) return stored_choice(op);
    const int tall = tall_choice(calculator, op);
    if (tall != GEMM_AUTO) return tall;
    if (suits_gemv(calculator, op, ready)) return GEMM_GEMV;
    if (suits_skinny_n(calculator, op)) return GEMM_SKINNY_N;
    return suits_skinny_m(calculator, op) ? GEMM_SKINNY_M : GEMM_CUBLAS;
}

int gemm_automatic_cuda(const sdlf_calculator *base, const sdlf_operation *op)
{
    return cuda_gemm_choose((const cuda_calculator *)base, op, sdlf_tensor_present(&op->prepared));
}
