/* SPDX-License-Identifier: MIT */
/* Inverted residual blocks on cpu, which fuses them if the intermediate tensors are larger than in the cases for all
 * calculators: compared with reference, row-major and channels last, with plain and prepacked weights, with the same
 * bits at any number of threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calculators/cpu/cpu.h"
#include "calculators/fusions/inverted_residual.h"
#include "testing.h"

enum { NOTHING = 0, OPERANDS = 8 };

static const int threads[] = {1, 2, 3, 32}; /* with 32, each has a single task */
enum { CALCULATORS = sizeof threads / sizeof threads[0], MANY = CALCULATORS - 1 };

typedef struct geometry {
    int64_t n, c, h, w, m, k;
    int size, stride, before, after;
    bool residual, biases;
    sdlf_activation_function function; /* after all three */
} geometry;

static const geometry geometries[] = {
    {1, 16, 90, 62, 48, 24, 3, 2, 1, 1, false, true, SDLF_CLIP},
    {2, 5, 73, 71, 53, 9, 3, 1, 1, 1, true, true, SDLF_RELU},
    {1, 24, 61, 60, 75, 17, 5, 1, 2, 2, true, false, SDLF_IDENTITY},
    {1, 33, 101, 99, NOTHING, 16, 3, 1, 1, 1, true, true, SDLF_SILU},
    {1, 40, 4, 2050, 33, 40, 3, 1, 1, 1, true, true, SDLF_CLIP}, /* fewer rows than tasks */
    {1, 3, 130, 40, 64, 70, 3, 3, 0, 2, false, true, SDLF_RELU}, /* rows outside every window */
    {1, 16, 3, 5500, 20, 3, 3, 1, 4, 4, false, true, SDLF_RELU}, /* outputs of padding only */
    {1, 24, 28, 30, 144, 32, 3, 1, 1, 1, true, true, SDLF_RELU},
    {1, 64, 14, 14, 384, 64, 3, 2, 1, 1, false, true, SDLF_RELU}, /* each of many threads has panels of channels */
    {3, 10, 7, 6, 190, 70, 3, 1, 1, 1, false, true, SDLF_SILU},   /* the same, several images */
    {2, 8, 9, 7, 16, 20, 5, 2, 2, 1, false, true, SDLF_SILU},     /* one vector */
    {1, 160, 7, 7, 960, 160, 3, 1, 1, 1, true, true, SDLF_RELU},  /* large weights */
    {2, 130, 1, 1, 1000, 30, 1, 1, 0, 0, false, true, SDLF_CLIP},
};

static float *numbers(int64_t count, unsigned seed)
{
    float *to = malloc((size_t)count * sizeof *to);
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = (float)(state >> 8) / (1 << 23) - 1;
    }
    return to;
}

static sdlf_tensor operand(sdlf_shape shape, unsigned seed)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, numbers(sdlf_shape_count(shape), seed));
}

static sdlf_operation operation_of(const geometry *g)
{
    sdlf_activation activation = {.function = g->function};
    if (g->function == SDLF_CLIP) activation = (sdlf_activation){.function = SDLF_CLIP, .low = -0.25f, .high = 1.5f};
    sdlf_operation o = {.kind = SDLF_FUSED, .fused = {.fusion = &sdlf_inverted_residual_fusion}};
    inverted_residual_options *options = inverted_residual_options_in(&o);
    *options = (inverted_residual_options){.filtered = activation, .activation = activation};
    sdlf_window2d *window = &options->window;
    bool expands = g->m != NOTHING;
    int64_t m = expands ? g->m : g->c;
    for (int i = 0; i < 2; i++) {
        window->size[i] = g->size;
        window->stride[i] = g->stride;
        window->dilation[i] = 1;
        window->padding_before[i] = g->before;
        window->padding_after[i] = g->after;
    }
    if (expands) options->expanded = activation;
    sdlf_shape y = sdlf_shape(g->n, g->k, sdlf_window2d_output(window, 0, g->h), sdlf_window2d_output(window, 1, g->w));
    o.in[0] = operand(sdlf_shape(g->n, g->c, g->h, g->w), 1);
    o.in[1] = operand(sdlf_shape(m, 1, g->size, g->size), 2);
    o.in[2] = operand(sdlf_shape(g->k, m, 1, 1), 3);
    if (expands) o.in[3] = operand(sdlf_shape(m, g->c, 1, 1), 4);
    if (g->biases && expands) o.in[4] = operand(sdlf_shape(m), 5);
    if (g->biases) o.in[5] = operand(sdlf_shape(m), 6), o.in[6] = operand(sdlf_shape(g->k), 7);
    if (g->residual) o.in[7] = operand(y, 8);
    o.out[0] = operand(y, 9);
    return o;
}

