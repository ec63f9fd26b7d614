/* SPDX-License-Identifier: MIT */
/* Direct convolutions on cpu with fewer images than threads: the same bits at any number of threads and with any fusion, and as on reference. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { MOST = 2 * 33 * 23 * 19 };

typedef struct direct_case {
    int n, c, h, w, k, size, padding, pool; /* pool: its window, 0: none */
    int function;                           /* SDLF_UNARY_...; -1: none */
    bool residual;
} direct_case;

static const direct_case cases[] = {
    {1, 8, 5, 5, 16, 3, 1, 0, SDLF_UNARY_GELU, false},
    {1, 8, 11, 11, 16, 3, 1, 0, SDLF_UNARY_GELU, false},
    {2, 3, 23, 19, 33, 5, 2, 0, SDLF_UNARY_SILU, false},
    {1, 6, 9, 14, 20, 3, 2, 0, SDLF_UNARY_SOFTPLUS, false},
    {1, 8, 12, 7, 8, 3, 1, 0, -1, true},
    {1, 5, 13, 11, 17, 5, 0, 2, -1, false},
    {2, 4, 9, 9, 16, 3, 1, 2, -1, false},
    {1, 1, 28, 28, 10, 5, 2, 2, -1, false},
    {1, 3, 3, 30, 32, 3, 0, 0, SDLF_UNARY_GELU, false},
    {2, 20, 6, 6, 5, 5, 4, 0, SDLF_UNARY_MISH, false},
};

static sdlf_model *make(const direct_case *d)
{
    sdlf_model *net = sdlf_model_create("direct");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(d->c, d->h, d->w));
    const sdlf_conv2d_options options = {
        .filters = d->k, .kernel = {d->size, d->size}, .padding = {d->padding, d->padding}};
    sdlf_node y = sdlf_conv2d(net, x, &options);
    if (d->residual) y = sdlf_add(net, y, x);
    if (d->function >= 0) y = sdlf_unary(net, y, &(sdlf_unary_options){.function = d->function});
    if (d->pool > 0) y = sdlf_max_pool2d(net, sdlf_relu(net, y), &(sdlf_pool2d_options){.window = {d->pool, d->pool}});
    sdlf_output(net, "y", y);
    CHECK_OK(sdlf_model_build(net, 2));
    return net;
}

/* Runs a case on a calculator with that many threads. Returns the number of results. */
static int run(const direct_case *d, const char *name, int threads, bool parts, float *y)
{
    static float x[MOST];
    int count = 0;
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    sdlf_model *net = make(d);
    fill_random(x, MOST, 9);
    if (CHECK_OK(sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.threads = threads})) &&
        CHECK_OK(sdlf_plan_create(&plan, net,
                                  &(sdlf_plan_options){.batch = d->n, .forward = calculator, .no_fusion = parts})) &&
        CHECK_OK(sdlf_plan_output(plan, "y", &binding))) {
        count = (int)sdlf_tensor_count(&binding.tensor);
        CHECK(count <= MOST && d->n * d->c * d->h * d->w <= MOST);
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_calculator_close(calculator);
    return count;
}

static void bits_are_the_same_at_any_number_of_threads(void)
{
    static const int threads[] = {2, 3, 7, 40};
    static float expected[MOST], one[MOST], found[MOST];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int parts = 0; parts < 2; parts++) {
            const int count = run(&cases[i], "cpu", 1, parts, one);
            CHECK_EQUAL(run(&cases[i], "reference", 1, parts, expected), count);
            for (int j = 0; j < count; j++)
                CHECK_CLOSE((double)one[j], (double)expected[j], 2e-5 * (1 + fabs((double)expected[j])));
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                CHECK_EQUAL(run(&cases[i], "cpu", threads[t], parts, found), count);
                CHECK(memcmp(one, found, (size_t)count * sizeof *one) == 0);
            }
        }
    }
}

int main(void)
{
    RUN(bits_are_the_same_at_any_number_of_threads);
    return test_summary();
}
