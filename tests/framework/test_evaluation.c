/* SPDX-License-Identifier: MIT */
/* sdlf_evaluate: counts, losses of every kind of output, batches of any size, rejected arguments. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/synthetic.h"

enum { COUNT = 37, PIXELS = SYNTHETIC_SIDE * SYNTHETIC_SIDE };

typedef sdlf_node head_builder(sdlf_model *model, sdlf_node x);

static sdlf_node no_head(sdlf_model *model, sdlf_node x)
{
    (void)model;
    return x;
}

static sdlf_model *linear_model(head_builder *head)
{
    sdlf_model *model = sdlf_model_create("linear");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", head(model, x));
    CHECK_OK(sdlf_model_build(model, 9));
    return model;
}

/* The same, computed here in double. */
static sdlf_evaluation expect(sdlf_model *model, const sdlf_dataset *data, float mean, float scale, int64_t *confusion)
{
    const float *weight = sdlf_model_find_parameter(model, "f.weight")->value.data;
    const float *bias = sdlf_model_find_parameter(model, "f.bias")->value.data;
    const uint8_t *pixel = data->samples.data;
    const int32_t *label = data->labels.data;
    sdlf_evaluation expected = {.samples = COUNT, .class_count = SYNTHETIC_CLASSES, .confusion = confusion};
    for (int k = 0; k < SYNTHETIC_CLASSES * SYNTHETIC_CLASSES; k++) confusion[k] = 0;
    for (int n = 0; n < COUNT; n++) {
        double logit[SYNTHETIC_CLASSES], sum = 0;
        int best = 0;
        for (int k = 0; k < SYNTHETIC_CLASSES; k++) {
            logit[k] = (double)bias[k];
            for (int e = 0; e < PIXELS; e++)
                logit[k] +=
                    (double)weight[k * PIXELS + e] * ((double)pixel[n * PIXELS + e] - (double)mean) * (double)scale;
            sum += exp(logit[k]);
            if (logit[k] > logit[best]) best = k;
        }
        expected.loss += (log(sum) - logit[label[n]]) / COUNT;
        expected.correct += best == label[n];
        confusion[label[n] * SYNTHETIC_CLASSES + best]++;
    }
    return expected;
}

static void check_evaluation(sdlf_calculator *calculator, head_builder *head, int64_t batch)
{
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(head);
    sdlf_evaluation found;
    int64_t confusion[SYNTHETIC_CLASSES * SYNTHETIC_CLASSES];
    sdlf_evaluation expected = expect(model, &data, data.mean, data.scale, confusion);
    if (CHECK_OK(sdlf_evaluate(&found, model, &data, calculator, batch))) {
        CHECK_EQUAL(found.samples, COUNT);
        CHECK_EQUAL(found.class_count, SYNTHETIC_CLASSES);
        CHECK_EQUAL(found.correct, expected.correct);
        CHECK_CLOSE(found.loss, expected.loss, 1e-5);
        CHECK(found.seconds > 0);
        CHECK(memcmp(found.confusion, confusion, sizeof confusion) == 0);
        sdlf_evaluation_release(&found);
    }
    CHECK(found.confusion == NULL);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void outputs_of_all_kinds_agree(void)
{
    head_builder *const heads[] = {no_head, sdlf_softmax, sdlf_log_softmax};
    const int64_t batches[] = {0, 1, 16, COUNT, 1000};
    for (int index = 0; test_calculator_class_at(index) != NULL; index++) {
        sdlf_calculator *calculator = NULL;
        CHECK_OK(sdlf_calculator_open(&calculator, test_calculator_class_at(index)->name, NULL));
        for (int head = 0; head < 3; head++)
            for (int batch = 0; batch < 5; batch++) check_evaluation(calculator, heads[head], batches[batch]);
        sdlf_calculator_close(calculator);
    }
}

static sdlf_calculator *open_reference(void)
{
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, "reference", NULL));
    return calculator;
}

/* A network whose input shape includes the batch, as in ONNX files of one batch size, gets that many samples at a time,
 * whatever is requested; training rejects other batch sizes. */
