/* SPDX-License-Identifier: MIT */
/* softmax_cross_entropy: rejected inputs, loss and metrics computed by hand, gradients. */
#include "layers/gradients.h"

static sdlf_node build(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node labels = sdlf_input(model, "labels", SDLF_INT32, SDLF_SCALAR);
    return sdlf_softmax_cross_entropy(model, x[0], labels, options);
}

/* Three positions of each sample. */
static sdlf_node build_sequences(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node labels = sdlf_binary(
        model, &x[0], 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_GREATER, .scalar = 0}); /* (N,T,C) */
    labels = sdlf_cast(model, labels, &(sdlf_cast_options){.dtype = SDLF_VALUE_INT32});
    labels = sdlf_slice(model, labels, &(sdlf_slice_options){.axes = {1, {2}}, .start = {1, {0}}, .end = {1, {1}}});
    labels = sdlf_reshape(model, labels, &(sdlf_reshape_options){.shape = sdlf_shape(3)});
    return sdlf_softmax_cross_entropy(model, x[0], labels, options);
}

/* Images of 2x3 pixels. */
static sdlf_node build_pictures(sdlf_model *model, const sdlf_node *x, const void *options)
{
    sdlf_node labels = sdlf_binary(
        model, &x[0], 1, &(sdlf_binary_layer_options){.function = SDLF_LAYER_GREATER, .scalar = 0}); /* (N,C,H,W) */
    labels = sdlf_cast(model, labels, &(sdlf_cast_options){.dtype = SDLF_VALUE_INT32});
    labels = sdlf_slice(model, labels, &(sdlf_slice_options){.axes = {1, {1}}, .start = {1, {0}}, .end = {1, {1}}});
    labels = sdlf_reshape(model, labels, &(sdlf_reshape_options){.shape = sdlf_shape(2, 3)});
    return sdlf_softmax_cross_entropy(model, x[0], labels, options);
}

static sdlf_node build_from_second_input(sdlf_model *model, const sdlf_node *x, const void *options)
{
    return sdlf_softmax_cross_entropy(model, x[0], x[1], options);
}

static void shapes_are_checked(void)
{
    check_output(build, NULL, sdlf_shape(3), SDLF_SCALAR); /* one loss, as long as the batch of 1 of a built model */
    check_refused(build, NULL, sdlf_shape(3, 1, 1, 1), SDLF_ERROR_SHAPE,
                  "expected an input (N,C) of logits, found 1x3x1x1x1");
    check_refused(build, NULL, sdlf_shape(3, 2, 2), SDLF_ERROR_SHAPE,
                  "expected int32 labels of shape 1x2x2, found int32 1");
    check_refused(build_from_second_input, NULL, sdlf_shape(3), SDLF_ERROR_SHAPE,
                  "expected int32 labels of shape 1, found float32 1x3");
    check_refused(build_from_second_input, NULL, sdlf_shape(2, 3), SDLF_ERROR_SHAPE,
                  "expected int32 labels of shape 1x2, found float32 1x2x3");
    check_refused(build, &(sdlf_softmax_cross_entropy_options){.smoothing = 1}, sdlf_shape(3), SDLF_ERROR_ARGUMENT,
                  "smoothing: expected 0 to 0.999999, found 1");
    CHECK(sdlf_layer_class_find("softmax_cross_entropy")->is_loss);
    CHECK(sdlf_layer_class_find("softmax_cross_entropy")->has_metrics);
}

static const float logits[] = {1, 2, 3, /**/ 0.5f, 0.5f, -1};

/* The loss of the logits above with labels 2 and 1. */
static double expected_loss(double smoothing)
{
    const int labels[] = {2, 1};
    double loss = 0;
    for (int n = 0; n < 2; n++) {
        double sum = 0;
        for (int k = 0; k < 3; k++) sum += exp((double)logits[3 * n + k]);
        for (int k = 0; k < 3; k++) {
            double target = smoothing / 3 + (k == labels[n] ? 1 - smoothing : 0);
            loss -= target * ((double)logits[3 * n + k] - log(sum));
        }
    }
    return loss / 2;
}

