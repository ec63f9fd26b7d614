/* SPDX-License-Identifier: MIT */
/* Stem convolutions on cpu: row-major images of few channels into channels-last outputs, as in inference plans; against
 * reference, with plain and prepacked weights, with the same bits at any number of threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { OPERANDS = 4 };

static const int threads[] = {1, 2, 3, 40};
enum { CALCULATORS = sizeof threads / sizeof threads[0] };

typedef struct geometry {
    int64_t n, c, h, w, k;
    int size[2], stride[2], dilation, before[2], after[2];
    bool residual, bias;
    sdlf_activation_function function;
} geometry;

static const geometry geometries[] = {
    {1, 3, 56, 60, 32, {3, 3}, {2, 2}, 1, {1, 1}, {1, 1}, false, true, SDLF_CLIP},
    {2, 3, 41, 37, 64, {7, 7}, {2, 2}, 1, {3, 3}, {3, 3}, false, true, SDLF_RELU},
    {1, 2, 30, 29, 50, {3, 3}, {1, 1}, 1, {1, 1}, {1, 1}, true, false, SDLF_SILU},
    {3, 4, 9, 7, 16, {2, 5}, {3, 1}, 2, {0, 2}, {1, 0}, true, true, SDLF_RELU},       /* one vector, or more */
    {1, 3, 12, 80, 23, {3, 3}, {1, 2}, 1, {1, 0}, {1, 1}, true, true, SDLF_IDENTITY}, /* the last overlaps */
    {1, 3, 5, 6, 70, {1, 1}, {1, 1}, 1, {0, 0}, {0, 0}, false, false, SDLF_IDENTITY},
    {1, 3, 6, 5, 40, {3, 3}, {2, 2}, 1, {7, 9}, {8, 7}, false, true, SDLF_RELU},   /* outputs of padding only */
    {1, 2, 40, 50, 33, {3, 3}, {5, 2}, 1, {0, 0}, {0, 0}, false, true, SDLF_RELU}, /* unread rows */
};

static float *numbers(int64_t count, uint64_t seed)
{
    float *to = malloc((size_t)count * sizeof *to);
    fill_random(to, count, seed);
    return to;
}

static sdlf_tensor operand(sdlf_shape shape, uint64_t seed)
{
    return sdlf_tensor_view(SDLF_FLOAT32, shape, numbers(sdlf_shape_count(shape), seed));
}

static sdlf_operation operation_of(const geometry *g)
{
    sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD, .conv2d = {.groups = 1, .activation = {.function = g->function}}};
    sdlf_window2d *window = &o.conv2d.window;
    if (g->function == SDLF_CLIP) o.conv2d.activation = (sdlf_activation){.function = SDLF_CLIP, .low = -1, .high = 2};
    for (int i = 0; i < 2; i++) {
        window->size[i] = g->size[i];
        window->stride[i] = g->stride[i];
        window->dilation[i] = i == 0 ? g->dilation : 1;
        window->padding_before[i] = g->before[i];
        window->padding_after[i] = g->after[i];
    }
    sdlf_shape y = sdlf_shape(g->n, g->k, sdlf_window2d_output(window, 0, g->h), sdlf_window2d_output(window, 1, g->w));
    o.in[0] = operand(sdlf_shape(g->n, g->c, g->h, g->w), 1);
    o.in[1] = operand(sdlf_shape(g->k, g->c, g->size[0], g->size[1]), 2);
    if (g->bias) o.in[2] = operand(sdlf_shape(g->k), 3);
    if (g->residual) o.in[3] = operand(y, 4);
    o.out[0] = operand(y, 5);
    return o;
}

/* to = from, an image's elements from row-major to channels last, or back */
static void turn(const sdlf_shape *shape, float *to, const float *from, bool back)
{
    int64_t c = shape->dim[1], pixels = shape->dim[2] * shape->dim[3];
    for (int64_t i = 0; i < shape->dim[0] * c * pixels; i++) {
        int64_t n = i / (c * pixels), channel = i / pixels % c, last = (n * pixels + i % pixels) * c + channel;
        to[back ? i : last] = from[back ? last : i];
    }
}

static void *room(int64_t bytes, sdlf_tensor *tensor)
{
    void *memory = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (bytes > 0) *tensor = sdlf_tensor_view(SDLF_UINT8, sdlf_shape(bytes), memory);
    return memory;
}

/* The result of cpu, row-major. */
static float *result_of(sdlf_calculator *cpu, const sdlf_operation *given, bool ready)
{
    const sdlf_shape shape = given->out[0].shape;
    int64_t count = sdlf_shape_count(shape);
    float *y = numbers(count, 10), *found = numbers(count, 11), *residual = numbers(count, 12);
    sdlf_operation o = sdlf_operation_channels_last(given);
    o.in[0] = given->in[0];
    o.out[0].data = y;
    if (sdlf_tensor_present(&o.in[3])) {
        turn(&shape, residual, given->in[3].data, false);
        o.in[3].data = residual;
    }
    CHECK(sdlf_operation_is_mixed(&o) && sdlf_calculator_supports(cpu, &o));
    void *prepared = ready ? room(sdlf_calculator_prepared(cpu, &o), &o.prepared) : NULL;
    if (ready) CHECK_OK(sdlf_calculator_slot(cpu, &o)->prepare(cpu, &o));
    void *workspace = room(sdlf_calculator_workspace(cpu, &o), &o.workspace);
    CHECK_OK(sdlf_calculator_run(cpu, &o));
    turn(&shape, found, y, true);
    free(y);
    free(residual);
    free(workspace);
    free(prepared);
    return found;
}

static void check_geometry(const geometry *g, sdlf_calculator *reference, sdlf_calculator *const *cpu)
{
    sdlf_operation o = operation_of(g);
    int64_t count = sdlf_tensor_count(&o.out[0]);
    float *expected = o.out[0].data, largest = 0, difference = 0;
    CHECK_OK(sdlf_calculator_run(reference, &o));
    float *first = result_of(cpu[0], &o, false);
    for (int64_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(expected[i]));
        difference = fmaxf(difference, fabsf(first[i] - expected[i]));
    }
    CHECK(largest > 0 && difference <= 3e-6f * largest);
    for (int i = 0; i < 2 * CALCULATORS; i++) {
        float *again = result_of(cpu[i / 2], &o, i % 2);
        CHECK(memcmp(first, again, (size_t)count * sizeof *first) == 0);
        free(again);
    }
    free(first);
    for (int i = 0; i < OPERANDS; i++) free(o.in[i].data);
    free(expected);
}

static void row_major_images_become_channels_last(void)
{
    sdlf_calculator *reference = test_open("reference"), *cpu[CALCULATORS] = {NULL};
    for (int i = 0; i < CALCULATORS; i++)
        CHECK_OK(sdlf_calculator_open(&cpu[i], "cpu", &(sdlf_calculator_options){.threads = threads[i]}));
    for (size_t i = 0; i < sizeof geometries / sizeof geometries[0]; i++)
        check_geometry(&geometries[i], reference, cpu);
    for (int i = 0; i < CALCULATORS; i++) sdlf_calculator_close(cpu[i]);
    sdlf_calculator_close(reference);
}

int main(void)
{
    RUN(row_major_images_become_channels_last);
    return test_summary();
}
