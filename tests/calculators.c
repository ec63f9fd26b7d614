/* SPDX-License-Identifier: MIT */
/* What tests need to go through all calculators: which there are, and their memory, which may not be the host's. */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations that a calculator may lack and still compute every network: plans leave them in their parts. */
static bool is_fusion(sdlf_operation_kind kind)
{
    switch (kind) {
    case SDLF_QUANTIZE:
    case SDLF_DEQUANTIZE:
    case SDLF_QUANTIZED_CONV2D:
    case SDLF_QUANTIZED_ADD:
    case SDLF_QUANTIZED_POOL2D:
    case SDLF_INTEGER_MATMUL:
    case SDLF_DYNAMIC_QUANTIZE:
    case SDLF_ATTENTION_FORWARD:
    case SDLF_ATTENTION_BACKWARD:
    case SDLF_LSTM_FORWARD:
    case SDLF_LSTM_BACKWARD:
    case SDLF_GRU_FORWARD:
    case SDLF_GRU_BACKWARD:
    case SDLF_FUSED: return true;
    default: return false;
    }
}

/* A calculator for some operations alone cannot compute the networks of the tests. Of SDLF's own nobody assumes that:
 * what they lack is to be found out. */
static bool is_partial(const sdlf_calculator_class *type)
{
    static const char *const own[] = {"reference", "cpu", "cuda", "cudnn"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(type->name, own[i]) == 0) return false;
    for (int kind = 0; kind < SDLF_OPERATION_COUNT; kind++) {
        if (type->kernel[kind].run != NULL || is_fusion((sdlf_operation_kind)kind)) continue;
        printf("not tested on networks: calculator '%s' has no %s; the kernels that it has are tested\n", type->name,
               sdlf_operation_class_of((sdlf_operation_kind)kind)->name);
        return true;
    }
    return false;
}

const sdlf_calculator_class *test_calculator_class_at(int index)
{
    enum { MOST = 16 };
    static const sdlf_calculator_class *usable[MOST];
    static int count;
    int found = 0;
    for (int i = 0; count == 0 && i < MOST - 1 && sdlf_calculator_class_at(i) != NULL; i++) {
        const sdlf_calculator_class *type = sdlf_calculator_class_at(i);
        sdlf_calculator *calculator = NULL;
        sdlf_status status = sdlf_calculator_open(&calculator, type->name, NULL);
        if (status == SDLF_OK && !is_partial(type)) usable[found++] = type;
        bool elsewhere = status == SDLF_ERROR_DEVICE || status == SDLF_ERROR_UNSUPPORTED;
        if (elsewhere) printf("not tested: %s\n", sdlf_error_message());
        if (!elsewhere) CHECK_OK(status);
        sdlf_calculator_close(calculator);
    }
    if (count == 0) {
        usable[found++] = test_guarded_class();
        count = found;
    }
    return index >= 0 && index < count ? usable[index] : NULL;
}

sdlf_calculator *test_open(const char *name)
{
    sdlf_calculator *calculator = NULL;
    CHECK_OK(sdlf_calculator_open(&calculator, name, NULL));
    return calculator;
}

/* SDLF_SIMD is how a program chooses them (calculators/cpu/cpu.h). */
static void put_level(const char *level)
{
    if (level != NULL) setenv("SDLF_SIMD", level, 1);
    if (level == NULL) unsetenv("SDLF_SIMD");
}

bool test_set_level(const char *level)
{
    static char started[32], before[32]; /* empty: none was asked for */
    static bool known;
    const char *now = getenv("SDLF_SIMD");
    snprintf(before, sizeof before, "%s", now != NULL ? now : "");
    if (!known) memcpy(started, before, sizeof started);
    known = true;
    put_level(level != NULL ? level : *started ? started : NULL);
    sdlf_calculator *cpu = NULL;
    sdlf_status status = sdlf_calculator_open(&cpu, "cpu", NULL);
    sdlf_calculator_close(cpu);
    if (status == SDLF_OK) return true;
    printf("not tested: %s\n", sdlf_error_message());
    CHECK(status == SDLF_ERROR_UNSUPPORTED || status == SDLF_ERROR_ARGUMENT); /* lacked, or of another machine family */
    put_level(*before ? before : NULL);
    return false;
}

bool test_runs_all_kernels(const sdlf_calculator *calculator)
{
    char text[512] = "";
    if (calculator->type->describe != NULL) calculator->type->describe(calculator, text, sizeof text);
    return strstr(text, "compute capability") == NULL ||
           strstr(text, "compute capability 9.0, kernels built for 9.0") != NULL;
}

bool test_download(const sdlf_binding *binding, void *host)
{
    int64_t bytes = sdlf_tensor_bytes(&binding->tensor);
    sdlf_calculator *calculator = binding->calculator;
    if (calculator != NULL) return CHECK_OK(calculator->type->download(calculator, host, binding->tensor.data, bytes));
    memcpy(host, binding->tensor.data, (size_t)bytes);
    return true;
}

bool test_upload(const sdlf_binding *binding, const void *host)
{
    int64_t bytes = sdlf_tensor_bytes(&binding->tensor);
    sdlf_calculator *calculator = binding->calculator;
    if (calculator != NULL) return CHECK_OK(calculator->type->upload(calculator, binding->tensor.data, host, bytes));
    memcpy(binding->tensor.data, host, (size_t)bytes);
    return true;
}

sdlf_status test_plan_write(sdlf_plan *plan, const char *input, const void *host)
{
    sdlf_binding binding = {.calculator = NULL};
    if (sdlf_plan_input(plan, input, &binding) != SDLF_OK) binding.tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    return sdlf_plan_write(plan, input, host, binding.tensor.dtype, sdlf_tensor_bytes(&binding.tensor));
}

sdlf_status test_plan_read(sdlf_plan *plan, const char *output, void *host)
{
    sdlf_binding binding = {.calculator = NULL};
    if (sdlf_plan_output(plan, output, &binding) != SDLF_OK) binding.tensor = (sdlf_tensor){.dtype = SDLF_NONE};
    return sdlf_plan_read(plan, output, host, binding.tensor.dtype, sdlf_tensor_bytes(&binding.tensor));
}

sdlf_binding test_tensor(sdlf_calculator *calculator, sdlf_dtype dtype, sdlf_shape shape, const void *host)
{
    sdlf_binding made = {.calculator = calculator};
    if (CHECK_OK(sdlf_tensor_create(&made.tensor, calculator, dtype, shape)) && host != NULL) test_upload(&made, host);
    return made;
}

void test_release(sdlf_binding *binding)
{
    sdlf_tensor_release(&binding->tensor, binding->calculator);
}
