/* SPDX-License-Identifier: MIT */
/* sdlf bench kernels: its list, its measurements, the table, the JSON and wrong arguments. */
#include "testing.h"

#include <math.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/bench/kernels/kernels.h"
#include "apps/capture.h"
#include "apps/program.h"

#define QUICK "--repeats", "3", "--seconds", "0.0005", "--copy-size", "64kB", "--elements", "1024"

static double number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

/* ---- the list ---- */

/* Every kind of operation and every fusion is listed, in both types and at any size, under the correct name. */
static void every_kind_is_run(void)
{
    static const int64_t sizes[] = {1024, 1000000, INT64_C(1) << 25, INT64_C(1) << 30};
    static const sdlf_dtype types[] = {SDLF_FLOAT32, SDLF_FLOAT64};
    static kernel_rows rows;
    for (int i = 0; i < 8; i++) {
        bool there[SDLF_OPERATION_COUNT] = {false};
        kernel_rows_make(&rows, types[i % 2], sizes[i / 2]);
        CHECK(rows.count < KERNEL_ROWS); /* no row was left out */
        for (int r = 0; r < rows.count; r++) {
            there[rows.row[r].operation.kind] = true;
            CHECK_OK(sdlf_operation_check(&rows.row[r].operation));
            CHECK(strlen(rows.row[r].text) + 1 < sizeof rows.row[r].text); /* nor was its text cut off */
        }
        for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
            if (!there[kind]) CHECK_TEXT(sdlf_operation_class_of((sdlf_operation_kind)kind)->name, "in no row");
        }
        for (int f = 0; sdlf_fusion_at(f) != NULL; f++) {
            int r = 0;
            while (r < rows.count && rows.row[r].operation.fused.fusion != sdlf_fusion_at(f)) r++;
            if (r == rows.count) CHECK_TEXT(sdlf_fusion_at(f)->type.name, "in no row");
        }
    }
}

/* ---- what is measured ---- */

static void rates_follow_from_times(void)
{
    json_t *report = CAPTURE_JSON(kernels_bench.run, QUICK, "--operation", "gemm", "--operation", "softmax_forward",
                                  "--operation", "add", "--json", "-");
    const json_t *limits = json_object_get(report, "limits"), *kernels = json_object_get(report, "kernels");
    int others = 0, automatic = 0, gemms = 0;
    size_t i;
    json_t *row;
    json_array_foreach(kernels, i, row)
    {
        double seconds = number(row, "seconds");
        double compute = number(row, "flops") / number(limits, "flops_per_second");
        double move = number(row, "bytes") / number(limits, "bytes_per_second");
        CHECK(seconds > 0);
        CHECK_CLOSE(number(row, "flops_per_second") * seconds / number(row, "flops"), 1, 1e-6);
        CHECK_CLOSE(number(row, "bytes_per_second") * seconds / number(row, "bytes"), 1, 1e-6);
        CHECK_CLOSE(number(row, "of_limit") * seconds / fmax(compute, move), 1, 1e-6);
        CHECK_TEXT(text(row, "limit"), compute > move ? "flops" : "bytes");
        bool gemm = strcmp(text(row, "kernel"), "gemm") == 0;
        gemms += gemm;
        others += !gemm;
        if (gemm) {
            CHECK(text(row, "algorithm")[0] != '\0');
            automatic += json_is_true(json_object_get(row, "automatic"));
        } else {
            CHECK(json_is_null(json_object_get(row, "algorithm")));
            CHECK(json_is_true(json_object_get(row, "automatic")));
        }
    }
    CHECK(others >= 3);            /* the addition, and both softmaxes */
    CHECK(automatic > 0);          /* for each product there is one that auto chooses */
    CHECK(gemms >= 2 * automatic); /* and others */
    json_decref(report);
}

/* A device whose memory the host cannot access: its checks would report operands that kernels do not expect. */
static void devices_are_measured(void)
{
    sdlf_calculator *device = NULL;
    static kernel_rows rows;
    static const sdlf_operation_kind kinds[] = {SDLF_GATHER,
                                                SDLF_GATHER_BACKWARD,
                                                SDLF_NEXT_BATCH,
                                                SDLF_GATHER_BATCH,
                                                SDLF_SHUFFLE,
                                                SDLF_SPMM_CSR,
                                                SDLF_COPY,
                                                SDLF_BINARY,
                                                SDLF_SGD_UPDATE,
                                                SDLF_ADAM_UPDATE,
                                                SDLF_CLIP_SCALE,
                                                SDLF_CHECK_FINITE,
                                                SDLF_LOSS_SCALE_UPDATE,
                                                SDLF_REDUCE,
                                                SDLF_FUSED,
                                                SDLF_SOFTMAX_CROSS_ENTROPY_FORWARD};
    CHECK_OK(sdlf_calculator_open(&device, "guarded", NULL));
    kernel_rows_make(&rows, SDLF_FLOAT32, 1024);
    const lab_effort effort = {.repeats = 1, .seconds = 1e-6};
    int ran = 0;
    for (int r = 0; r < rows.count; r++) {
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            if (rows.row[r].operation.kind != kinds[k]) continue;
            kernel_result result;
            CHECK_OK(kernel_measure(&result, device, &rows.row[r], 0, &effort));
            CHECK(!result.time.ran || result.time.seconds > 0);
            ran += result.time.ran;
        }
    }
    CHECK(ran >= 14);
    test_guarded_memory(1 << 20); /* then the larger ones have none, which is reported and no failure */
    for (int r = 0; r < rows.count; r++) {
        if (rows.row[r].operation.kind != SDLF_ADD) continue;
        kernel_result result;
        CHECK_OK(kernel_measure(&result, device, &rows.row[r], 0, &effort));
        CHECK(!result.time.ran && strstr(result.time.why, "no memory") != NULL);
    }
    test_guarded_memory(0);
    sdlf_calculator_close(device);
}

/* ---- the program ---- */

static void the_table_tells(void)
{
    const program *p = SDLF(0, "bench", "kernels", QUICK, "--operation", "gemm", "--operation", "add");
    CHECK_SAYS(p, "limits");
    CHECK_SAYS(p, "of limit");
    CHECK_SAYS(p, " *");
    CHECK_SAYS(p, "kernels by themselves");
    p = SDLF(0, "bench", "kernels", QUICK, "--operation", "gemm_backward_sgd", "--dtype", "float64", "--calculator",
             "reference");
    CHECK_SAYS(p, "gemm_backward_sgd");
    CHECK(strstr(p->out, "has no kernel") == NULL);
    p = SDLF(0, "bench", "kernels", QUICK, "--operation", "conv2d_relu_max_pool_backward_sgd", "--calculator", "cpu");
    CHECK_SAYS(p, "2 rows: cpu has no kernel for them in float32."); /* and no empty table */
    CHECK(strstr(p->out, "of limit") == NULL);
}

static void wrong_arguments_are_told(void)
{
    const program *p = SDLF(2, "bench", "kernels", "--operation", "gemn");
    CHECK_SAYS(p, "did you mean 'gemm'?");
    p = SDLF(2, "bench", "kernels", "--elements", "5");
    CHECK_SAYS(p, "elements");
    p = SDLF(2, "bench", "kernels", "--math", "tf32");
    CHECK_SAYS(p, "tf32");
}

int main(void)
{
    RUN(every_kind_is_run);
    RUN(rates_follow_from_times);
    RUN(devices_are_measured);
    RUN(the_table_tells);
    RUN(wrong_arguments_are_told);
    return test_summary();
}
