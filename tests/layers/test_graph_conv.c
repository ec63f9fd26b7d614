/* SPDX-License-Identifier: MIT */
/* graph_conv: shapes, rejected inputs, gradients on every calculator, constants, fusion. */
#include "layers/gradients.h"

/* A directed graph of 5 nodes: a hub, a node without arcs, an arc twice, a loop. Its matrix and the transpose of
 * that. */
enum { NODES = 5, ARCS = 9 };
static const int64_t offsets[NODES + 1] = {0, 4, 5, 5, 8, 9};
static const int32_t columns[ARCS] = {1, 2, 3, 4, 0, 3, 1, 1, 0};
static const float values[ARCS] = {0.5f, -1, 0.25f, 2, 1.5f, 1, -0.5f, 0.75f, 1};

static sdlf_tensor matrices[2][2]; /* [float64][transposed] */

/* A graph as webs are: a node from which, and another to which, a tenth of all arcs go, rows and columns so long that
 * calculators cut them; arcs that come again, loops, and nodes without any. */
enum { WEB_NODES = 120, WEB_ALONE = 10, WEB_ARCS = 3000, WEB_SOURCE = 7, WEB_SINK = 11 };
static sdlf_tensor webs[2][2];

static void complete(sdlf_tensor (*made)[2])
{
    CHECK_OK(sdlf_csr_check(&made[0][0]));
    CHECK_OK(sdlf_csr_transpose(&made[0][1], &made[0][0]));
    CHECK_OK(sdlf_csr_check(&made[0][1]));
    for (int i = 0; i < 2; i++) CHECK_OK(sdlf_csr_convert(&made[1][i], &made[0][i], SDLF_FLOAT64));
}

static void make_web(void)
{
    if (!CHECK_OK(sdlf_csr_create(&webs[0][0], NULL, SDLF_FLOAT32, WEB_NODES, WEB_NODES, WEB_ARCS))) exit(1);
    static int from[WEB_ARCS], to[WEB_ARCS];
    int64_t *offset = sdlf_csr_offsets(&webs[0][0]), at = 0;
    for (int e = 0; e < WEB_ARCS; e++) {
        const sdlf_philox drawn = sdlf_philox4x32(5, (uint64_t)e, 0, 0);
        from[e] = e % 10 == 0 ? WEB_SOURCE : (int)(drawn.word[0] % (WEB_NODES - WEB_ALONE));
        to[e] = e % 10 == 1 ? WEB_SINK : (int)(drawn.word[1] % (WEB_NODES - WEB_ALONE));
    }
    for (int row = 0; row < WEB_NODES; row++) {
        offset[row] = at;
        for (int e = 0; e < WEB_ARCS; e++) {
            if (from[e] != row) continue;
            sdlf_csr_columns(&webs[0][0])[at] = to[e];
            ((float *)sdlf_csr_values(&webs[0][0]))[at++] = (float)(e % 13 - 6) / 64;
        }
    }
    offset[WEB_NODES] = at;
    complete(webs);
    CHECK(offset[WEB_SOURCE + 1] - offset[WEB_SOURCE] >= WEB_ARCS / 10);
    const int64_t *turned = sdlf_csr_offsets(&webs[0][1]);
    CHECK(turned[WEB_SINK + 1] - turned[WEB_SINK] >= WEB_ARCS / 10);
}

static void make_matrices(void)
{
    if (!CHECK_OK(sdlf_csr_create(&matrices[0][0], NULL, SDLF_FLOAT32, NODES, NODES, ARCS))) exit(1);
    memcpy(sdlf_csr_offsets(&matrices[0][0]), offsets, sizeof offsets);
    memcpy(sdlf_csr_columns(&matrices[0][0]), columns, sizeof columns);
    memcpy(sdlf_csr_values(&matrices[0][0]), values, sizeof values);
    complete(matrices);
    make_web();
}

static void free_matrices(void)
{
    for (int i = 0; i < 4; i++) sdlf_tensor_release(&matrices[i / 2][i % 2], NULL);
    for (int i = 0; i < 4; i++) sdlf_tensor_release(&webs[i / 2][i % 2], NULL);
}

static sdlf_node build_directed(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node matrix = sdlf_sparse_input(model, "matrix"), transposed = sdlf_sparse_input(model, "transposed");
    return sdlf_graph_conv_directed(model, x[0], matrix, transposed, options);
}

static sdlf_node build_dense(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_graph_conv(model, x[0], x[0], options);
}

