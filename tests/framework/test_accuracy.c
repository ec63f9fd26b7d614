/* SPDX-License-Identifier: MIT */
/* Training on real MNIST on a device reaches the accuracy that it reaches on the CPU (docs/notebook/performance.md,
 * scripts/measure-mnist.sh).
 *
 * Requires SDLF_DATA and a calculator with its own memory; takes a few seconds on a GPU, under a minute everywhere. The
 * same seeds draw the same samples as on the CPU, but sums are rounded differently, and training amplifies that. Bounds
 * are those stated in docs/notebook/performance.md, and for the mean of ten seeds three standard errors (0.03 points
 * each) below the measured value. */
#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

typedef struct goal {
    const char *network;
    sdlf_trainer_options options;
    int seeds;
    bool own;        /* from sdlf_network_builtin_training */
    double accuracy; /* percent: the best epoch's, or the mean of the last over several seeds */
} goal;

static const goal goals[] = {
    {"simple_cnn", {.batch = 64, .epochs = 1, .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE}}, 1, false, 98.5},
    {"simple_cnn", {.batch = 64, .epochs = 5, .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE}}, 1, false, 99.0},
    {"simple_cnn",
     {.batch = 64, .epochs = 5, .math = SDLF_MATH_TF32, .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE}},
     1,
     false,
     99.0},
    {"lenet5", {.batch = 64, .epochs = 10, .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE}}, 1, false, 99.0},
    {"fast_cnn",
     {.batch = 32, .epochs = 1, .label_smoothing = 0.1f, .schedule = {.kind = SDLF_SCHEDULE_ONE_CYCLE, .peak = 0.06f}},
     10,
     false,
     98.93},
    {"fast_cnn", {.epochs = 1}, 10, true, 99.0},
};

static void keep_best(const sdlf_progress *progress, void *user)
{
    double *best = user;
    if (progress->event == SDLF_PROGRESS_EPOCH && 100 * progress->test_accuracy > *best)
        *best = 100 * progress->test_accuracy;
}

/* Percent. */
static double train(const goal *g, const char *calculator, uint64_t seed, const sdlf_dataset *data[2])
{
    double best = 0;
    sdlf_trainer_options options = g->options;
    options.optimizer = sdlf_sgd(.momentum = 0.9);
    if (g->own) CHECK(sdlf_network_builtin_training(&options, g->network));
    options.forward = calculator;
    options.seed = seed;
    options.callback = keep_best;
    options.user = &best;
    sdlf_model *model = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_status status = sdlf_network_builtin(&model, g->network);
    if (status == SDLF_OK) status = sdlf_trainer_create(&trainer, model, data[0], data[1], &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    CHECK_OK(status);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    return best;
}

/* Not every device has every mode. */
static bool has_math(const char *name, sdlf_math math)
{
    sdlf_calculator *calculator = NULL;
    sdlf_status status = sdlf_calculator_open(&calculator, name, &(sdlf_calculator_options){.math = math});
    sdlf_calculator_close(calculator);
    return status != SDLF_ERROR_UNSUPPORTED;
}

static void check_goals(const char *calculator, const sdlf_dataset *data[2])
{
    for (size_t i = 0; i < sizeof goals / sizeof goals[0]; i++) {
        const goal *g = &goals[i];
        double sum = 0;
        if (!has_math(calculator, g->options.math)) continue;
        for (int seed = 1; seed <= g->seeds; seed++) sum += train(g, calculator, (uint64_t)seed, data);
        printf("%s on %s, %s, %d epochs: %.2f%%\n", g->network, calculator, sdlf_math_name(g->options.math),
               g->options.epochs, sum / g->seeds);
        CHECK(sum / g->seeds >= g->accuracy);
    }
}

static const char *wanted; /* NULL: every device */

static bool is_wanted(const sdlf_calculator_class *type)
{
    sdlf_calculator *calculator = NULL;
    if (wanted != NULL) return strcmp(wanted, type->name) == 0;
    bool elsewhere = type != test_guarded_class() && sdlf_calculator_open(&calculator, type->name, NULL) == SDLF_OK &&
                     !sdlf_calculator_is_on_host(calculator);
    sdlf_calculator_close(calculator);
    return elsewhere;
}

static void a_device_learns_as_well(void)
{
    const char *folder = test_data("mnist");
    char specification[1024];
    sdlf_dataset *data[2] = {NULL, NULL};
    int devices = 0;
    if (folder == NULL) {
        test_skip("SDLF_DATA names no folder with mnist in it");
        return;
    }
    snprintf(specification, sizeof specification, "mnist:%s", folder);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = test_calculator_class_at(i);
        if (!is_wanted(type)) continue;
        if (devices++ == 0) {
            CHECK_OK(sdlf_dataset_open(&data[0], specification, SDLF_SPLIT_TRAIN));
            CHECK_OK(sdlf_dataset_open(&data[1], specification, SDLF_SPLIT_TEST));
        }
        if (data[0] != NULL && data[1] != NULL) check_goals(type->name, (const sdlf_dataset *[2]){data[0], data[1]});
    }
    if (devices == 0) test_skip("no calculator with memory of its own works on this machine");
    sdlf_dataset_free(data[0]);
    sdlf_dataset_free(data[1]);
}

/* With the name of a calculator as argument: on that one, device or not. */
int main(int count, char **arguments)
{
    if (count > 1) wanted = arguments[1];
    RUN(a_device_learns_as_well);
    return test_summary();
}
