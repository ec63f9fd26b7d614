/* SPDX-License-Identifier: MIT */
/* Pixel labels are warped with their pixels: in a loader's batches, in training, and in evaluation. */
#include "framework/warp_labels.h"

#include <math.h>
#include <stdlib.h>

#include "framework/synthetic.h"

enum { COUNT = 20, SIDE = 12, AREA = SIDE * SIDE, CLASSES = 3 };

/* Images whose pixels are 50 (label + 1); one in seven has label -1 and value 200. */
static sdlf_dataset make_data(void)
{
    static char name[] = "pixels";
    sdlf_dataset data = {.name = name, .class_count = CLASSES, .mean = 0, .scale = 1};
    CHECK_OK(sdlf_tensor_create(&data.samples, NULL, SDLF_UINT8, sdlf_shape(COUNT, 1, SIDE, SIDE)));
    CHECK_OK(sdlf_tensor_create(&data.labels, NULL, SDLF_INT32, sdlf_shape(COUNT, SIDE, SIDE)));
    for (int64_t i = 0; i < COUNT * AREA; i++) {
        uint32_t word = sdlf_philox4x32(3, (uint64_t)i, 1, 0).word[0];
        int32_t label = word % 7 == 0 ? -1 : (int32_t)(word >> 8) % CLASSES;
        ((int32_t *)data.labels.data)[i] = label;
        ((uint8_t *)data.samples.data)[i] = (uint8_t)(label < 0 ? 200 : 50 * (label + 1));
    }
    return data;
}

static int32_t label_of(float pixel)
{
    return pixel == 0 || pixel == 200 ? -1 : (int32_t)(pixel / 50) - 1;
}

/* Shifts by whole pixels: labels match the pixels, and are -1 beyond the edges. */
static void labels_follow_pixels(void)
{
    static const sdlf_augmentation moves[] = {{.flip = true},
                                              {.flip_alternate = true},
                                              {.crop = 3},
                                              {.flip = true, .crop = 4, .reflect = true},
                                              {.cutout = 0}};
    sdlf_dataset data = make_data();
    for (size_t m = 0; m < sizeof moves / sizeof moves[0]; m++) {
        sdlf_loader *loader = NULL;
        sdlf_batch batch;
        int moved = 0, beyond = 0;
        sdlf_loader_options options = {.batch = COUNT, .shuffle = true, .augment = moves[m], .seed = 5};
        if (!CHECK_OK(sdlf_loader_create(&loader, &data, &options))) continue;
        CHECK_OK(sdlf_loader_seek(loader, 1, 0));
        CHECK_OK(sdlf_loader_next(loader, &batch));
        CHECK(sdlf_shape_equal(batch.labels.shape, sdlf_shape(COUNT, SIDE, SIDE)));
        const float *pixel = batch.samples.data;
        const int32_t *label = batch.labels.data;
        for (int i = 0; i < COUNT * AREA; i++) {
            CHECK_EQUAL(label[i], label_of(pixel[i]));
            beyond += pixel[i] == 0;
            moved += label[i] != ((const int32_t *)data.labels.data)[i];
        }
        CHECK((beyond > 0) == (moves[m].crop > 0 && !moves[m].reflect));
        CHECK(moved > COUNT * AREA / 4);
        sdlf_loader_free(loader);
    }
    synthetic_release(&data);
}

/* Between pixels: the label of the nearest of the four interpolated ones. An image of one value with a square of
 * another is rotated and scaled: wherever its pixels have one of the values exactly, the labels match. */