static void gradients_match(void)
{
    sdlf_plan_constant constants[2][2], web[2][2];
    for (int wide = 0; wide < 2; wide++) {
        web[wide][0] = (sdlf_plan_constant){"matrix", webs[wide][0]};
        web[wide][1] = (sdlf_plan_constant){"transposed", webs[wide][1]};
        constants[wide][0] = (sdlf_plan_constant){"matrix", matrices[wide][0]};
        constants[wide][1] = (sdlf_plan_constant){"transposed", matrices[wide][1]};
    }
    const layer_case cases[] = {
        {.what = "with bias",
         .build = build_directed,
         .options = &(sdlf_graph_conv_options){.units = 4},
         .input = {sdlf_shape(NODES, 3)},
         .constants = {constants[0], constants[1]},
         .constant_count = 2},
        {.what = "no bias, more units than inputs",
         .build = build_directed,
         .options = &(sdlf_graph_conv_options){.units = 17, .no_bias = true},
         .input = {sdlf_shape(NODES, 2)},
         .constants = {constants[0], constants[1]},
         .constant_count = 2},
        {.what = "a tenth of all arcs from one node, and to another",
         .build = build_directed,
         .options = &(sdlf_graph_conv_options){.units = 3},
         .input = {sdlf_shape(WEB_NODES, 2)},
         .unit = 0x1p-8,
         .constants = {web[0], web[1]},
         .constant_count = 2},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

static void nonsense_is_refused(void)
{
    check_refused(build_dense, &(sdlf_graph_conv_options){.units = 4}, sdlf_shape(3), SDLF_ERROR_SHAPE,
                  "input 1 is dense, expected a sparse matrix");
    check_refused(build_directed, &(sdlf_graph_conv_options){.units = 0}, sdlf_shape(3), SDLF_ERROR_ARGUMENT, "units");
    check_refused(build_directed, &(sdlf_graph_conv_options){.units = 2}, sdlf_shape(3, 4), SDLF_ERROR_SHAPE,
                  "(N,I) of nodes");
    sdlf_model *model = sdlf_model_create("sparse");
    sdlf_relu(model, sdlf_sparse_input(model, "matrix"));
    CHECK_FAILS(sdlf_model_build(model, 1), SDLF_ERROR_SHAPE, "input 0 is a sparse matrix, expected a dense tensor");
    sdlf_model_free(model);
}

/* log_softmax of one graph_conv, with a symmetric matrix taken from matrices[0][0]. */
static sdlf_model *small_model(void)
{
    sdlf_model *model = sdlf_model_create("small");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3)), matrix = sdlf_sparse_input(model, "matrix");
    x = sdlf_graph_conv(model, x, matrix, &(sdlf_graph_conv_options){.units = 6});
    sdlf_output(model, "y", sdlf_log_softmax(model, x));
    CHECK_OK(sdlf_model_build(model, 5));
    return model;
}

static sdlf_status make_plan(sdlf_plan **plan, sdlf_model *model, sdlf_calculator *calculator,
                             const sdlf_plan_constant *list, int count, bool no_fusion)
{
    return sdlf_plan_create(
        plan, model,
        &(sdlf_plan_options){
            .batch = NODES, .forward = calculator, .constants = list, .constant_count = count, .no_fusion = no_fusion});
}

static void constants_are_checked(void)
{
    static float x[NODES * 3];
    sdlf_calculator *calculator;
    sdlf_plan *plan;
    sdlf_model *model = small_model();
    if (!CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL))) return;
    const sdlf_plan_constant good = {"matrix", matrices[0][0]},
                             dense = {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES, 3), x)};
    CHECK_FAILS(make_plan(&plan, model, calculator, NULL, 0, false), SDLF_ERROR_ARGUMENT,
                "'matrix' is a sparse matrix: it must be among the plan's constants");
    const sdlf_plan_constant unknown[2] = {good, {"graph", matrices[0][0]}}, twice[2] = {good, good};
    CHECK_FAILS(make_plan(&plan, model, calculator, unknown, 2, false), SDLF_ERROR_ARGUMENT, "no input 'graph'");
    CHECK_FAILS(make_plan(&plan, model, calculator, twice, 2, false), SDLF_ERROR_ARGUMENT, "given twice");
    CHECK_FAILS(make_plan(&plan, model, calculator, &(sdlf_plan_constant){"matrix", matrices[1][0]}, 1, false),
                SDLF_ERROR_SHAPE, "is sparse float64 5x5, expected sparse float32 5x5");
    CHECK_FAILS(make_plan(&plan, model, calculator, &(sdlf_plan_constant){"matrix", dense.tensor}, 1, false),
                SDLF_ERROR_SHAPE, "is dense float32 5x3");
    sdlf_tensor nowhere = matrices[0][0];
    nowhere.data = NULL;
    CHECK_FAILS(make_plan(&plan, model, calculator, &(sdlf_plan_constant){"matrix", nowhere}, 1, false),
                SDLF_ERROR_ARGUMENT, "no memory");
    const sdlf_plan_constant both[2] = {dense, good};
    if (CHECK_OK(make_plan(&plan, model, calculator, both, 2, false))) {
        CHECK_FAILS(test_plan_write(plan, "x", x), SDLF_ERROR_ARGUMENT, "constant");
        sdlf_binding binding;
        CHECK_OK(sdlf_plan_input(plan, "x", &binding));
        CHECK(binding.tensor.data == x); /* read where it lies */
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
}

