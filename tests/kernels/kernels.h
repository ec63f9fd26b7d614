/* SPDX-License-Identifier: MIT */
/* Kernel tests: every operation of every calculator, held against `reference`.
 *
 * Generators (cases_*.c, one file a family) emit cases: an operation with shapes and options, and what its operands are
 * to be filled with. The harness (test_kernels.c) binds memory, computes the expected outputs on reference, runs each
 * calculator and compares. To cover another operation, write its generator and put it into the table of families.c. */
#ifndef SDLF_TESTS_KERNELS_H
#define SDLF_TESTS_KERNELS_H

#include <sdlf/calculator.h>

/* ---- cases ---- */

typedef enum kernel_values {
    VALUES_UNIFORM = 0, /* in [-1, 1) */
    VALUES_GRID,        /* multiples of 1/4 in [-1, 1]: values tie, and sums of products are exact */
    VALUES_GRID_NAN,    /* the same with a NaN here and there */
    VALUES_WIDE,        /* in [-20, 20), some in [-1000, 1000): exponentials overflow */
    VALUES_POSITIVE,    /* in [0.1, 1.1) */
    VALUES_OFFSET,      /* in [99, 101): variances cancel */
    VALUES_INTEGERS,    /* whole numbers in [0, limit) */
    VALUES_ANYTHING,    /* of every magnitude, infinities and NaN too; any bits of integers */
    VALUES_HUGE,        /* of either sign, from 2^4 to 2^limit */
} kernel_values;

/* How many elements each row of a sparse matrix has. The columns are drawn, so that some come twice in a row; values
 * are in [-1, 1). */
typedef enum kernel_graph {
    GRAPH_UNIFORM = 0, /* as many each */
    GRAPH_HUB,         /* the middle row half of all, every third none */
    GRAPH_LAST,        /* the last row all of them */
} kernel_graph;

typedef struct kernel_fill {
    kernel_values values;
    int64_t limit; /* of a sparse matrix: its kernel_graph */
} kernel_fill;

typedef struct kernel_case {
    char name[160];           /* made by kernel_emit: kind, what the generator says, dtype */
    sdlf_operation operation; /* no memory is bound */
    kernel_fill in[SDLF_MAX_INPUTS], out[SDLF_MAX_OUTPUTS]; /* out: of those that are updated */
    bool aliased;                                           /* out[0] is the same memory as in[alias] */
    int alias;
    bool
        fills_device; /* large enough to occupy a whole GPU: calculators in the host's memory, for which small ones tell
                        * as much, are spared it */
    bool infinite;    /* some rows hold infinities: see has_its_own_way in check.c */
    /* |found - expected| <= tolerance e max(floor, |expected|), where e is the rounding error of kernel_dtype. 0: the
     * same bits. Integers are always compared by their bits. floor 0 stands for 1. */
    double tolerance, floor;
    /* Set by the harness: the unit by which the calculator's math mode rounds operands. Sums of `tolerance` products of
     * numbers within 1 may then be off by 3 rounding sqrt(tolerance) more: errors of operands are independent, and one
     * product's has a standard deviation below 0.3 rounding, so that this is ten of them. */
    double rounding;
    /* Set by the harness: the operands lie in one block of memory, with guards between them, instead of one each. On a
     * device that is much quicker; apart, tools that watch memory see reads outside an operand, too. */
    bool one_block;
    /* Make inputs that belong to others (an output of the forward pass, say). Optional. The operands lie in the memory
     * of `calculator`, which is the host's. */
    void (*prepare)(sdlf_calculator *calculator, const sdlf_operation *operation);
} kernel_case;

/* Where generators send their cases. */
typedef struct kernel_sink kernel_sink;
struct kernel_sink {
    void (*take)(kernel_sink *sink, const kernel_case *made);
};

void kernel_emit(kernel_sink *sink, const kernel_case *made, const char *format, ...) SDLF_PRINTF(3, 4);

