/* SPDX-License-Identifier: MIT */
/* Eigenvectors of symmetric matrices, and convolutions that whiten the training data. */
#include <math.h>

#include "framework/eigen.h"
#include "framework/trainer_history.h"

enum { N = 12 };

static void eigenvectors(void)
{
    double a[N * N], kept[N * N], value[N], vector[N * N];
    for (int i = 0; i < N; i++)
        for (int j = i; j < N; j++) kept[i * N + j] = kept[j * N + i] = sin(1.7 * i * j + j) + (i == j) * i;
    memcpy(a, kept, sizeof a);
    eigen_of_symmetric(a, N, value, vector);
    for (int k = 0; k < N; k++) {
        double largest = 0;
        CHECK(k == 0 || value[k] <= value[k - 1]);
        for (int i = 0; i < N; i++) {
            double product = 0, length = 0;
            for (int j = 0; j < N; j++) product += kept[i * N + j] * vector[k * N + j];
            CHECK_CLOSE(product, value[k] * vector[k * N + i], 1e-12);
            for (int j = 0; j < N; j++) length += vector[k * N + j] * vector[i * N + j];
            CHECK_CLOSE(length, i == k ? 1 : 0, 1e-13);
            if (fabs(vector[k * N + i]) > fabs(largest)) largest = vector[k * N + i];
        }
        CHECK(largest > 0);
    }
}

static sdlf_model *whitening_model(int filters, bool behind)
{
    sdlf_model *model = sdlf_model_create("whitening");
    sdlf_node x = sdlf_input(model, "image", SDLF_FLOAT32, sdlf_shape(1, SYNTHETIC_SIDE, SYNTHETIC_SIDE));
    if (behind) x = sdlf_relu(model, x);
    x = sdlf_conv2d(
        model, x,
        &(sdlf_conv2d_options){.name = "w", .filters = filters, .kernel = {2, 2}, .initializer = SDLF_INIT_WHITENING});
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.units = SYNTHETIC_CLASSES});
    sdlf_output(model, "class", sdlf_softmax(model, x));
    return model;
}

static double pixel(const sdlf_dataset *data, int64_t n, int h, int w)
{
    const uint8_t *bytes = data->samples.data;
    return ((double)bytes[(n * SYNTHETIC_SIDE + h) * SYNTHETIC_SIDE + w] - (double)data->mean) * (double)data->scale;
}

/* The mean product of the outputs of filters i and j over patches. */
static double moment(const sdlf_dataset *data, const float *weight, int i, int j)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t n = 0; n < data->samples.shape.dim[0]; n++)
        for (int h = 0; h + 1 < SYNTHETIC_SIDE; h++)
            for (int w = 0; w + 1 < SYNTHETIC_SIDE; w++, count++) {
                double y[2] = {0, 0};
                for (int e = 0; e < 4; e++) {
                    double x = pixel(data, n, h + e / 2, w + e % 2);
                    y[0] += (double)weight[i * 4 + e] * x;
                    y[1] += (double)weight[j * 4 + e] * x;
                }
                sum += y[0] * y[1];
            }
    return sum / (double)count;
}

/* Outputs have variance 1 and no correlation, and the second half is the first negated. A frozen layer is not trained;
 * the values are the same on every calculator. */
static void check_whitening(const char *calculator)
{
    enum { FILTERS = 8 };
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(150, 1);
    sdlf_trainer_options options = base_options(&seen);
    options.forward = calculator;
    options.epochs = 1;
    options.optimizer = sdlf_sgd(.momentum = 0);
    options.schedule = sdlf_constant(.peak = 1e-12f);
    sdlf_model *model = whitening_model(FILTERS, false);
    CHECK_OK(train(model, &data, NULL, &options));
    const float *weight = sdlf_model_find_parameter(model, "w.weight")->value.data;
    for (int i = 0; i < FILTERS / 2; i++)
        for (int j = 0; j < FILTERS / 2; j++) { /* 0.0005 is added to eigenvalues of 0.2 and more */
            CHECK_CLOSE(moment(&data, weight, i, j), i == j ? 1 : 0, i == j ? 3e-3 : 1e-4);
            CHECK_CLOSE(weight[(FILTERS / 2 + i) * 4 + j], -weight[i * 4 + j], 1e-6);
        }
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void patches_are_whitened(void)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = test_calculator_class_at(i)) != NULL; i++) check_whitening(type->name);
}

/* Existing weights are not computed again. */
static void weights_that_are_there_stay(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(40, 1);
    sdlf_trainer_options options = base_options(&seen);
    options.epochs = 1;
    options.schedule = sdlf_constant(.peak = 1e-12f);
    sdlf_model *model = whitening_model(3, false);
    CHECK_OK(sdlf_model_build(model, 1));
    float before[12];
    memcpy(before, sdlf_model_find_parameter(model, "w.weight")->value.data, sizeof before);
    CHECK_OK(train(model, &data, NULL, &options));
    const float *after = sdlf_model_find_parameter(model, "w.weight")->value.data;
    for (int i = 0; i < 12; i++) CHECK_CLOSE(after[i], before[i], 1e-6);
    sdlf_model_free(model);
    synthetic_release(&data);
}

static void what_cannot_be_whitened(void)
{
    history seen = {0};
    sdlf_dataset data = synthetic_dataset(40, 1);
    sdlf_trainer_options options = base_options(&seen);
    sdlf_model *model = whitening_model(4, true);
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_ARGUMENT, "the network's samples as its input");
    sdlf_model_free(model);
    model = whitening_model(9, false);
    CHECK_FAILS(train(model, &data, NULL, &options), SDLF_ERROR_SHAPE, "at most 8 filters");
    sdlf_model_free(model);
    synthetic_release(&data);
}

int main(void)
{
    RUN(eigenvectors);
    RUN(patches_are_whitened);
    RUN(weights_that_are_there_stay);
    RUN(what_cannot_be_whitened);
    return test_summary();
}
