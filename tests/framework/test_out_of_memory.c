/* SPDX-License-Identifier: MIT */
/* Lack of memory at any point of a program that uses files: reading networks, loading weights, training, saving and
 * resuming, plans of every kind and their timings. Each allocation fails once: the result is a status, and nothing
 * leaks. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "framework/synthetic.h"

/* ---- files ---- */

static sdlf_status read_and_write_network(void *path)
{
    sdlf_model *model = NULL;
    char *text = NULL;
    sdlf_status status = sdlf_network_read(&model, path);
    if (status == SDLF_OK) status = sdlf_model_build(model, 1);
    if (status == SDLF_OK) status = sdlf_network_write(model, &text);
    free(text);
    sdlf_model_free(model);
    return status;
}

static void networks(void)
{
    static const char text[] =
        "{\"name\": \"net\", \"input\": {\"name\": \"image\", \"shape\": [1, 12, 12]}, \"layers\": [\n"
        "{\"type\": \"conv2d\", \"name\": \"c\", \"filters\": 2, \"kernel\": [3, 3], \"padding\": 1},\n"
        "{\"type\": \"relu\"}, {\"type\": \"add\", \"inputs\": [\"relu\", \"c\"]},\n"
        "{\"type\": \"fully_connected\", \"units\": 3}, {\"type\": \"softmax\"}], \"outputs\": {\"y\": \"softmax\"}}\n";
    const char *path = test_path("net.json");
    test_write_file(path, text, sizeof text - 1);
    test_every_allocation("a network file", read_and_write_network, (void *)path);
}

static sdlf_status load_weights(void *path)
{
    sdlf_model *model = synthetic_model();
    sdlf_status status = sdlf_model_load(model, path);
    sdlf_model_free(model);
    return status;
}

static void weights(void)
{
    const char *path = test_path("weights.safetensors");
    sdlf_model *model = synthetic_model();
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_OK(sdlf_model_save(model, path));
    sdlf_model_free(model);
    test_every_allocation("weights for a network", load_weights, (void *)path);
}

static sdlf_status read_and_write_choices(void *path)
{
    sdlf_choices *choices = sdlf_choices_create();
    if (choices == NULL) return SDLF_ERROR_MEMORY;
    sdlf_status status = sdlf_choices_read(choices, path);
    if (status == SDLF_OK) status = sdlf_choices_write(choices, path);
    sdlf_choices_free(choices);
    return status;
}

static void plan_files(void)
{
    static const char text[] = "sdlf plan file 1\n\n[cpu: a]\nw = v\nx = y  # z\n\n[cpu: b]\nx = y\n";
    const char *path = test_path("choices.txt");
    test_write_file(path, text, sizeof text - 1);
    test_every_allocation("a plan file", read_and_write_choices, (void *)path);
}

/* ---- training ---- */

typedef struct training {
    const sdlf_dataset *data, *test;
    const char *path, *begun;
    bool resumes;
} training;

static sdlf_status train(void *argument)
{
    const training *t = argument;
    sdlf_trainer_options options = {
        .batch = 8, .epochs = 2, .forward = "reference", .backward = "reference", .seed = 3, .checkpoint = t->path};
    sdlf_model *model = NULL;
    sdlf_trainer *trainer = NULL;
    sdlf_status status = SDLF_OK;
    if (t->resumes) {
        options.resume = true;
        status = sdlf_model_open(&model, t->begun);
        if (status == SDLF_OK) status = sdlf_trainer_restore_options(&options, sdlf_model_training_state(model));
    } else {
        options.optimizer = sdlf_adam(.weight_decay = 0.01f);
        options.clip_norm = 1;
        options.schedule = sdlf_one_cycle(.peak = 0.01f);
        model = synthetic_model();
    }
    options.epochs = t->resumes ? 3 : 2;
    if (status == SDLF_OK) status = sdlf_trainer_create(&trainer, model, t->data, t->test, &options);
    if (status == SDLF_OK) status = sdlf_trainer_run(trainer);
    sdlf_trainer_free(trainer);
    sdlf_model_free(model);
    return status;
}

