/* SPDX-License-Identifier: MIT */
/* The ONNX reader on arbitrary bytes: an error that names the file, or a model that a plan can be outlined for; a small
 * one is filled, planned and run. Nothing large is allocated, so that false sizes cost nothing. Next to the model are a
 * file of external data, "weights.bin", and a link that leads out of its folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

#include "framework/formats/onnx/import/model_from_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if defined SDLF_FUZZING
enum { SMALL = 1 << 13 }; /* bytes, and FLOPs, of what is run */
#else
enum { SMALL = 1 << 20 };
#endif

static char folder[] = "/tmp/sdlf-fuzz-XXXXXX";
static char weights[sizeof folder + 16], outside[sizeof folder + 16];

static void remove_folder(void)
{
    unlink(weights);
    unlink(outside);
    rmdir(folder);
}

/* Created once, and removed at exit. */
static const char *make_folder(void)
{
    static bool made;
    static const struct timespec old[2];
    if (made) return folder;
    if (mkdtemp(folder) == NULL) abort();
    snprintf(weights, sizeof weights, "%s/weights.bin", folder);
    snprintf(outside, sizeof outside, "%s/link", folder);
    FILE *file = fopen(weights, "wb");
    if (file == NULL) abort();
    for (int i = 0; i < 256; i++) fputc(i, file);
    if (fclose(file) != 0 || symlink("/etc/hostname", outside) != 0) abort();
    /* it is old: of a new file the reader waits until its times tell it from a later one */
    if (utimensat(AT_FDCWD, weights, old, 0) != 0) abort();
    atexit(remove_folder);
    made = true;
    return folder;
}

static bool is_small(const sdlf_plan *plan)
{
    sdlf_memory_info memory = sdlf_plan_memory(plan);
    double flops = 0;
    for (int i = 0; i < sdlf_plan_layer_count(plan); i++) {
        sdlf_layer_info info = sdlf_plan_layer_info(plan, i);
        flops += (double)info.forward_cost.flops + (double)info.forward_cost.bytes;
    }
    return memory.arena < SMALL && memory.parameters < SMALL && flops < SMALL;
}

/* A model that was outlined can be filled, planned and run, except for errors that only running shows (memory). */
static void run(const uint8_t *data, size_t size, sdlf_calculator *calculator)
{
    sdlf_model *model;
    sdlf_plan *plan = NULL;
    sdlf_plan_options options = {.batch = 1, .forward = calculator};
    if (model_from_onnx_bytes(&model, data, size, "input", make_folder(), NULL) == SDLF_OK &&
        sdlf_plan_create(&plan, model, &options) == SDLF_OK) {
        (void)sdlf_plan_forward(plan);
        (void)sdlf_plan_synchronize(plan);
    }
    sdlf_plan_free(plan);
    sdlf_model_free(model);
}

/* The memory budget for reading, without querying the machine before every input: the usual budget of a small file when
 * the corpus is replayed. A fuzzer finds the same with less, many times faster, since it does not expand large
 * constants. The environment overrides both. */
#if defined SDLF_FUZZING
#define READ_MEMORY "1M"
#else
#define READ_MEMORY "128M"
#endif

static void set_budget(void)
{
    static bool set;
    if (!set && setenv("SDLF_READ_MEMORY", READ_MEMORY, 0) != 0) abort();
    set = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_onnx_report *report;
    set_budget();
    sdlf_status status = onnx_inspect_bytes(&report, data, size, "input", make_folder(), NULL);
    if (status != SDLF_OK) {
        if (report != NULL || (status == SDLF_ERROR_FORMAT && strstr(sdlf_error_message(), "input") == NULL)) abort();
        return 0;
    }
    if ((report->model != NULL) != (report->status == SDLF_OK)) abort();
    sdlf_calculator *calculator = NULL;
    if (report->model != NULL && sdlf_calculator_open(&calculator, "reference", NULL) == SDLF_OK) {
        sdlf_plan *plan;
        sdlf_plan_options options = {.batch = 1, .forward = calculator};
        if (sdlf_plan_outline(&plan, report->model, &options) == SDLF_OK && is_small(plan)) run(data, size, calculator);
        sdlf_plan_free(plan);
    }
    sdlf_calculator_close(calculator);
    sdlf_onnx_report_free(report);
    return 0;
}
