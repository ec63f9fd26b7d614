/* SPDX-License-Identifier: MIT */
/* Speed of kernels: time, FLOP/s, bytes/s and the share of the floor, at typical sizes.
 *
 * The floor of an operation is the larger of its FLOPs at the calculator's best rate and its bytes at the calculator's
 * best bandwidth; both rates are measured first, with the calculator's own gemm (1536 cubed) and copy (128 MiB moved).
 * Small operations whose operands stay in a cache can be faster than this floor. */
#include "kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/clock.h"
#include "framework/sort.h"

typedef struct bencher {
    kernel_sink sink;
    sdlf_calculator *calculator, *host;
    const char *filter;
    double flops_per_second, bytes_per_second; /* the ceilings; 0 while they are being measured */
    double seconds, median;                    /* the fastest and the median run of the last case */
} bencher;

/* Times runs that last a tenth of a second in total, and at least three if they take less than a second; the first run
 * is cold and not counted. The fastest run shows what the kernel can do, even on a shared machine. */
static bool time_operation(bencher *b, const sdlf_operation *operation)
{
    enum { MOST = 1001 };
    static double seconds[MOST];
    sdlf_calculator *calculator = b->calculator;
    sdlf_kernel *run = sdlf_calculator_slot(calculator, operation)->run;
    int count = 0;
    double total = 0;
    for (int i = -1; i < MOST && (i < 1 || (i < 3 && total < 1) || total < 0.1); i++) {
        double start = sdlf_clock();
        if (run(calculator, operation) != SDLF_OK || calculator->type->synchronize(calculator) != SDLF_OK) return false;
        if (i < 0) continue;
        seconds[i] = sdlf_clock() - start;
        total += seconds[i];
        count++;
    }
    sdlf_sort_doubles(seconds, (size_t)count);
    b->seconds = seconds[0];
    b->median = seconds[count / 2];
    return true;
}

static void print_line(const bencher *b, const kernel_case *made, const char *algorithm)
{
    sdlf_cost cost = sdlf_operation_cost(&made->operation);
    double compute = (double)cost.flops / b->flops_per_second, move = (double)cost.bytes / b->bytes_per_second;
    double floor = compute > move ? compute : move;
    printf("%-72s %-14s %10.4f ms (median %.4f) %9.1f GFLOP/s %8.1f GB/s  %4.0f%% of the floor's speed\n", made->name,
           algorithm, b->seconds * 1e3, b->median * 1e3, (double)cost.flops / b->seconds * 1e-9,
           (double)cost.bytes / b->seconds * 1e-9, floor / b->seconds * 100);
}

/* Place every operand and the workspace in the calculator's memory. */
static bool bind_device(sdlf_calculator *calculator, sdlf_operation *operation, const kernel_images *images,
                        void **memory)
{
    bool ok = true;
    for (int i = 0; i < SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS && ok; i++) {
        bool input = i < SDLF_MAX_INPUTS;
        int index = input ? i : i - SDLF_MAX_INPUTS;
        sdlf_tensor *tensor = input ? &operation->in[index] : &operation->out[index];
        if (!sdlf_tensor_present(tensor)) continue;
        int64_t extent = kernel_extent(tensor);
        ok = calculator->type->allocate(calculator, extent, &memory[i]) == SDLF_OK &&
             calculator->type->upload(calculator, memory[i], input ? images->in[index] : images->out[index], extent) ==
                 SDLF_OK;
        tensor->data = memory[i];
    }
    int64_t bytes = sdlf_calculator_workspace(calculator, operation);
    void **workspace = &memory[SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS];
    if (ok && bytes > 0) {
        ok = calculator->type->allocate(calculator, bytes, workspace) == SDLF_OK;
        operation->workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), *workspace);
    }
    return ok;
}