static void a_batch_that_is_fixed(void)
{
    for (int batch = 5; batch <= 2 * COUNT; batch += 36) {
        char text[512];
        sdlf_calculator *reference = open_reference();
        sdlf_dataset data = synthetic_dataset(COUNT, 4);
        sdlf_model *model = linear_model(sdlf_softmax), *fixed = NULL;
        sdlf_evaluation found, expected;
        snprintf(text, sizeof text,
                 "{\"name\":\"fixed\",\"input\":{\"name\":\"image\",\"shape\":[%d,1,%d,%d],\"whole\":true},\"layers\":["
                 "{\"type\":\"fully_connected\",\"name\":\"f\",\"units\":%d},{\"type\":\"softmax\",\"name\":\"s\"}]}",
                 batch, SYNTHETIC_SIDE, SYNTHETIC_SIDE, SYNTHETIC_CLASSES);
        CHECK_OK(sdlf_network_parse(&fixed, text, strlen(text), "fixed"));
        CHECK_OK(sdlf_model_build(fixed, 9));
        CHECK_OK(sdlf_evaluate(&expected, model, &data, reference, 8));
        CHECK_OK(sdlf_evaluate(&found, fixed, &data, reference, 8));
        CHECK_EQUAL(found.samples, COUNT);
        CHECK_EQUAL(found.correct, expected.correct);
        CHECK_CLOSE(found.loss, expected.loss, 1e-5);
        sdlf_evaluation_release(&found);
        sdlf_evaluation_release(&expected);
        sdlf_plan *plan = NULL;
        snprintf(text, sizeof text, "'f' gives scores of %d samples whatever the batch is, which has 8", batch);
        CHECK_FAILS(
            sdlf_plan_create(&plan, fixed, &(sdlf_plan_options){.batch = 8, .mode = SDLF_TRAIN, .forward = reference}),
            SDLF_ERROR_SHAPE, text);
        sdlf_model_free(fixed);
        sdlf_model_free(model);
        synthetic_release(&data);
        sdlf_calculator_close(reference);
    }
}

static void the_models_normalisation_counts(void)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(sdlf_softmax);
    sdlf_evaluation found;
    int64_t confusion[SYNTHETIC_CLASSES * SYNTHETIC_CLASSES];
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 10, .scale = 0.03f, .known = true};
    sdlf_evaluation expected = expect(model, &data, 10, 0.03f, confusion);
    CHECK_OK(sdlf_evaluate(&found, model, &data, reference, 8));
    CHECK_CLOSE(found.loss, expected.loss, 1e-5);
    sdlf_evaluation_release(&found);
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

/* The network's own loss layer and its labels are ignored; the first output that is not a loss is evaluated. */
static void a_loss_layer_is_left_aside(void)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = sdlf_model_create("own loss");
    sdlf_evaluation found;
    int64_t confusion[SYNTHETIC_CLASSES * SYNTHETIC_CLASSES];
    sdlf_node target = sdlf_input(model, "target", SDLF_INT32, SDLF_SCALAR);
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "f", .units = SYNTHETIC_CLASSES});
    sdlf_output(model, "cost", sdlf_softmax_cross_entropy(model, x, target, NULL));
    sdlf_output(model, "class", x);
    CHECK_OK(sdlf_evaluate(&found, model, &data, reference, 10));
    CHECK_CLOSE(found.loss, expect(model, &data, data.mean, data.scale, confusion).loss, 1e-5);
    sdlf_evaluation_release(&found);

    sdlf_trainer *trainer = NULL; /* but training uses them */
    CHECK_OK(sdlf_trainer_create(&trainer, model, &data, NULL,
                                 &(sdlf_trainer_options){.batch = 8, .epochs = 20, .forward = "reference"}));
    double before = expect(model, &data, data.mean, data.scale, confusion).loss;
    CHECK_OK(sdlf_trainer_run(trainer));
    CHECK(expect(model, &data, data.mean, data.scale, confusion).loss < 0.8 * before);
    sdlf_trainer_free(trainer);
    CHECK_FAILS(sdlf_trainer_create(&trainer, model, &data, NULL,
                                    &(sdlf_trainer_options){.forward = "reference", .label_smoothing = 0.1f}),
                SDLF_ERROR_ARGUMENT, "'own loss' has one: give it there");
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

static void check_refused(sdlf_model *model, int64_t batch, sdlf_status status, const char *text)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_evaluation found;
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, batch), status, text);
    CHECK(found.confusion == NULL);
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

