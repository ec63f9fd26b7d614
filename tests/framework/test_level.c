/* SPDX-License-Identifier: MIT */
/* Memory, descriptors and threads do not leak: over cycles of creating, running and freeing a plan, of a trainer with its own threads,
 * of plan files, and over the steps of one plan. The environment variables SDLF_CYCLES=N and SDLF_STEPS=N set their numbers; the
 * defaults are small. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { SAMPLES = 24, BATCH = 4, AREA = 36 };

static uint8_t samples[SAMPLES * AREA];
static int32_t labels[SAMPLES], order[SAMPLES];
static float images[BATCH * AREA];

static int wanted(const char *name, int usual)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : usual;
}

/* ---- what the process holds ---- */

static int entries(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    while (list != NULL && readdir(list) != NULL) count++;
    if (list != NULL) closedir(list);
    return count;
}

/* Resident memory in bytes, as reported by the kernel. */
static int64_t resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file != NULL) fclose(file);
    return pages * (int64_t)sysconf(_SC_PAGESIZE);
}

typedef struct held {
    int descriptors, threads;
    int64_t allocations, bytes, resident;
} held;

static held look(void)
{
    return (held){entries("/proc/self/fd"), entries("/proc/self/task"), test_live_allocations(), test_live_bytes(),
                  resident()};
}

/* Allocations are counted exactly. Resident memory includes that of other libraries, and some that allocators keep. */
static void check_level(const char *what, int rounds, held before)
{
    enum { SPARE = 8 << 20 };
    held now = look();
    printf("%s: %d rounds, %d descriptors, %d threads, %lld allocations of %lld bytes, %.1f MB resident, %+.2f MB\n",
           what, rounds, now.descriptors - 2, now.threads - 2, (long long)now.allocations, (long long)now.bytes,
           (double)now.resident * 1e-6, (double)(now.resident - before.resident) * 1e-6);
    CHECK_EQUAL(now.descriptors, before.descriptors);
    CHECK_EQUAL(now.threads, before.threads);
    CHECK_EQUAL(now.allocations, before.allocations);
    CHECK_EQUAL(now.bytes, before.bytes);
    if (!TEST_SANITIZED) CHECK(now.resident - before.resident < SPARE); /* sanitizers keep freed memory */
}

/* ---- what is done again and again ---- */

typedef struct work {
    const char *calculator;
    void (*once)(const struct work *work);
} work;

static sdlf_model *small_net(void)
{
    sdlf_model *net = sdlf_model_create("small");
    sdlf_node x = sdlf_input(net, "image", SDLF_FLOAT32, sdlf_shape(1, 6, 6));
    x = sdlf_conv2d(net, x, &(sdlf_conv2d_options){.filters = 4, .kernel = {3, 3}, .padding = {1, 1}});
    x = sdlf_batch_norm2d(net, x, NULL);
    x = sdlf_relu(net, x);
    x = sdlf_max_pool2d(net, x, &(sdlf_pool2d_options){.window = {2, 2}});
    x = sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 3});
    sdlf_output(net, "class", sdlf_softmax(net, x));
    return net;
}

static sdlf_plan *training_plan(sdlf_model *net, sdlf_calculator *calculator)
{
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {
        .batch = BATCH, .mode = SDLF_TRAIN, .forward = calculator, .optimizer = sdlf_adamw(.weight_decay = 0.01f)};
    if (!CHECK_OK(sdlf_plan_create(&plan, net, &options))) return NULL;
    CHECK_OK(test_plan_write(plan, "image", images));
    CHECK_OK(test_plan_write(plan, "labels", labels));
    return plan;
}