static void labels_are_of_the_nearest_pixel(void)
{
    uint8_t square[AREA] = {0};
    int32_t from[AREA] = {0}, to[AREA];
    const sdlf_augmentation augment = {.rotate = 40, .scale = 0.3f, .elastic = 1, .resized_crop = 0.5f, .seed = 9};
    for (int h = 3; h < 9; h++)
        for (int w = 2; w < 10; w++) square[h * SIDE + w] = (uint8_t)(100 * (from[h * SIDE + w] = 1));
    sdlf_dataset data = {.name = "square",
                         .samples = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(1, 1, SIDE, SIDE), square),
                         .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(1, SIDE, SIDE), from),
                         .class_count = 2,
                         .scale = 1};
    sdlf_loader *loader = NULL;
    sdlf_batch batch;
    int sure = 0;
    CHECK_OK(sdlf_loader_create(&loader, &data, &(sdlf_loader_options){.batch = 1, .augment = augment}));
    for (int epoch = 0; epoch < 10; epoch++) {
        CHECK_OK(sdlf_loader_seek(loader, epoch, 0));
        CHECK_OK(sdlf_loader_next(loader, &batch));
        sdlf_warp_labels(to, from, sdlf_shape(SIDE, SIDE), &augment, 0, epoch);
        for (int i = 0; i < AREA; i++) {
            float pixel = ((const float *)batch.samples.data)[i];
            CHECK_EQUAL(((const int32_t *)batch.labels.data)[i], to[i]);
            if (pixel > 75) CHECK_EQUAL(to[i], 1); /* more than half in each direction */
            if (pixel == 0) CHECK(to[i] <= 0);
            sure += pixel > 75;
        }
    }
    CHECK(sure > 100);
    sdlf_loader_free(loader);
}

/* ---- training and evaluation ---- */

static sdlf_model *make_model(bool softmax)
{
    sdlf_model *model = sdlf_model_create("pixels");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = 8, .kernel = {1, 1}});
    x = sdlf_relu(model, x);
    x = sdlf_conv2d(model, x, &(sdlf_conv2d_options){.filters = CLASSES, .kernel = {1, 1}});
    sdlf_output(model, "class", softmax ? sdlf_softmax(model, x) : x);
    return model;
}

typedef struct seen {
    double loss, accuracy, test_accuracy, test_iou;
} seen;

static void watch(const sdlf_progress *now, void *user)
{
    seen *s = user;
    if (now->event == SDLF_PROGRESS_EPOCH) *s = (seen){now->loss, now->accuracy, now->test_accuracy, now->test_iou};
}

static void pixels_are_learnt(void)
{
    const sdlf_calculator_class *type;
    double first = NAN;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++)
        for (int softmax = 0; softmax < 2; softmax++) {
            sdlf_dataset data = make_data();
            sdlf_model *model = make_model(softmax);
            sdlf_trainer *trainer = NULL;
            seen s = {.loss = NAN};
            data.scale = 0.01f;
            data.mean = 100;
            sdlf_trainer_options options = {.batch = 8,
                                            .epochs = 30,
                                            .optimizer = sdlf_adam(.beta1 = 0.9),
                                            .schedule = sdlf_constant(.peak = 0.03f),
                                            .augment = {.flip = true},
                                            .forward = type->name,
                                            .callback = watch,
                                            .user = &s};
            if (CHECK_OK(sdlf_trainer_create(&trainer, model, &data, &data, &options)) &&
                CHECK_OK(sdlf_trainer_run(trainer)))
                CHECK(s.accuracy > 0.99 && s.test_accuracy > 0.99 && s.test_iou > 0.98 && s.loss < 0.2);
            if (isnan(first)) first = s.loss;
            CHECK_CLOSE(s.loss, first, 5e-3);
            sdlf_trainer_free(trainer);
            sdlf_model_free(model);
            synthetic_release(&data);
        }
}