static void nonsense_is_refused(void)
{
    check_refused(linear_model(no_head), -1, SDLF_ERROR_ARGUMENT, "expected a batch of at least 1, found -1");
    sdlf_model *model = sdlf_model_create("other");
    sdlf_input(model, "a", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    sdlf_input(model, "b", SDLF_FLOAT32, sdlf_shape(1, 8, 8));
    check_refused(model, 0, SDLF_ERROR_SHAPE, "a data set fills one input, but there are 'a' and 'b'");
    model = sdlf_model_create("other");
    sdlf_relu(model, sdlf_input(model, "a", SDLF_FLOAT32, sdlf_shape(1, 8, 8)));
    check_refused(model, 0, SDLF_ERROR_SHAPE, "network 'other' has no output");
    model = sdlf_model_create("other");
    sdlf_output(model, "y", sdlf_relu(model, sdlf_input(model, "a", SDLF_FLOAT32, sdlf_shape(1, 8, 8))));
    check_refused(model, 0, SDLF_ERROR_SHAPE,
                  "output 'y' gives float32 1x8x8 for a sample, but synthetic has 3 classes");
    model = sdlf_model_create("other");
    sdlf_output(model, "y", sdlf_flatten(model, sdlf_input(model, "a", SDLF_UINT8, sdlf_shape(1, 8, 8))));
    check_refused(model, 0, SDLF_ERROR_SHAPE, "output 'y' gives uint8 64 for a sample");
}

static void a_scale_of_0_is_refused(void)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(no_head);
    sdlf_evaluation found;
    data.scale = 0;
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, 4), SDLF_ERROR_ARGUMENT,
                "data set synthetic: samples would become (x - 60) * 0: expected numbers, and a scale that is not 0");
    data.scale = NAN;
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, 4), SDLF_ERROR_ARGUMENT, "data set synthetic");
    *sdlf_model_normalization(model) = (sdlf_normalization){.mean = 10, .scale = 0.03f, .known = true};
    if (CHECK_OK(sdlf_evaluate(&found, model, &data, reference, 4))) sdlf_evaluation_release(&found);
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

static void bad_labels_are_refused(void)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(no_head);
    sdlf_evaluation found;
    ((int32_t *)data.labels.data)[7] = SYNTHETIC_CLASSES;
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, 4), SDLF_ERROR_ARGUMENT,
                "data set synthetic: label 7: expected 0 to 2, found 3");
    data.labels.shape = sdlf_shape(COUNT - 1);
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, 4), SDLF_ERROR_SHAPE,
                "expected int32 labels of shape 37, or of each pixel, or float32 targets (37,3), found int32 36");
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

static sdlf_status attempt(void *argument)
{
    sdlf_calculator *calculator = NULL;
    sdlf_evaluation evaluation = {.class_count = 0};
    sdlf_model *model = sdlf_model_create("linear");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    sdlf_status status = sdlf_calculator_open(&calculator, "reference", NULL);
    if (status == SDLF_OK) status = sdlf_evaluate(&evaluation, model, argument, calculator, 16);
    sdlf_evaluation_release(&evaluation);
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
    return status;
}

