/* SPDX-License-Identifier: MIT */
/* Denormal numbers on the cpu calculator: arithmetic treats them as zeros, data movement preserves them. */
#include <string.h>

#include "testing.h"

enum { COUNT = 100000 }; /* several tasks, so that all threads take part */

static float g[COUNT], w[COUNT], v[COUNT], rate[1] = {0.1f};

static void velocities_die_out(sdlf_calculator *cpu)
{
    sdlf_shape shape = sdlf_shape(COUNT);
    for (int i = 0; i < COUNT; i++) {
        g[i] = 0;
        w[i] = 1;
        v[i] = 1e-39f;
    }
    CHECK_OK(sdlf_calculator_run(
        cpu, &(sdlf_operation){
                 .kind = SDLF_SGD_UPDATE,
                 .in = {sdlf_tensor_view(SDLF_FLOAT32, shape, g), sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1), rate)},
                 .out = {sdlf_tensor_view(SDLF_FLOAT32, shape, w), sdlf_tensor_view(SDLF_FLOAT32, shape, v)},
                 .sgd = {.momentum = 0.9f},
             }));
    int left = 0, moved = 0;
    for (int i = 0; i < COUNT; i++) {
        left += v[i] != 0;
        moved += w[i] != 1;
    }
    CHECK_EQUAL(left, 0);
    CHECK_EQUAL(moved, 0);
    volatile float small = 1e-39f; /* the caller's own arithmetic is unaffected */
    CHECK(small * 0.5f != 0);
}

static void copies_keep_them(sdlf_calculator *cpu)
{
    static double wide[COUNT];
    sdlf_shape shape = sdlf_shape(COUNT);
    for (int i = 0; i < COUNT; i++) wide[i] = 1e-39 + i * 1e-44;
    CHECK_OK(sdlf_calculator_run(cpu, &(sdlf_operation){
                                          .kind = SDLF_COPY,
                                          .in = {sdlf_tensor_view(SDLF_FLOAT64, shape, wide)},
                                          .out = {sdlf_tensor_view(SDLF_FLOAT32, shape, v)},
                                      }));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) wrong += v[i] != (float)wide[i];
    CHECK_EQUAL(wrong, 0);
}

static void denormals(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        sdlf_calculator *cpu = NULL;
        CHECK_OK(sdlf_calculator_open(&cpu, "cpu", &(sdlf_calculator_options){.threads = threads}));
        if (cpu == NULL) continue;
        velocities_die_out(cpu);
        copies_keep_them(cpu);
        sdlf_calculator_close(cpu);
    }
}

int main(void)
{
    RUN(denormals);
    return test_summary();
}