/* On every calculator, fused or not, with a constant x or a written one: the same results as on reference. */
static void inference_agrees(void)
{
    float x[NODES * 3], expected[NODES * 6], found[NODES * 6];
    for (int i = 0; i < NODES * 3; i++) x[i] = (float)(i % 7) - 3;
    const sdlf_plan_constant list[2] = {{"matrix", matrices[0][0]},
                                        {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES, 3), x)}};
    sdlf_model *model = small_model();
    for (int i = 0; test_calculator_class_at(i); i++) {
        sdlf_calculator *calculator;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        for (int variant = 0; variant < 4; variant++) {
            sdlf_plan *plan;
            bool fixed = variant & 1, no_fusion = variant & 2;
            if (!CHECK_OK(make_plan(&plan, model, calculator, list, fixed ? 2 : 1, no_fusion))) continue;
            if (!fixed) CHECK_OK(test_plan_write(plan, "x", x));
            for (int run = 0; run < 3; run++) CHECK_OK(sdlf_plan_forward(plan)); /* recorded in the second */
            CHECK_OK(test_plan_read(plan, "y", found));
            if (i == 0 && variant == 0) memcpy(expected, found, sizeof expected);
            for (int e = 0; e < NODES * 6; e++) CHECK_CLOSE(found[e], expected[e], 2e-6);
            CHECK_EQUAL(sdlf_plan_step_count(plan), no_fusion ? 3 : 2);
            CHECK_OK(sdlf_plan_time_together(plan, 2, 3)); /* recorded by itself */
            CHECK_OK(test_plan_read(plan, "y", found));
            for (int e = 0; e < NODES * 6; e++) CHECK_CLOSE(found[e], expected[e], 2e-6);
            sdlf_plan_free(plan);
        }
        sdlf_calculator_close(calculator);
    }
    sdlf_model_free(model);
}

/* log_softmax over rows other than graph_conv's, three elements of each six: it is not fused into the product. */
static void rows_of_another_shape_stay_apart(void)
{
    float x[NODES * 3], expected[NODES * 6], found[NODES * 6];
    for (int i = 0; i < NODES * 3; i++) x[i] = (float)(i * 7 % 11) / 3 - 1;
    const sdlf_plan_constant list[] = {{"matrix", matrices[0][0]}};
    sdlf_model *model = sdlf_model_create("other rows");
    sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3)), matrix = sdlf_sparse_input(model, "matrix");
    node = sdlf_graph_conv(model, node, matrix, &(sdlf_graph_conv_options){.units = 6});
    node = sdlf_reshape(model, node, &(sdlf_reshape_options){.shape = sdlf_shape(-1, 3), .whole = true});
    sdlf_output(model, "y", sdlf_log_softmax(model, node));
    CHECK_OK(sdlf_model_build(model, 5));
    for (int i = 0; test_calculator_class_at(i); i++) {
        sdlf_calculator *calculator;
        if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
        for (int no_fusion = 1; no_fusion >= 0; no_fusion--) {
            sdlf_plan *plan;
            if (!CHECK_OK(make_plan(&plan, model, calculator, list, 1, no_fusion))) continue;
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", found));
            if (i == 0 && no_fusion) memcpy(expected, found, sizeof expected);
            for (int e = 0; e < NODES * 6; e++) CHECK_CLOSE(found[e], expected[e], 2e-6);
            for (int row = 0; row < NODES * 2; row++) {
                const float *y = &found[3 * row];
                CHECK_CLOSE(expf(y[0]) + expf(y[1]) + expf(y[2]), 1, 2e-6);
            }
            sdlf_plan_free(plan);
        }
        sdlf_calculator_close(calculator);
    }
    sdlf_model_free(model);
}

