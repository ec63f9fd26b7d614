/* SPDX-License-Identifier: MIT */
/* Plans over a sparse matrix that consume their parameters, from the model or from its file: only the matrix, which is
 * a constant of the caller, is prepacked, and the weights stay readable. */
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"

#include "testing.h"

enum { NODES = 40, ARCS = 200, FEATURES = 24, HIDDEN = 9, CLASSES = 5, OUT = NODES * CLASSES };

static sdlf_tensor make_matrix(sdlf_dtype dtype)
{
    sdlf_tensor made = {.dtype = SDLF_NONE}, converted = {.dtype = SDLF_NONE};
    if (!CHECK_OK(sdlf_csr_create(&made, NULL, SDLF_FLOAT32, NODES, NODES, ARCS))) exit(1);
    for (int row = 0; row <= NODES; row++) sdlf_csr_offsets(&made)[row] = row * ARCS / NODES;
    for (int e = 0; e < ARCS; e++) {
        sdlf_csr_columns(&made)[e] = (e * 7 + e / 5) % NODES;
        ((float *)sdlf_csr_values(&made))[e] = (float)(e % 9 - 4) / 8;
    }
    CHECK_OK(sdlf_csr_check(&made));
    if (dtype == SDLF_FLOAT32) return made;
    CHECK_OK(sdlf_csr_convert(&converted, &made, dtype));
    sdlf_tensor_release(&made, NULL);
    return converted;
}

static sdlf_model *make_network(void)
{
    sdlf_model *net = sdlf_model_create("graph");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(FEATURES)), matrix = sdlf_sparse_input(net, "matrix");
    x = sdlf_graph_conv(net, x, matrix, &(sdlf_graph_conv_options){.units = HIDDEN});
    x = sdlf_graph_conv(net, sdlf_relu(net, x), matrix, &(sdlf_graph_conv_options){.units = CLASSES});
    sdlf_output(net, "y", sdlf_log_softmax(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

/* The output of the model's plan; frees the model. */
static void run(sdlf_calculator *calculator, sdlf_model *net, sdlf_dtype dtype, bool take, double *y)
{
    static float narrow[NODES * FEATURES];
    static double wide[NODES * FEATURES];
    sdlf_tensor matrix = make_matrix(dtype);
    const sdlf_plan_constant constant = {.input = "matrix", .tensor = matrix};
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = NODES,
                                 .forward = calculator,
                                 .dtype = dtype,
                                 .consume_parameters = take,
                                 .constants = &constant,
                                 .constant_count = 1};
    fill_random(narrow, NODES * FEATURES, 3);
    for (int i = 0; i < NODES * FEATURES; i++) wide[i] = (double)narrow[i];
    memset(y, 0, OUT * sizeof *y);
    if (CHECK_OK(sdlf_plan_create(&plan, net, &options))) {
        CHECK_OK(test_plan_write(plan, "x", dtype == SDLF_FLOAT32 ? (void *)narrow : (void *)wide));
        for (int again = 0; again < 2; again++) CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    sdlf_tensor_release(&matrix, NULL);
}

static void results_are_the_same(void)
{
    const char *path = test_path("graph.safetensors");
    sdlf_model *net = make_network(), *left = NULL;
    CHECK_OK(sdlf_model_save(net, path));
    sdlf_model_free(net);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        for (int wide = 0; wide < 2 && calculator != NULL; wide++) {
            static double expected[OUT], taken[OUT], read[OUT];
            sdlf_dtype dtype = wide ? SDLF_FLOAT64 : SDLF_FLOAT32;
            run(calculator, make_network(), dtype, false, expected);
            run(calculator, make_network(), dtype, true, taken);
            CHECK(memcmp(taken, expected, sizeof expected) == 0);
            if (!CHECK_OK(sdlf_model_open_to_take(&left, path))) continue;
            run(calculator, left, dtype, true, read);
            CHECK(memcmp(read, expected, sizeof expected) == 0);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(results_are_the_same);
    return test_summary();
}