/* Values that were left in their file are read from it, once. */
static void weights_are_taken_from_their_file(void)
{
    const char *path = test_path("linear.safetensors");
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(sdlf_softmax);
    sdlf_evaluation found, expected;
    CHECK_OK(sdlf_model_save(model, path));
    CHECK_OK(sdlf_evaluate(&expected, model, &data, reference, 8));
    sdlf_model_free(model);
    CHECK_OK(sdlf_model_open_to_take(&model, path));
    if (CHECK_OK(sdlf_evaluate(&found, model, &data, reference, 8))) {
        CHECK_EQUAL(found.correct, expected.correct);
        CHECK_EQUAL(found.loss, expected.loss);
        sdlf_evaluation_release(&found);
    }
    CHECK_FAILS(sdlf_evaluate(&found, model, &data, reference, 8), SDLF_ERROR_ARGUMENT, "taken");
    sdlf_evaluation_release(&expected);
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

static void memory_may_run_out(void)
{
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    test_every_allocation("sdlf_evaluate", attempt, &data);
    synthetic_release(&data);
}

/* How often the callback may still return true. */
static bool go_on(void *user)
{
    return --*(int *)user >= 0;
}

/* The metrics of the samples seen so far equal those of a data set that ends there. */
static void it_may_end_early(void)
{
    sdlf_calculator *reference = open_reference();
    sdlf_dataset data = synthetic_dataset(COUNT, 4), first = data;
    sdlf_model *model = linear_model(sdlf_softmax);
    sdlf_evaluation cut, expected;
    int left = 2;
    first.samples.shape.dim[0] = first.labels.shape.dim[0] = 24;
    CHECK_OK(sdlf_evaluate_while(&cut, model, &data, reference, 8, go_on, &left)); /* true twice, then false */
    CHECK_OK(sdlf_evaluate(&expected, model, &first, reference, 8));
    CHECK_EQUAL(cut.samples, 24);
    CHECK_EQUAL(cut.correct, expected.correct);
    CHECK_CLOSE(cut.loss, expected.loss, 0);
    sdlf_evaluation_release(&cut);
    sdlf_evaluation_release(&expected);
    sdlf_model_free(model);
    synthetic_release(&data);
    sdlf_calculator_close(reference);
}

/* The mean of the network's outputs over the views, computed from views created here. */
static void check_views(sdlf_views views)
{
    static const struct {
        bool flip;
        int by;
        double weight[SDLF_VIEWS_COUNT];
    } all[] = {{false, 0, {1, 0.5, 0.25}}, {true, 0, {0, 0.5, 0.25}}, {false, -1, {0, 0, 0.125}},
               {true, -1, {0, 0, 0.125}},  {false, 1, {0, 0, 0.125}}, {true, 1, {0, 0, 0.125}}};
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(no_head);
    sdlf_calculator *calculator = test_open(synthetic_calculator());
    const float *weight = sdlf_model_find_parameter(model, "f.weight")->value.data;
    const float *bias = sdlf_model_find_parameter(model, "f.bias")->value.data;
    const uint8_t *pixel = data.samples.data;
    double loss = 0;
    for (int n = 0; n < COUNT; n++) {
        double logit[SYNTHETIC_CLASSES] = {0}, sum = 0;
        for (size_t v = 0; v < sizeof all / sizeof all[0]; v++)
            for (int k = 0; k < SYNTHETIC_CLASSES; k++)
                for (int e = -1; e < PIXELS; e++) {
                    int h = e / SYNTHETIC_SIDE - all[v].by, w = e % SYNTHETIC_SIDE;
                    w = (all[v].flip ? SYNTHETIC_SIDE - 1 - w : w) - all[v].by;
                    h = h < 0 ? -h : h >= SYNTHETIC_SIDE ? 2 * SYNTHETIC_SIDE - 2 - h : h;
                    w = w < 0 ? -w : w >= SYNTHETIC_SIDE ? 2 * SYNTHETIC_SIDE - 2 - w : w;
                    double x = e < 0 ? 1 : ((double)pixel[n * PIXELS + h * SYNTHETIC_SIDE + w] - 60) / 64;
                    logit[k] += all[v].weight[views] * x * (double)(e < 0 ? bias[k] : weight[k * PIXELS + e]);
                }
        for (int k = 0; k < SYNTHETIC_CLASSES; k++) sum += exp(logit[k]);
        loss += (log(sum) - logit[((const int32_t *)data.labels.data)[n]]) / COUNT;
    }
    sdlf_evaluation found;
    if (CHECK_OK(sdlf_evaluate_with(&found, model, &data, calculator,
                                    &(sdlf_evaluation_options){.batch = 10, .views = views})))
        CHECK_CLOSE(found.loss, loss, 1e-4);
    sdlf_evaluation_release(&found);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void views_are_averaged(void)
{
    for (int views = 0; views < SDLF_VIEWS_COUNT; views++) check_views((sdlf_views)views);
    sdlf_dataset data = synthetic_dataset(COUNT, 4);
    sdlf_model *model = linear_model(no_head);
    sdlf_calculator *calculator = test_open(synthetic_calculator());
    sdlf_evaluation none;
    CHECK_FAILS(
        sdlf_evaluate_with(&none, model, &data, calculator, &(sdlf_evaluation_options){.views = SDLF_VIEWS_COUNT}),
        SDLF_ERROR_ARGUMENT, "expected one of sdlf_views");
    CHECK_OK(sdlf_evaluate_with(&none, model, &data, calculator, NULL));
    sdlf_evaluation_release(&none);
    sdlf_calculator_close(calculator);
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(outputs_of_all_kinds_agree);
    RUN(a_batch_that_is_fixed);
    RUN(the_models_normalisation_counts);
    RUN(a_loss_layer_is_left_aside);
    RUN(it_may_end_early);
    RUN(nonsense_is_refused);
    RUN(a_scale_of_0_is_refused);
    RUN(bad_labels_are_refused);
    RUN(weights_are_taken_from_their_file);
    RUN(memory_may_run_out);
    RUN(views_are_averaged);
    return test_summary();
}