static void bench_case(kernel_sink *sink, const kernel_case *made)
{
    bencher *b = (bencher *)sink;
    if (b->filter && !strstr(made->name, b->filter)) return;
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(b->calculator, &made->operation);
    kernel_images images;
    bool shares = sdlf_calculator_shares_memory(b->calculator, b->host);
    kernel_images_make(&images, made, shares ? b->calculator : b->host);
    bool every = b->flops_per_second > 0; /* a ceiling is measured with the calculator's own choice */
    for (int a = 0; slot->run && (a == 0 || (every && slot->algorithms && slot->algorithms[a])); a++) {
        sdlf_operation operation = made->operation;
        operation.algorithm = a;
        if (!sdlf_calculator_supports(b->calculator, &operation)) continue;
        void *memory[SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS + 1] = {NULL};
        b->seconds = -1;
        bool ran = bind_device(b->calculator, &operation, &images, memory) && time_operation(b, &operation);
        if (!ran) {
            printf("%s: %s\n", made->name, sdlf_error_message());
        } else if (b->flops_per_second > 0) {
            print_line(b, made, slot->algorithms ? slot->algorithms[a] : "");
        }
        for (int i = 0; i <= SDLF_MAX_INPUTS + SDLF_MAX_OUTPUTS; i++) {
            if (memory[i]) b->calculator->type->deallocate(b->calculator, memory[i]);
        }
    }
    kernel_images_free(&images);
}

/* Measure the two ceilings, the calculator's best rates. */
static bool measure_ceilings(bencher *b)
{
    sdlf_tensor square = kernel_tensor(SDLF_FLOAT32, sdlf_shape(1536, 1536));
    kernel_case gemm = {
        .operation = {.kind = SDLF_GEMM, .in = {square, square}, .out = {square}, .gemm = {.alpha = 1}}};
    b->seconds = -1;
    bench_case(&b->sink, &gemm);
    if (b->seconds <= 0) return false;
    double flops = (double)sdlf_operation_cost(&gemm.operation).flops / b->seconds;
    sdlf_tensor line = kernel_tensor(SDLF_FLOAT32, sdlf_shape(16 << 20));
    kernel_case copy = {.operation = {.kind = SDLF_COPY, .in = {line}, .out = {line}}};
    b->seconds = -1;
    bench_case(&b->sink, &copy);
    if (b->seconds <= 0) return false;
    b->bytes_per_second = (double)sdlf_operation_cost(&copy.operation).bytes / b->seconds;
    b->flops_per_second = flops;
    return true;
}

/* False if there is no such calculator. */
static bool bench_calculator(const char *name, sdlf_math math, sdlf_calculator *host,
                             kernel_generator *const *generators, int count, const char *filter)
{
    bencher b = {.sink = {bench_case}, .host = host};
    if (sdlf_calculator_open(&b.calculator, name, &(sdlf_calculator_options){.math = math}) != SDLF_OK) {
        printf("%s: %s\n", name, sdlf_error_message());
        return false;
    }
    char text[160] = "";
    b.calculator->type->describe(b.calculator, text, sizeof text);
    if (measure_ceilings(&b)) {
        printf("%s: %s; at best %.1f GFLOP/s, %.1f GB/s\n", name, text, b.flops_per_second * 1e-9,
               b.bytes_per_second * 1e-9);
        b.filter = filter;
        for (int i = 0; i < count; i++) generators[i](&b.sink, SDLF_FLOAT32);
    } else {
        printf("%s: has no gemm and copy to measure a floor with\n", name);
    }
    sdlf_calculator_close(b.calculator);
    return true;
}

int kernel_bench(kernel_generator *const *generators, int count, const char *filter, const kernel_bench_choice *choice)
{
    sdlf_calculator *host = NULL;
    if (sdlf_calculator_open(&host, "reference", NULL) != SDLF_OK) return 1;
    for (int i = 0; sdlf_calculator_class_at(i); i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        bool named = strcmp(type->name, choice->calculator ? choice->calculator : "reference") == 0;
        if (named != (choice->calculator != NULL)) continue;
        for (int math = 0; math < (type->has_math ? (int)SDLF_MATH_COUNT : 1); math++) {
            if (choice->one_math && math != (int)choice->math) continue;
            if (!bench_calculator(type->name, (sdlf_math)math, host, generators, count, filter)) break;
        }
    }
    sdlf_calculator_close(host);
    return 0;
}