/* A network that returns its input as scores, so that the counts are known. */
static void intersections_over_unions(void)
{
    static const float samples[2][2][2][2] = {{{{1, 0}, {1, 0}}, {{0, 1}, {0, 1}}},
                                              {{{1, 1}, {0, 0}}, {{0, 0}, {1, 1}}}};
    static const int32_t labels[2][2][2] = {{{0, 1}, {1, -1}}, {{0, 0}, {0, 1}}}; /* 0 1 0 1; 0 0 1 1 are predicted */
    sdlf_dataset data = {.name = "known",
                         .samples = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(2, 2, 2, 2), (void *)(uintptr_t)samples),
                         .labels = sdlf_tensor_view(SDLF_INT32, sdlf_shape(2, 2, 2), (void *)(uintptr_t)labels),
                         .class_count = 2,
                         .scale = 1};
    sdlf_calculator *calculator = test_open("reference");
    sdlf_model *model = sdlf_model_create("same");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(2, 2, 2));
    sdlf_output(model, "class", sdlf_reshape(model, x, &(sdlf_reshape_options){.shape = sdlf_shape(2, 2, 2)}));
    sdlf_evaluation e;
    if (CHECK_OK(sdlf_evaluate(&e, model, &data, calculator, 1))) {
        CHECK(e.of_pixels && e.samples == 7 && e.correct == 5);
        CHECK_CLOSE(e.loss, (5 * log(1 + exp(-1)) + 2 * log(1 + exp(1))) / 7, 1e-6);
        CHECK_CLOSE(sdlf_evaluation_iou(&e, 0), 3.0 / 5, 1e-12); /* 3 correct, one false positive, one false negative */
        CHECK_CLOSE(sdlf_evaluation_iou(&e, 1), 2.0 / 4, 1e-12);
        CHECK_CLOSE(sdlf_evaluation_mean_iou(&e), 0.55, 1e-12);
        CHECK(isnan(sdlf_evaluation_iou(&e, 2)) && isnan(sdlf_evaluation_mean_iou(NULL)));
    }
    sdlf_evaluation_release(&e);
    CHECK_FAILS(sdlf_evaluate_with(&e, model, &data, calculator, &(sdlf_evaluation_options){.views = SDLF_VIEWS_FLIP}),
                SDLF_ERROR_UNSUPPORTED, "not for pixels");
    sdlf_model_free(model);
    sdlf_calculator_close(calculator);
}

static void what_does_not_fit_is_refused(void)
{
    sdlf_dataset data = make_data();
    sdlf_loader *loader = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_loader_options options = {.batch = 2, .automatic = {.trivial = true}};
    CHECK_FAILS(sdlf_loader_create(&loader, &data, &options), SDLF_ERROR_ARGUMENT, "without the labels");
    options = (sdlf_loader_options){.batch = 2, .mixing = {.mixup = 1}};
    CHECK_FAILS(sdlf_loader_create(&loader, &data, &options), SDLF_ERROR_ARGUMENT, "samples of one label");
    sdlf_model *model = make_model(true), *flat = synthetic_model(), *wrong = sdlf_model_create("wrong");
    ((int32_t *)data.labels.data)[5] = -2;
    CHECK_FAILS(sdlf_trainer_create(&trainer, model, &data, NULL, NULL), SDLF_ERROR_ARGUMENT,
                "expected -1 to 2, found -2");
    ((int32_t *)data.labels.data)[5] = CLASSES;
    CHECK_FAILS(sdlf_trainer_create(&trainer, model, &data, NULL, NULL), SDLF_ERROR_ARGUMENT,
                "expected -1 to 2, found 3");
    ((int32_t *)data.labels.data)[5] = 0;
    CHECK_FAILS(sdlf_trainer_create(&trainer, flat, &data, NULL, NULL), SDLF_ERROR_SHAPE, "");
    sdlf_node x = sdlf_input(wrong, "image", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    x = sdlf_conv2d(wrong, x, &(sdlf_conv2d_options){.filters = CLASSES, .kernel = {1, 1}});
    sdlf_output(wrong, "class",
                sdlf_model_add(wrong, sdlf_layer_class_find("softmax"), &(sdlf_softmax_options){.axis = -1}, &x, 1));
    CHECK_FAILS(sdlf_trainer_create(&trainer, wrong, &data, NULL, NULL), SDLF_ERROR_SHAPE,
                "expected axis 1, the classes");
    sdlf_model_free(wrong);
    sdlf_model_free(flat);
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(labels_follow_pixels);
    RUN(labels_are_of_the_nearest_pixel);
    RUN(pixels_are_learnt);
    RUN(intersections_over_unions);
    RUN(what_does_not_fit_is_refused);
    return test_summary();
}
