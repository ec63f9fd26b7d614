/* SPDX-License-Identifier: MIT */
/* Kernel tests: every operation of every calculator, held against `reference`.
 *
 * Generators (cases_*.c, one file per family) emit cases: an operation with shapes and options, and the kind of values
 * for its operands. The harness (test_kernels.c) binds memory, computes the expected outputs on reference, runs each
 * calculator and compares. To cover another operation, write its generator and add it to the table in families.c. */
#ifndef SDLF_TESTS_KERNELS_H
#define SDLF_TESTS_KERNELS_H

#include <sdlf/calculator.h>

/* ---- cases ---- */

typedef enum kernel_values {
    VALUES_UNIFORM = 0, /* in [-1, 1) */
    VALUES_GRID,        /* multiples of 1/4 in [-1, 1]: values tie, and dot products are exact */
    VALUES_GRID_NAN,    /* the same with a NaN here and there */
    VALUES_WIDE,        /* in [-20, 20), some in [-1000, 1000): exponentials overflow */
    VALUES_POSITIVE,    /* in [0.1, 1.1) */
    VALUES_OFFSET,      /* in [99, 101): variances cancel */
    VALUES_INTEGERS,    /* integers in [0, limit) */
    VALUES_ANYTHING,    /* of every magnitude, including infinities and NaN; integers: any bits */
    VALUES_HUGE,        /* of either sign, from 2^4 to 2^limit */
} kernel_values;

/* The distribution of elements over the rows of a sparse matrix. Columns are random, so that some occur twice in a row;
 * values are in [-1, 1). */
typedef enum kernel_graph {
    GRAPH_UNIFORM = 0, /* the same number in each row */
    GRAPH_HUB,         /* half of all in the middle row, none in every third */
    GRAPH_LAST,        /* all in the last row */
} kernel_graph;

typedef struct kernel_fill {
    kernel_values values;
    int64_t limit; /* for a sparse matrix: its kernel_graph */
} kernel_fill;

typedef struct kernel_case {
    char name[160];                                         /* set by kernel_emit: kind, the generator's text, dtype */
    sdlf_operation operation;                               /* without memory */
    kernel_fill in[SDLF_MAX_INPUTS], out[SDLF_MAX_OUTPUTS]; /* out: of those updated in place */
    bool aliased;                                           /* out[0] is the same memory as in[alias] */
    int alias;
    bool fills_device; /* large enough to occupy a whole GPU: skipped on calculators in host memory, where small cases
                        * test as much */
    bool infinite;     /* some rows hold infinities: see has_its_own_way in check.c */
    /* |found - expected| <= tolerance e max(floor, |expected|), where e is the rounding error of kernel_dtype. 0:
     * identical bits. Integers are always compared bitwise. floor 0 means 1. */
    double tolerance, floor;
    /* Set by the harness: the unit roundoff of operands in the calculator's math mode. Dot products of `tolerance`
     * terms up to 1 may then be off by 3 rounding sqrt(tolerance) more: errors of operands are independent, and that of
     * one product has a standard deviation below 0.3 rounding, so that this is ten standard deviations. */
    double rounding;
    /* Set by the harness: the operands share one block of memory, with guards between them, instead of one block each.
     * This is much faster on a device; with separate blocks, memory checkers also see reads outside an operand. */
    bool one_block;
    /* Compute inputs that depend on others (such as an output of the forward pass). Optional. The operands are in the
     * memory of `calculator`, which is host memory. */
    void (*prepare)(sdlf_calculator *calculator, const sdlf_operation *operation);
} kernel_case;

/* The receiver of the generators' cases. */
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

/* One of each activation function, with options that take effect in [-1, 1), and how many of the first are tried as
 * epilogues of every GEMM: those with dedicated code there, and one to represent the others. */
enum { KERNEL_ACTIVATIONS = SDLF_ACTIVATION_FUNCTION_COUNT, KERNEL_EPILOGUES = SDLF_ELU + 1 };
extern const sdlf_activation kernel_activation[KERNEL_ACTIVATIONS];
extern const char *const kernel_activation_name[KERNEL_ACTIVATIONS];

static inline sdlf_tensor kernel_tensor(sdlf_dtype dtype, sdlf_shape shape)
{
    return sdlf_tensor_view(dtype, shape, NULL);
}

/* The dtype of a case: that of its first present output. */
sdlf_dtype kernel_dtype(const sdlf_operation *operation);

/* Run an operation that computes another's inputs; it must succeed. */
void kernel_prepare(sdlf_calculator *calculator, const sdlf_operation *operation);

/* ---- operands ---- */

/* The bytes of every operand of a case, on the host, from the first element to the last, including the gaps of strided
 * operands. */
typedef struct kernel_images {
    unsigned char *in[SDLF_MAX_INPUTS], *out[SDLF_MAX_OUTPUTS];
} kernel_images;

/* Bytes from the first element to the end of the last. */
int64_t kernel_extent(const sdlf_tensor *tensor);

/* Fill inputs and updated outputs by the case's rules, from a random generator seeded by its name, and poison other
 * outputs (bytes 0xFF: NaN). `host` computes the operations of `prepare`. */
void kernel_images_make(kernel_images *images, const kernel_case *made, sdlf_calculator *host);
void kernel_images_free(kernel_images *images);

/* The case's operation on these images directly; for calculators in host memory. */
sdlf_operation kernel_bind(const kernel_case *made, const kernel_images *images);

/* Run the case on a calculator with fresh operands between guard bytes, each `skew` elements off its alignment; weights
 * are prepacked if the kernel uses that and `prepared` is set. Writes the outputs to `found`. Fails the test, naming
 * `who`, if the kernel fails, overwrites a guard, or changes an input. */
void kernel_run(kernel_images *found, const kernel_case *made, const kernel_images *images, int algorithm,
                sdlf_calculator *calculator, int skew, bool prepared, const char *who);

/* Compare outputs within the case's tolerance, or bitwise. */
bool kernel_compare(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                    const char *who);
bool kernel_compare_bits(const kernel_case *made, const kernel_images *found, const kernel_images *expected,
                         const char *who);

/* Print and count a failure of the case; the number of failures so far. */
void kernel_fail(const kernel_case *made, const char *who, const char *format, ...) SDLF_PRINTF(3, 4);
int64_t kernel_failures(void);

/* ---- speed ---- */

/* Which calculators take part, in which math modes. */
typedef struct kernel_bench_choice {
    const char *calculator; /* NULL: all but reference */
    bool one_math;          /* only `math`; else all modes it has */
    sdlf_math math;
} kernel_bench_choice;

/* Time the `bench` cases whose names contain `filter`; prints a line each. */
int kernel_bench(kernel_generator *const *generators, int count, const char *filter, const kernel_bench_choice *choice);

#endif