/* A copy of an image converted to channels last, or back. */
static float *turned(const sdlf_tensor *image, const float *from, bool back)
{
    const int64_t *dim = image->shape.dim, pixels = dim[2] * dim[3];
    float *to = malloc((size_t)(dim[0] * dim[1] * pixels) * sizeof *to);
    for (int64_t n = 0; n < dim[0]; n++) {
        for (int64_t c = 0; c < dim[1]; c++) {
            for (int64_t i = 0; i < pixels; i++) {
                int64_t row = (n * dim[1] + c) * pixels + i, last = (n * pixels + i) * dim[1] + c;
                to[back ? row : last] = from[back ? last : row];
            }
        }
    }
    return to;
}

static void *room(int64_t bytes, sdlf_tensor *tensor)
{
    void *memory = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (bytes > 0) *tensor = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), memory);
    return memory;
}

/* The result of cpu, row-major. */
static float *result_of(sdlf_calculator *cpu, sdlf_operation o, bool last, bool ready)
{
    const sdlf_operation given = o;
    int64_t count = sdlf_tensor_count(&o.out[0]);
    float *y = numbers(count, 10), *x = NULL, *residual = NULL;
    o.out[0].data = y;
    if (last) {
        o = sdlf_operation_channels_last(&o);
        o.in[0].data = x = turned(&given.in[0], given.in[0].data, false);
        if (sdlf_tensor_present(&o.in[7])) o.in[7].data = residual = turned(&given.in[7], given.in[7].data, false);
    }
    CHECK(sdlf_calculator_supports(cpu, &o));
    void *prepared = ready ? room(sdlf_calculator_prepared(cpu, &o), &o.prepared) : NULL;
    if (ready) CHECK_OK(sdlf_calculator_slot(cpu, &o)->prepare(cpu, &o));
    void *workspace = room(sdlf_calculator_workspace(cpu, &o), &o.workspace);
    CHECK_OK(sdlf_calculator_run(cpu, &o));
    float *found = last ? turned(&given.out[0], y, true) : y;
    if (last) free(y);
    free(x);
    free(residual);
    free(workspace);
    free(prepared);
    return found;
}

static void check_geometry(const geometry *g, sdlf_calculator *reference, sdlf_calculator *const *cpu)
{
    sdlf_operation o = operation_of(g);
    int64_t count = sdlf_tensor_count(&o.out[0]);
    float *expected = o.out[0].data, largest = 0;
    CHECK_OK(sdlf_calculator_run(reference, &o));
    for (int64_t i = 0; i < count; i++) largest = fmaxf(largest, fabsf(expected[i]));
    for (int way = 0; way < 4; way++) {
        float *found = result_of(cpu[0], o, way & 1, way & 2), difference = 0;
        for (int64_t i = 0; i < count; i++) difference = fmaxf(difference, fabsf(found[i] - expected[i]));
        if (!CHECK(largest > 0 && difference <= 3e-6f * largest))
            printf("    %d: %g of %g, m %d\n", way, (double)difference, (double)largest, (int)g->m);
        for (int other = 1; other < CALCULATORS; other++) {
            float *again = result_of(cpu[other], o, way & 1, way & 2);
            CHECK(memcmp(found, again, (size_t)count * sizeof *found) == 0);
            free(again);
        }
        free(found);
    }
    for (int i = 0; i < OPERANDS; i++) free(o.in[i].data);
    free(expected);
}

/* Each of many threads has something to do, and scratch space for only that. */
static void threads_take_fewer_rows_each(sdlf_calculator *const *cpu)
{
    sdlf_operation o = operation_of(&geometries[2]);
    int64_t one = sdlf_calculator_workspace(cpu[0], &o), room = sdlf_calculator_workspace(cpu[1], &o) - one;
    CHECK(room > 0 && sdlf_calculator_workspace(cpu[MANY], &o) - one < 24 * room);
    for (int i = 0; i < OPERANDS; i++) free(o.in[i].data);
    free(o.out[0].data);
}

static void large_blocks_are_one(void)
{
    sdlf_calculator *reference = NULL, *cpu[CALCULATORS] = {NULL};
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    for (int i = 0; i < CALCULATORS; i++)
        CHECK_OK(sdlf_calculator_open(&cpu[i], "cpu", &(sdlf_calculator_options){.threads = threads[i]}));
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++)
        check_geometry(&geometries[i], reference, cpu);
    threads_take_fewer_rows_each(cpu);
    for (int i = 0; i < CALCULATORS; i++) sdlf_calculator_close(cpu[i]);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(large_blocks_are_one);
    return test_summary();
}
