/* SPDX-License-Identifier: MIT */
/* matmul of bytes: int32 products with zero points subtracted, by the operation on calculators that have it, and by
 * others together elsewhere; zero points of every shape; rejected inputs. */
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { N = 2, M = 5, K = 601, COLUMNS = 19 };

static uint8_t a[N * M * K], b[N * K * COLUMNS], a_zero[N * M], b_zero[N * COLUMNS];

static void fill_bytes(uint8_t *x, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) x[i] = (uint8_t)sdlf_philox4x32(seed, (uint64_t)i, 0, 0).word[0];
}

static int number(const uint8_t *x, int64_t i, sdlf_dtype dtype)
{
    return dtype == SDLF_INT8 ? (int)(int8_t)x[i] : (int)x[i];
}

typedef struct product {
    sdlf_dtype a, b;
    sdlf_shape a_zero, b_zero; /* rank below 0: there is none */
    bool one_b;                /* a matrix for all */
} product;

/* The index of a zero point for sample n and row or column i. */
static int64_t zero_index(sdlf_shape zero, int64_t n, int64_t i, int64_t length)
{
    int64_t count = sdlf_shape_count(zero);
    return count == 1 ? 0 : count == length ? i : n * length + i;
}

static int32_t expected(const product *p, int64_t n, int64_t i, int64_t j)
{
    uint32_t sum = 0;
    for (int64_t k = 0; k < K; k++) {
        int left = number(a, (n * M + i) * K + k, p->a),
            right = number(b, ((p->one_b ? 0 : n) * K + k) * COLUMNS + j, p->b);
        if (p->a_zero.rank >= 0) left -= number(a_zero, zero_index(p->a_zero, n, i, M), p->a);
        if (p->b_zero.rank >= 0) right -= number(b_zero, zero_index(p->b_zero, n, j, COLUMNS), p->b);
        sum += (uint32_t)(left * right);
    }
    return (int32_t)sum;
}

/* An input of bytes, of that shape for the whole batch: one sample of rank + 1 axes, the first of which is removed. */
static sdlf_node input_of(sdlf_model *net, const char *name, sdlf_dtype dtype, sdlf_shape shape)
{
    sdlf_node x = sdlf_input(net, name, dtype, shape);
    return sdlf_reshape(net, x, &(sdlf_reshape_options){.shape = shape, .whole = true});
}

static int check_product(sdlf_calculator *calculator, const product *p)
{
    static int32_t y[N * M * COLUMNS];
    sdlf_model *net = sdlf_model_create("integers");
    sdlf_node x[4];
    int count = 2, steps = 0;
    x[0] = input_of(net, "a", p->a, sdlf_shape(N, M, K));
    x[1] = input_of(net, "b", p->b, p->one_b ? sdlf_shape(K, COLUMNS) : sdlf_shape(N, K, COLUMNS));
    if (p->a_zero.rank >= 0) x[count++] = input_of(net, "a_zero", p->a, p->a_zero);
    if (p->b_zero.rank >= 0) x[count++] = input_of(net, "b_zero", p->b, p->b_zero);
    sdlf_output(net, "y", sdlf_model_add(net, sdlf_layer_class_find("matmul"), NULL, x, count));
    sdlf_plan *plan = NULL;
    if (CHECK_OK(sdlf_model_build(net, 1)) &&
        CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "a", a));
        CHECK_OK(test_plan_write(plan, "b", b));
        if (p->a_zero.rank >= 0) CHECK_OK(test_plan_write(plan, "a_zero", a_zero));
        if (p->b_zero.rank >= 0) CHECK_OK(test_plan_write(plan, "b_zero", b_zero));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
        steps = count_steps(plan, "integer_matmul");
        for (int64_t n = 0; n < N; n++)
            for (int64_t i = 0; i < M; i++)
                for (int64_t j = 0; j < COLUMNS; j++) CHECK_EQUAL(y[(n * M + i) * COLUMNS + j], expected(p, n, i, j));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return steps;
}

static const sdlf_shape none = {.rank = -1};

static void check_all(sdlf_calculator *calculator, bool has_operation)
{
    static const sdlf_dtype types[] = {SDLF_UINT8, SDLF_INT8};
    const sdlf_shape a_zeros[] = {none, sdlf_shape(1), sdlf_shape(M), sdlf_shape(N, M, 1)};
    const sdlf_shape b_zeros[] = {none, sdlf_shape(1), sdlf_shape(COLUMNS), sdlf_shape(N, 1, COLUMNS)};
    for (int i = 0; i < 32; i++) {
        int zeros = i / 8;
        product p = {types[i % 2], types[i / 2 % 2], a_zeros[zeros], b_zeros[zeros], zeros < 3 && i / 4 % 2 == 1};
        if (p.one_b && zeros == 1) p.b_zero = none;  /* one without the other */
        bool operation = has_operation && zeros < 3; /* matrices with zero points of their own are put together */
        CHECK_EQUAL(check_product(calculator, &p), operation ? 1 : 0);
    }
}

static void every_calculator_has_the_same_products(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        check_all(calculator, calculator->type->kernel[SDLF_INTEGER_MATMUL].run != NULL);
        sdlf_calculator_close(calculator);
    }
}

/* `reference` without the operation. */
static void others_put_them_together(void)
{
    static sdlf_calculator_class without;
    sdlf_calculator *reference = test_open("reference");
    without = *reference->type;
    sdlf_calculator_close(reference);
    without.name = "without_integers";
    memset(&without.kernel[SDLF_INTEGER_MATMUL], 0, sizeof without.kernel[0]);
    CHECK_OK(sdlf_register_calculator(&without));
    sdlf_calculator *calculator = test_open("without_integers");
    if (calculator != NULL) check_all(calculator, false);
    sdlf_calculator_close(calculator);
}

static void refused(const char *said, sdlf_dtype left, sdlf_dtype right, sdlf_dtype zero, sdlf_shape zero_shape,
                    bool turned)
{
    sdlf_model *net = sdlf_model_create("refused");
    sdlf_node x[] = {input_of(net, "a", left, sdlf_shape(N, M, K)),
                     input_of(net, "b", right, turned ? sdlf_shape(COLUMNS, K) : sdlf_shape(K, COLUMNS)),
                     input_of(net, "zero", zero, zero_shape)};
    sdlf_matmul_options options = {.transpose_b = turned};
    sdlf_model_add(net, sdlf_layer_class_find("matmul"), &options, x, 3);
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_SHAPE, said);
    sdlf_model_free(net);
}

static void what_does_not_fit_is_refused(void)
{
    refused("expected zero points of uint8 that fit", SDLF_UINT8, SDLF_INT8, SDLF_INT8, sdlf_shape(1), false);
    refused("expected zero points of uint8 that fit", SDLF_UINT8, SDLF_INT8, SDLF_UINT8, sdlf_shape(M + 1), false);
    refused("it has zero points", SDLF_FLOAT32, SDLF_FLOAT32, SDLF_UINT8, sdlf_shape(1), false);
    refused("expected matrices that are not transposed", SDLF_UINT8, SDLF_INT8, SDLF_UINT8, sdlf_shape(1), true);
}

int main(void)
{
    fill_bytes(a, sizeof a, 1);
    fill_bytes(b, sizeof b, 2);
    fill_bytes(a_zero, sizeof a_zero, 3);
    fill_bytes(b_zero, sizeof b_zero, 4);
    RUN(every_calculator_has_the_same_products);
    RUN(others_put_them_together);
    RUN(what_does_not_fit_is_refused);
    return test_summary();
}