static void check_loss(const char *calculator_name, float smoothing)
{
    sdlf_calculator *calculator = NULL;
    sdlf_plan *plan = NULL;
    sdlf_metrics metrics;
    float loss = 0;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    sdlf_model *model = sdlf_model_create("loss");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_output(model, "cost", build(model, &x, &(sdlf_softmax_cross_entropy_options){.smoothing = smoothing}));
    CHECK_OK(
        sdlf_plan_create(&plan, model, &(sdlf_plan_options){.batch = 2, .mode = SDLF_TRAIN, .forward = calculator}));
    CHECK_OK(test_plan_write(plan, "x", logits));
    CHECK_OK(test_plan_write(plan, "labels", (const int32_t[]){2, 1}));
    for (int pass = 1; pass <= 2; pass++) {
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "cost", &loss));
        CHECK_CLOSE(loss, expected_loss((double)smoothing), 1e-6);
        CHECK_OK(sdlf_plan_metrics(plan, &metrics));
        CHECK_CLOSE(metrics.loss_sum, 2 * pass * expected_loss((double)smoothing), 1e-5);
        CHECK(metrics.samples == 2 * pass && metrics.correct == 1 * pass); /* of equal logits the first counts */
    }
    CHECK_OK(sdlf_plan_clear_metrics(plan));
    CHECK_OK(test_plan_write(plan, "labels", (const int32_t[]){2, 3}));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "cost", &loss));
    CHECK_OK(sdlf_plan_metrics(plan, &metrics));
    CHECK(isnan(loss) && isnan(metrics.loss_sum)); /* a label that is none */
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void losses_match(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        check_loss(test_calculator_class_at(index)->name, 0);
        check_loss(test_calculator_class_at(index)->name, 0.3f);
    }
}

static void gradients_match(void)
{
    const layer_case cases[] = {
        {.what = "plain", .build = build, .input = {sdlf_shape(4, 5)}, .unit = 0.125},
        {.what = "smoothed",
         .build = build,
         .options = &(sdlf_softmax_cross_entropy_options){.smoothing = 0.1f},
         .input = {sdlf_shape(3, 4)},
         .unit = 0.25},
        {.what = "sequences", .build = build_sequences, .input = {sdlf_shape(2, 3, 2)}, .unit = 0.125},
        {.what = "pictures", .build = build_pictures, .input = {sdlf_shape(2, 3, 2, 3)}, .unit = 0.125},
    };
    check_all_gradients(cases, sizeof cases / sizeof cases[0]);
}

/* Rows of weight 0 change nothing; those of equal weights give the mean's loss. */
static void check_weights(bool sequences)
{
    enum { ROWS = 5, CLASSES = 3 };
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, "cpu", NULL));
    const float weights[ROWS] = {0.5f, 0, 0, 0.5f, 0};
    const int32_t labels[ROWS] = {1, -1, 7, 2, -1};
    float x[ROWS * CLASSES], loss;
    for (int i = 0; i < ROWS * CLASSES; i++) x[i] = (float)((i * 5) % 7) / 4;
    sdlf_model *model = sdlf_model_create("masked");
    sdlf_node node = sdlf_input(model, "x", SDLF_FLOAT32, sequences ? sdlf_shape(ROWS, CLASSES) : sdlf_shape(CLASSES));
    sdlf_node label = sdlf_input(model, "labels", SDLF_INT32, sequences ? sdlf_shape(ROWS) : SDLF_SCALAR);
    sdlf_node weight = sdlf_input(model, "weights", SDLF_FLOAT32, sequences ? sdlf_shape(ROWS) : SDLF_SCALAR);
    node = sdlf_fully_connected(model, node, &(sdlf_fully_connected_options){.units = CLASSES, .axis = -1});
    node = sdlf_softmax_cross_entropy_weighted(model, node, label, weight, NULL);
    sdlf_plan *plan;
    if (!CHECK_OK(sdlf_plan_create(
            &plan, model,
            &(sdlf_plan_options){.batch = sequences ? 1 : ROWS, .mode = SDLF_TRAIN, .forward = calculator})))
        return;
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(test_plan_write(plan, "labels", labels));
    CHECK_OK(test_plan_write(plan, "weights", weights));
    CHECK_OK(sdlf_plan_step(plan, 0));
    CHECK_OK(test_plan_read(plan, "loss", &loss));
    sdlf_metrics metrics;
    CHECK_OK(sdlf_plan_metrics(plan, &metrics));
    CHECK_EQUAL((int64_t)metrics.samples, 2);
    CHECK_CLOSE(loss, metrics.loss_sum / 2, 1e-6);
    sdlf_plan_free(plan);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