/* A NaN makes all of a node's outputs NaN, but not those of nodes that are not connected to it; with few and many
 * classes. */
static void nan_stays_in_its_rows(void)
{
    for (int units = 5; units <= 80; units += 75) {
        sdlf_model *model = sdlf_model_create("nan");
        sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3)),
                  matrix = sdlf_sparse_input(model, "matrix");
        node = sdlf_graph_conv(model, node, matrix, &(sdlf_graph_conv_options){.units = units});
        sdlf_output(model, "y", sdlf_log_softmax(model, node));
        CHECK_OK(sdlf_model_build(model, 5));
        float x[NODES * 3] = {0.5f, 1, -1, NAN, 0, 0, 2, 1, 0, INFINITY, 1, 1, 0.5f, -2, 1}, y[NODES * 80];
        const sdlf_plan_constant list[2] = {{"matrix", matrices[0][0]},
                                            {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES, 3), x)}};
        static const bool reached[NODES] = {true, false, false, true, false}; /* by an arc to node 1 or 3 */
        for (int i = 0; test_calculator_class_at(i); i++) {
            sdlf_calculator *calculator;
            sdlf_plan *plan;
            if (!CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(i)->name, NULL))) continue;
            for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
                if (!CHECK_OK(make_plan(&plan, model, calculator, list, 2, no_fusion))) continue;
                CHECK_OK(sdlf_plan_forward(plan));
                CHECK_OK(test_plan_read(plan, "y", y));
                for (int e = 0; e < NODES * units; e++) CHECK_EQUAL(isnan(y[e]) != 0, reached[e / units]);
                sdlf_plan_free(plan);
            }
            sdlf_calculator_close(calculator);
        }
        sdlf_model_free(model);
    }
}

/* The matrix goes to a device that needs it without a step of its own, whichever side the layer's passes run on. */
static void placements_agree(void)
{
    sdlf_calculator *host, *device;
    CHECK_OK(sdlf_calculator_open(&host, "cpu", NULL));
    CHECK_OK(sdlf_calculator_open(&device, test_guarded_class()->name, NULL));
    float x[NODES * 3];
    int32_t labels[NODES] = {0, 5, 2, 1, 4};
    for (int i = 0; i < NODES * 3; i++) x[i] = (float)(i % 7) - 3;
    const sdlf_plan_constant list[2] = {{"matrix", matrices[0][0]},
                                        {"x", sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(NODES, 3), x)}};
    float weights[4][3 * 6];
    for (int placement = 0; placement < 4; placement++) {
        sdlf_model *model = small_model();
        sdlf_plan *plan;
        sdlf_status status = sdlf_plan_create(&plan, model,
                                              &(sdlf_plan_options){.batch = NODES,
                                                                   .mode = SDLF_TRAIN,
                                                                   .forward = placement & 1 ? device : host,
                                                                   .backward = placement & 2 ? device : host,
                                                                   .constants = list,
                                                                   .constant_count = 2});
        if (!CHECK_OK(status)) return;
        CHECK_OK(test_plan_write(plan, "labels", labels));
        for (int step = 0; step < 3; step++) CHECK_OK(sdlf_plan_step(plan, 0.1f));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        memcpy(weights[placement], sdlf_model_parameter(model, 0)->value.data, sizeof weights[0]);
        for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
            sdlf_step_info info = sdlf_plan_step_info(plan, i);
            CHECK(info.phase != SDLF_PHASE_COPY || info.cost.bytes < 500); /* no copy of the matrix */
        }
        sdlf_plan_free(plan);
        sdlf_model_free(model);
    }
    for (int i = 0; i < 4 * 18; i++) CHECK_CLOSE(weights[i / 18][i % 18], weights[0][i % 18], 2e-6);
    sdlf_calculator_close(device);
    sdlf_calculator_close(host);
}

int main(void)
{
    make_matrices();
    RUN(gradients_match);
    RUN(nonsense_is_refused);
    RUN(constants_are_checked);
    RUN(inference_agrees);
    RUN(rows_of_another_shape_stay_apart);
    RUN(nan_stays_in_its_rows);
    RUN(placements_agree);
    free_matrices();
    return test_summary();
}
