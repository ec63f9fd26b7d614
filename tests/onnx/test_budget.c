/* SPDX-License-Identifier: MIT */
/* Small files that expand a lot: their expansion is bounded in advance, the message names the bound, and the user may
 * raise it. */
#include "testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "onnx/fixtures.h"
#include "onnx/hostile.h"

enum { MEGA = 1 << 20 };

/* 200 kB of them become 23 MB: each takes two bytes in the file and is a separate message. */
static void empty_attributes(void)
{
    hostile_graph graph = {.data = NULL};
    sdlf_model *model;
    hostile_node(&graph, "Relu", "x", "y", 100000);
    const char *path = hostile_write(&graph, "attributes.onnx", "y", 1);
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, &(sdlf_onnx_options){.read_memory = 4 * MEGA}), SDLF_ERROR_MEMORY,
                "NodeProto of 200012 bytes: more than the 4.2 MB of memory that reading a file of 200.");
    CHECK(test_peak_bytes() - before < 5 * MEGA);
    sdlf_onnx_report *report;
    CHECK_FAILS(sdlf_onnx_inspect(&report, path, &(sdlf_onnx_options){.read_memory = 4 * MEGA}), SDLF_ERROR_MEMORY,
                "more than the 4.2 MB");
    /* by itself, such a file may expand further, and is rejected for its content */
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_UNSUPPORTED, "attribute ''");
    CHECK(setenv("SDLF_READ_MEMORY", "1M", 1) == 0);
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_MEMORY, "more than the 1.0 MB");
    CHECK(setenv("SDLF_READ_MEMORY", "1X", 1) == 0);
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_ARGUMENT, "SDLF_READ_MEMORY is '1X'");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    CHECK(setenv("SDLF_MEMORY", "1M", 1) == 0); /* less than the process already uses */
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_MEMORY, "half of what is available");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

/* n, then n twice, four times, ...: 2^29 elements at the end. */
static void concatenated_with_itself(void)
{
    hostile_graph graph = {.data = NULL};
    sdlf_model *model;
    const char *name = hostile_doubling(&graph, "n", 0, 29);
    const char *path = hostile_write(&graph, "concat.onnx", name, 1);
    test_reset_peak();
    int64_t live = test_live_bytes();
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, &(sdlf_onnx_options){.read_memory = 300 * MEGA}),
                SDLF_ERROR_UNSUPPORTED,
                "working out a constant of shape 33554432: one of at most 16777216 elements is worked out");
    CHECK(test_peak_bytes() - live < 240 * MEGA); /* the last two: 64 and 128 MB */
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, &(sdlf_onnx_options){.read_memory = 10 * MEGA}), SDLF_ERROR_MEMORY,
                "node 19 (Concat): more than the 10.5 MB");
}

/* Each constant of one element becomes a parameter of 16 MB. */
static void constants_of_nothing(void)
{
    hostile_graph graph = {.data = NULL};
    sdlf_model *model;
    const char *name = hostile_zeros(&graph, 60);
    const char *path = hostile_write(&graph, "constants.onnx", name, 4 << 20);
    test_reset_peak();
    int64_t live = test_live_bytes();
    CHECK_FAILS(sdlf_model_from_onnx(&model, path, NULL), SDLF_ERROR_MEMORY,
                "its parameters: 1.0 GB, more than the 134.");
    CHECK(test_peak_bytes() - live < 8 * MEGA);
    sdlf_onnx_report *report;
    CHECK_OK(sdlf_onnx_inspect(&report, path, NULL));
    CHECK(report->status == SDLF_ERROR_MEMORY && report->model == NULL && report->failed_count == 0);
    CHECK(strstr(report->message, "its parameters: 1.0 GB, more than the 134.") != NULL);
    sdlf_onnx_report_free(report);
    CHECK_OK(sdlf_onnx_inspect(&report, path, &(sdlf_onnx_options){.read_memory = INT64_C(2) << 30}));
    CHECK_OK(report->status);
    sdlf_onnx_report_free(report);
}

/* Constants of 2 MB, each computed from the previous one, within 10 MB: none is kept longer than
 * needed. */