/* Rows are samples, or positions of one. */
static void weights_leave_rows_out(void)
{
    check_weights(false);
    check_weights(true);
}

/* Pixels are rows with strided channels: the same loss, metrics and step as for plain rows; pixels of weight 0 are
 * ignored. */
static void check_pixels(const char *calculator_name)
{
    enum { CLASSES = 3, PIXELS = 6 };
    const int32_t labels[PIXELS] = {1, -1, 2, 0, 2, -1};
    float x[CLASSES * PIXELS], turned[CLASSES * PIXELS], weights[PIXELS], found[2][CLASSES * CLASSES], loss[2];
    sdlf_metrics metrics[2];
    sdlf_calculator *calculator;
    CHECK_OK(sdlf_calculator_open(&calculator, calculator_name, NULL));
    for (int i = 0; i < PIXELS; i++) weights[i] = labels[i] < 0 ? 0 : 0.25f;
    for (int i = 0; i < CLASSES * PIXELS; i++) x[i] = (float)((i * 5) % 7) / 4;
    for (int i = 0; i < CLASSES * PIXELS; i++) turned[i % PIXELS * CLASSES + i / PIXELS] = x[i];
    for (int rows = 0; rows < 2; rows++) {
        sdlf_model *model = sdlf_model_create("pixels");
        sdlf_node node =
            sdlf_input(model, "x", SDLF_FLOAT32, rows ? sdlf_shape(CLASSES) : sdlf_shape(CLASSES, 2, PIXELS / 2));
        sdlf_node label = sdlf_input(model, "labels", SDLF_INT32, rows ? SDLF_SCALAR : sdlf_shape(2, PIXELS / 2));
        sdlf_node weight = sdlf_input(model, "weights", SDLF_FLOAT32, rows ? SDLF_SCALAR : sdlf_shape(2, PIXELS / 2));
        node =
            rows ? sdlf_fully_connected(model, node, &(sdlf_fully_connected_options){.name = "f", .units = CLASSES})
                 : sdlf_conv2d(model, node, &(sdlf_conv2d_options){.name = "f", .filters = CLASSES, .kernel = {1, 1}});
        node = sdlf_softmax_cross_entropy_weighted(model, node, label, weight, NULL);
        CHECK_OK(sdlf_model_build(model, 1));
        float *w = sdlf_model_find_parameter(model, "f.weight")->value.data;
        for (int i = 0; i < CLASSES * CLASSES; i++) w[i] = (float)(i % 4) / 4;
        sdlf_plan *plan;
        if (!CHECK_OK(sdlf_plan_create(
                &plan, model,
                &(sdlf_plan_options){.batch = rows ? PIXELS : 1, .mode = SDLF_TRAIN, .forward = calculator})))
            return;
        CHECK_OK(test_plan_write(plan, "x", rows ? turned : x));
        CHECK_OK(test_plan_write(plan, "labels", labels));
        CHECK_OK(test_plan_write(plan, "weights", weights));
        CHECK_OK(sdlf_plan_step(plan, 1));
        CHECK_OK(test_plan_read(plan, "loss", &loss[rows]));
        CHECK_OK(sdlf_plan_metrics(plan, &metrics[rows]));
        CHECK_OK(sdlf_plan_store_parameters(plan));
        memcpy(found[rows], sdlf_model_find_parameter(model, "f.weight")->value.data, sizeof found[rows]);
        sdlf_plan_free(plan);
        sdlf_model_free(model);
    }
    CHECK_CLOSE(loss[0], loss[1], 1e-6);
    CHECK_CLOSE(metrics[0].loss_sum, metrics[1].loss_sum, 1e-6);
    CHECK(metrics[0].samples == 4 && metrics[1].samples == 4 && metrics[0].correct == metrics[1].correct);
    for (int i = 0; i < CLASSES * CLASSES; i++) CHECK_CLOSE(found[0][i], found[1][i], 1e-6);
    sdlf_calculator_close(calculator);
}

static void pixels_are_rows(void)
{
    for (int index = 0; test_calculator_class_at(index) != NULL; index++)
        check_pixels(test_calculator_class_at(index)->name);
}

int main(void)
{
    RUN(shapes_are_checked);
    RUN(losses_match);
    RUN(gradients_match);
    RUN(weights_leave_rows_out);
    RUN(pixels_are_rows);
    return test_summary();
}
