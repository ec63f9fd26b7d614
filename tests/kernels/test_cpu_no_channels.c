/* SPDX-License-Identifier: MIT */
/* Convolutions of images with zero channels on cpu, with and without groups, row-major and channels last: each output
 * is an empty sum plus bias and residual, the same as on reference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "framework/plan/networks.h"
#include "testing.h"

typedef struct geometry {
    int64_t n, c, k;
    int groups, stride;
    bool bias, residual;
} geometry;

static const geometry geometries[] = {
    {1, 0, 0, 2, 1, false, false}, {1, 0, 0, 2, 1, true, true},    {1, 0, 16, 2, 1, false, false},
    {1, 0, 16, 2, 1, true, false}, {1, 0, 16, 2, 1, false, true},  {2, 0, 16, 2, 2, true, true},
    {2, 0, 32, 8, 1, true, false}, {1, 0, 32, 2, 1, false, false}, {2, 0, 9, 1, 1, true, false},
};

enum { SIDE = 5, OPERANDS = 4 };

static sdlf_tensor operand(sdlf_shape shape, uint64_t seed)
{
    int64_t count = sdlf_shape_count(shape);
    float *data = malloc((size_t)(count + 1) * sizeof *data);
    fill_random(data, count, seed);
    return sdlf_tensor_view(SDLF_FLOAT32, shape, data);
}

static sdlf_operation operation_of(const geometry *g)
{
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD,
                        .conv2d = {.window = {.size = {3, 3}, .stride = {g->stride, g->stride}, .dilation = {1, 1}},
                                   .groups = g->groups}};
    int64_t side = sdlf_window2d_output(&o.conv2d.window, 0, SIDE);
    sdlf_shape y = sdlf_shape(g->n, g->k, side, side);
    o.in[0] = operand(sdlf_shape(g->n, g->c, SIDE, SIDE), 1);
    o.in[1] = operand(sdlf_shape(g->k, g->c, 3, 3), 2);
    if (g->bias) o.in[2] = operand(sdlf_shape(g->k), 3);
    if (g->residual) o.in[3] = operand(y, 4);
    o.out[0] = operand(y, 5);
    return o;
}

/* Run it, with plain or prepacked weights, on an output filled with NAN. */
static void run(sdlf_calculator *calculator, sdlf_operation o, bool prepacks)
{
    float *y = o.out[0].data;
    for (int64_t i = 0; i < sdlf_tensor_count(&o.out[0]); i++) y[i] = NAN;
    int64_t bytes = prepacks ? sdlf_calculator_prepared(calculator, &o) : 0;
    void *prepared = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (prepared != NULL) {
        o.prepared = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), prepared);
        CHECK_OK(sdlf_calculator_slot(calculator, &o)->prepare(calculator, &o));
    }
    bytes = sdlf_calculator_workspace(calculator, &o);
    void *workspace = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (workspace != NULL) o.workspace = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), workspace);
    CHECK_OK(sdlf_calculator_run(calculator, &o));
    free(workspace);
    free(prepared);
}

static void check_geometry(const geometry *g, sdlf_calculator *reference, sdlf_calculator *cpu)
{
    sdlf_operation o = operation_of(g);
    for (int last = 0; last < 2; last++) {
        if (last) o = sdlf_operation_channels_last(&o);
        int64_t count = sdlf_tensor_count(&o.out[0]);
        sdlf_operation other = o;
        other.out[0].data = malloc((size_t)(count + 1) * sizeof(float));
        run(reference, o, false);
        for (int prepacks = 0; prepacks < 2; prepacks++) {
            if (!sdlf_calculator_supports(cpu, &other)) continue;
            run(cpu, other, prepacks);
            const float *expected = o.out[0].data, *found = other.out[0].data;
            for (int64_t i = 0; i < count; i++)
                if (!CHECK_CLOSE(found[i], expected[i], 0)) /* bias and residual: one sum */
                    printf("    %d filters in %d groups%s\n", (int)g->k, g->groups, last ? ", channels last" : "");
        }
        free(other.out[0].data);
    }
    for (int i = 0; i < OPERANDS; i++) free(o.in[i].data);
    free(o.out[0].data);
}

static void sums_of_nothing_are_written(void)
{
    sdlf_calculator *reference, *cpu;
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++)
        check_geometry(&geometries[i], reference, cpu);
    sdlf_calculator_close(cpu);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(sums_of_nothing_are_written);
    return test_summary();
}