static void folded_constants_are_let_go(void)
{
    hostile_graph graph = {.data = NULL};
    sdlf_model *model = NULL;
    hostile_node(&graph, "ConstantOfShape", "n", "c", 0);
    const char *last = hostile_chain(&graph, "Add", "% c", "a", "c", 12);
    hostile_node(&graph, "ReduceSum", last, "s", 0);
    hostile_node(&graph, "Add", "x s", "y", 0);
    const char *path = hostile_write(&graph, "fold.onnx", "y", 1 << 19);
    test_reset_peak();
    int64_t live = test_live_bytes();
    CHECK_OK(sdlf_model_from_onnx(&model, path, NULL));
    if (!CHECK(test_peak_bytes() - live < 20 * MEGA))
        printf("    %lld bytes at the peak\n", (long long)(test_peak_bytes() - live));
    sdlf_model_free(model);
}

/* What is run to fold it, a softmax of 2 MB, takes 10 MB more while it runs: within less memory it becomes a layer. */
static void folding_by_running_is_within_the_budget(void)
{
    int64_t peak[2];
    for (int tight = 0; tight < 2; tight++) {
        hostile_graph graph = {.data = NULL};
        sdlf_model *model = NULL;
        hostile_node(&graph, "ConstantOfShape", "n", "c", 0);
        hostile_node(&graph, "Softmax", "c", "p", 0);
        hostile_node(&graph, "ReduceSum", "p", "s", 0);
        hostile_node(&graph, "Add", "x s", "y", 0);
        const char *path = hostile_write(&graph, "softmax.onnx", "y", 1 << 19);
        test_reset_peak();
        const int64_t live = test_live_bytes();
        CHECK_OK(sdlf_model_from_onnx(&model, path, &(sdlf_onnx_options){.read_memory = tight ? 8 * MEGA : 0}));
        peak[tight] = test_peak_bytes() - live;
        sdlf_model_free(model);
    }
    if (!CHECK(peak[1] < 8 * MEGA && peak[0] > peak[1]))
        printf("    %lld and %lld bytes at the peak\n", (long long)peak[0], (long long)peak[1]);
}

/* The total of many nodes is bounded, too. */
static void folding_ends(void)
{
    hostile_graph graph = {.data = NULL};
    sdlf_model *model;
    hostile_node(&graph, "ConstantOfShape", "n", "c", 0);
    const char *last = hostile_chain(&graph, "Add", "% c", "a", "c", 1000);
    CHECK_FAILS(sdlf_model_from_onnx(&model, hostile_write(&graph, "folds.onnx", last, 1 << 19), NULL),
                SDLF_ERROR_UNSUPPORTED, "at most 33554448 elements are worked out for this model");
}

typedef struct attempt {
    const char *path;
    sdlf_status status;
} attempt;

static void *import(void *argument)
{
    attempt *a = argument;
    sdlf_model *model = NULL;
    a->status = sdlf_model_from_onnx(&model, a->path, NULL);
    if (a->status != SDLF_OK) printf("    %s\n", sdlf_error_message());
    sdlf_model_free(model);
    return NULL;
}

/* Allocations for a chain of folded nodes, imported on a small stack. */
static int64_t allocations_of(int nodes)
{
    hostile_graph graph = {.data = NULL};
    pthread_attr_t small;
    pthread_t thread;
    char last[40];
    hostile_chain(&graph, "Add", "% n", "a", "n", nodes);
    snprintf(last, sizeof last, "a%d", nodes - 1);
    attempt a = {.path = hostile_write(&graph, "chain.onnx", last, 1)};
    int64_t before = test_allocations();
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
    CHECK(pthread_create(&thread, &small, import, &a) == 0 && pthread_join(thread, NULL) == 0);
    CHECK_OK(a.status);
    pthread_attr_destroy(&small);
    return test_allocations() - before;
}

/* Ten times as many nodes take ten times the time, and no more stack. */
static void long_chains(void)
{
    int64_t some = allocations_of(10000), many = allocations_of(100000);
    CHECK(many < 11 * some);
}

int main(void)
{
    if (!onnx_available()) {
        RUN(no_onnx);
        return test_summary();
    }
    RUN(empty_attributes);
    RUN(concatenated_with_itself);
    RUN(constants_of_nothing);
    RUN(folded_constants_are_let_go);
    RUN(folding_by_running_is_within_the_budget);
    RUN(folding_ends);
    RUN(long_chains);
    return test_summary();
}