/* Create, use and free everything: network, calculator, plan; in training, then in inference. */
static void plan_cycle(const work *w)
{
    float answer[BATCH * 3];
    sdlf_model *net = small_net();
    sdlf_calculator *calculator = test_open(w->calculator);
    sdlf_plan *plan = training_plan(net, calculator);
    if (plan != NULL) CHECK_OK(sdlf_plan_step(plan, 0.01f));
    if (plan != NULL) CHECK_OK(sdlf_plan_store_parameters(plan));
    sdlf_plan_free(plan);
    plan = NULL;
    if (CHECK_OK(sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = BATCH, .forward = calculator}))) {
        CHECK_OK(test_plan_write(plan, "image", images));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "class", answer));
    }
    sdlf_plan_free(plan);
    sdlf_calculator_close(calculator);
    sdlf_model_free(net);
}

static void cycles_of(const char *name, const char *calculator, int rounds, void (*once)(const work *))
{
    work w = {.calculator = calculator};
    char what[80];
    snprintf(what, sizeof what, "%s, %s", name, calculator);
    for (int i = 0; i < 3 + rounds / 20; i++) once(&w); /* one-time allocations, and the allocator's reserve */
    held before = look();
    for (int i = 0; i < rounds; i++) once(&w);
    check_level(what, rounds, before);
}

static void plans_made_and_freed(void)
{
    int rounds = wanted("SDLF_CYCLES", 60);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++)
        cycles_of("plans", test_calculator_class_at(i)->name, rounds, plan_cycle);
}

static void steps_of_one_plan(void)
{
    int rounds = wanted("SDLF_STEPS", 600);
    for (int i = 0; test_calculator_class_at(i) != NULL; i++) {
        const char *name = test_calculator_class_at(i)->name;
        sdlf_model *net = small_net();
        sdlf_calculator *calculator = test_open(name);
        sdlf_plan *plan = training_plan(net, calculator);
        for (int step = 0; plan != NULL && step < 10 + rounds / 20; step++) CHECK_OK(sdlf_plan_step(plan, 0.001f));
        held before = look();
        sdlf_status status = SDLF_OK;
        for (int step = 0; plan != NULL && step < rounds && status == SDLF_OK; step++)
            status = sdlf_plan_step(plan, 0.001f);
        CHECK_OK(status);
        check_level(name, rounds, before);
        sdlf_plan_free(plan);
        sdlf_calculator_close(calculator);
        sdlf_model_free(net);
    }
}

/* Training with threads for samples and for computing, a checkpoint, and a plan file. */
static void training_cycle(const work *w)
{
    char weights[600], file[600];
    snprintf(weights, sizeof weights, "%s", test_path("weights.safetensors"));
    snprintf(file, sizeof file, "%s", test_path("choices"));
    sdlf_model *net = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_dataset *digits = NULL;
    sdlf_choices *choices = sdlf_choices_create();
    CHECK_OK(sdlf_network_builtin(&net, "mlp"));
    CHECK_OK(sdlf_dataset_open(&digits, "digits:32", SDLF_SPLIT_TRAIN));
    if (access(file, F_OK) == 0) CHECK_OK(sdlf_choices_read(choices, file));
    sdlf_trainer_options options = {
        .batch = 16, .epochs = 1, .forward = w->calculator, .threads = 2, .checkpoint = weights, .choices = choices};
    options.optimizer = sdlf_sgd(.momentum = 0.9);
    options.augment.shift = 1;
    if (CHECK_OK(sdlf_trainer_create(&trainer, net, digits, NULL, &options))) CHECK_OK(sdlf_trainer_run(trainer));
    CHECK_OK(sdlf_choices_write(choices, file));
    sdlf_trainer_free(trainer);
    sdlf_choices_free(choices);
    sdlf_dataset_free(digits);
    sdlf_model_free(net);
}

static void trainings_with_files(void)
{
    cycles_of("trainings", "cpu", wanted("SDLF_CYCLES", 60) / 10, training_cycle);
}

int main(void)
{
    fill_samples(samples, labels, order, SAMPLES);
    for (int i = 0; i < BATCH * AREA; i++) images[i] = (float)samples[i] / 255;
    RUN(plans_made_and_freed);
    RUN(steps_of_one_plan);
    RUN(trainings_with_files);
    return test_summary();
}