/* A generator emits cases of type t (float32 or float64), or the sizes that --bench times (float32). */
typedef void kernel_generator(kernel_sink *sink, sdlf_dtype t);
kernel_generator memory_cases, memory_bench, gather_cases, gather_bench, gemm_cases, gemm_bench, elementwise_cases,
    elementwise_bench, conv2d_cases, conv2d_bench, conv2d_pool_cases, conv2d_pool_bench, conv2d_inverted_cases,
    conv2d_inverted_bench, pool2d_cases, pool2d_bench, batch_norm_cases, batch_norm_bench, softmax_cases, softmax_bench,
    spmm_cases, spmm_bench, random_cases, random_bench, update_cases, update_bench, broadcast_cases, broadcast_bench,
    indexing_cases, indexing_bench, rows_cases, rows_bench, quantized_cases, quantized_bench, attention_cases,
    attention_bench, recurrent_cases, recurrent_bench;

/* One of each activation function, with options that bite in [-1, 1), and how many of the first are tried as epilogues
 * of every product: those that have a place of their own there, and one that stands for the others. */
enum { KERNEL_ACTIVATIONS = SDLF_ACTIVATION_FUNCTION_COUNT, KERNEL_EPILOGUES = SDLF_ELU + 1 };
extern const sdlf_activation kernel_activation[KERNEL_ACTIVATIONS];
extern const char *const kernel_activation_name[KERNEL_ACTIVATIONS];

static inline sdlf_tensor kernel_tensor(sdlf_dtype dtype, sdlf_shape shape)
{
    return sdlf_tensor_view(dtype, shape, NULL);
}

/* The dtype that a case is about: that of the first output that is there. */
sdlf_dtype kernel_dtype(const sdlf_operation *operation);

/* Run an operation that prepares another's inputs; it must succeed. */
void kernel_prepare(sdlf_calculator *calculator, const sdlf_operation *operation);

/* ---- operands ---- */

/* The bytes of every operand of a case, on the host: from its first element to its last, gaps of strided ones
 * included. */
typedef struct kernel_images {
    unsigned char *in[SDLF_MAX_INPUTS], *out[SDLF_MAX_OUTPUTS];
} kernel_images;

/* Bytes from the first element to the end of the last. */
int64_t kernel_extent(const sdlf_tensor *tensor);

/* Inputs and updated outputs filled by the case's rules from a generator seeded by its name, other outputs poisoned
 * (bytes 0xFF: NaN). `host` computes what `prepare` asks for. */
void kernel_images_make(kernel_images *images, const kernel_case *made, sdlf_calculator *host);
void kernel_images_free(kernel_images *images);

/* The case's operation over these images themselves; for calculators in host memory. */
sdlf_operation kernel_bind(const kernel_case *made, const kernel_images *images);

/* Run the case on a calculator with fresh operands between guard bytes, each `skew` elements off its alignment; with
 * weights prepacked where it wants that and `prepared` says so. Leaves the outputs in `found`. Fails the test, naming
 * `who`, where the kernel fails, touches a guard, or changes an input. */
void kernel_run(kernel_images *found, const kernel_case *made, const kernel_images *images, int algorithm,
                sdlf_calculator *calculator, int skew, bool prepared, const char *who);

/* Compare outputs by the case's tolerance, or by their bits. */
bool kernel_compare(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                    const char *who);
bool kernel_compare_bits(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                         const char *who);

/* Print and count a failure of the case; how many there were so far. */
void kernel_fail(const kernel_case *made, const char *who, const char *format, ...) SDLF_PRINTF(3, 4);
int64_t kernel_failures(void);

/* ---- speed ---- */

/* Which calculators take part, in which math modes. */
typedef struct kernel_bench_choice {
    const char *calculator; /* NULL: all but reference */
    bool one_math;          /* only `math`; else all that it has */
    sdlf_math math;
} kernel_bench_choice;

/* Time `bench` cases whose name contains `filter`; a line each. */
int kernel_bench(kernel_generator *const *generators, int count, const char *filter, const kernel_bench_choice *choice);

#endif