/* The last batch is short. A failed run leaves an intact checkpoint. */
static void training_runs(void)
{
    sdlf_dataset data = synthetic_dataset(20, 1), test = synthetic_dataset(9, 2);
    char path[512], begun[512];
    snprintf(path, sizeof path, "%s", test_path("run.safetensors"));
    snprintf(begun, sizeof begun, "%s", test_path("begun.safetensors"));
    training t = {.data = &data, .test = &test, .path = begun};
    CHECK_OK(train(&t));
    t = (training){.data = &data, .test = &test, .path = path, .begun = begun};
    test_every_allocation("a training run", train, &t);
    t.resumes = true;
    test_every_allocation("a resumed training run", train, &t);
    sdlf_model *model = NULL;
    CHECK_OK(sdlf_model_open(&model, path));
    sdlf_model_free(model);
    synthetic_release(&data);
    synthetic_release(&test);
}

/* ---- plans ---- */

typedef struct planning {
    sdlf_calculator *forward, *backward;
    sdlf_model *model;
    sdlf_plan_options options;
} planning;

/* All queries about a plan, and its times. */
static sdlf_status plan_and_look(void *argument)
{
    const planning *p = argument;
    sdlf_plan *plan = NULL;
    sdlf_memory_info memory;
    sdlf_binding binding;
    sdlf_status status = sdlf_plan_measure(&memory, p->model, &p->options);
    if (status == SDLF_OK) status = sdlf_plan_outline(&plan, p->model, &p->options);
    sdlf_plan_free(plan);
    plan = NULL;
    if (status == SDLF_OK) status = sdlf_plan_create(&plan, p->model, &p->options);
    if (status == SDLF_OK) status = sdlf_plan_time(plan, 1);
    if (status == SDLF_OK && p->options.mode == SDLF_INFER) status = sdlf_plan_time_together(plan, 1, 2);
    if (status == SDLF_OK && p->options.mode == SDLF_INFER) status = sdlf_plan_output(plan, "class", &binding);
    for (int i = 0; status == SDLF_OK && i < sdlf_plan_layer_count(plan); i++) (void)sdlf_plan_layer_info(plan, i);
    if (status == SDLF_OK) status = sdlf_plan_store_parameters(plan);
    sdlf_plan_free(plan);
    return status;
}

static void plans(void)
{
    planning p = {.model = synthetic_model()};
    CHECK_OK(sdlf_model_build(p.model, 1));
    CHECK_OK(sdlf_calculator_open(&p.forward, synthetic_calculator(), NULL));
    CHECK_OK(sdlf_calculator_open(&p.backward, "reference", NULL));
    p.options = (sdlf_plan_options){.batch = 3, .forward = p.forward};
    test_every_allocation("a plan for inference", plan_and_look, &p);
    p.options.dtype = SDLF_FLOAT64;
    test_every_allocation("a plan for inference in float64", plan_and_look, &p);
    CHECK_OK(sdlf_model_require_states(p.model, 2));
    p.options = (sdlf_plan_options){.batch = 3,
                                    .mode = SDLF_TRAIN,
                                    .forward = p.forward,
                                    .backward = p.backward,
                                    .optimizer = sdlf_adam(.weight_decay = 0.1f),
                                    .clip_norm = 1};
    test_every_allocation("a plan for training on two calculators", plan_and_look, &p);
    p.options = (sdlf_plan_options){
        .batch = 3, .mode = SDLF_TRAIN, .forward = p.forward, .keep_activations = true, .gradients_only = true};
    test_every_allocation("a plan that keeps everything", plan_and_look, &p);
    sdlf_model_free(p.model);
    sdlf_calculator_close(p.forward);
    sdlf_calculator_close(p.backward);
}

int main(void)
{
    RUN(networks);
    RUN(weights);
    RUN(plan_files);
    RUN(training_runs);
    RUN(plans);
    return test_summary();
}
