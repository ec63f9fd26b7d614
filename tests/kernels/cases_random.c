/* SPDX-License-Identifier: MIT */
/* Cases of random_uniform and random_normal, which give the same bits everywhere. */
#include "kernels.h"

void random_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 7, 64, 1003, 4096};
    for (int i = 0; i < 9; i++) {
        kernel_case made = {
            .operation = {.kind = SDLF_RANDOM_UNIFORM, .out = {kernel_tensor(t, sdlf_shape(counts[i]))}}};
        made.operation.random.seed = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(i + 1);
        made.operation.random.stream = 0x10000u + (uint32_t)i;
        made.operation.random.a = -0.3f;
        made.operation.random.b = i % 2 ? 0.3f : 17.1f;
        kernel_emit(sink, &made, "%d", (int)counts[i]);
        made.operation.kind = SDLF_RANDOM_NORMAL;
        kernel_emit(sink, &made, "%d", (int)counts[i]);
    }
    sdlf_dtype narrow = t == SDLF_FLOAT32 ? SDLF_FLOAT16 : SDLF_BFLOAT16;
    kernel_case stored = {.operation = {.kind = SDLF_RANDOM_UNIFORM, .out = {kernel_tensor(narrow, sdlf_shape(37))}}};
    stored.operation.random.b = 1;
    kernel_emit(sink, &stored, "37");
}

void random_bench(kernel_sink *sink, sdlf_dtype t)
{
    kernel_case made = {.operation = {.kind = SDLF_RANDOM_UNIFORM, .out = {kernel_tensor(t, sdlf_shape(6422528))}}};
    made.operation.random.b = 1;
    kernel_emit(sink, &made, "6422528");
    made.operation.kind = SDLF_RANDOM_NORMAL;
    kernel_emit(sink, &made, "6422528");
}
