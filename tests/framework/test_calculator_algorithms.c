/* SPDX-License-Identifier: MIT */
/* Algorithms of a calculator: their descriptions, and which one "auto" chooses. */
#include "testing.h"

#include <sdlf/calculator.h>

#include <string.h>

/* Notes follow the names; an algorithm without its own cost has that of the operation. */
static void algorithms_are_described(void)
{
    sdlf_calculator *cpu = NULL, *reference = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    CHECK_OK(sdlf_calculator_open(&reference, "reference", NULL));
    sdlf_operation conv = {.kind = SDLF_CONV2D_FORWARD,
                           .in = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 2, 5, 6), NULL),
                                  sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(3, 2, 3, 3), NULL)},
                           .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 3, 5, 6), NULL)},
                           .conv2d = {.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, .groups = 1}};
    sdlf_cost asked = sdlf_operation_cost(&conv);
    CHECK_EQUAL(asked.flops, 2 * 3 * 30 * 18);
    const sdlf_kernel_slot *slot = &cpu->type->kernel[SDLF_CONV2D_FORWARD];
    for (int i = 0; slot->algorithms[i]; i++) {
        conv.algorithm = i;
        sdlf_algorithm_note note = sdlf_calculator_note(cpu, &conv);
        CHECK(note.summary && strlen(note.summary) > 0);
        bool request = strcmp(slot->algorithms[i], "naive") == 0 || strcmp(slot->algorithms[i], "winograd-4x4") == 0;
        CHECK(note.on_request == request);
        sdlf_cost work = sdlf_calculator_work(cpu, &conv);
        if (strcmp(slot->algorithms[i], "im2col") == 0) { /* patches, written and read */
            CHECK_EQUAL(work.bytes, asked.bytes + 2 * 18 * 30 * 4);
            CHECK_EQUAL(work.flops, asked.flops);
        }
        if (strcmp(slot->algorithms[i], "winograd-4x4") == 0) { /* 2 tiles by 2 */
            CHECK_EQUAL(work.bytes, asked.bytes + 2 * 36 * (3 * 2 + 4 * (2 + 3)) * 4);
            CHECK_EQUAL(work.flops, 3 * 2 * 108 + 4 * (2 * 228 + 3 * 130) + 2 * 36 * 4 * 3 * 2);
        }
    }
    conv.algorithm = 0;
    const char *taken = sdlf_calculator_algorithm(cpu, &conv);
    CHECK(strcmp(taken, "im2col") == 0 || strcmp(taken, "direct") == 0);
    conv.in[0] = sdlf_tensor_channels_last(conv.in[0]);
    conv.out[0] = sdlf_tensor_channels_last(conv.out[0]);
    CHECK_TEXT(sdlf_calculator_algorithm(cpu, &conv), "implicit-gemm");
    conv.in[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 32, 8, 7), NULL));
    conv.in[1] = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(48, 32, 3, 3), NULL);
    conv.out[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 48, 8, 7), NULL));
    CHECK_TEXT(sdlf_calculator_algorithm(cpu, &conv), "winograd-2x2");
    CHECK_EQUAL(sdlf_calculator_work(cpu, &conv).flops, /* of 16 tiles, and of filters */
                16 * (32 * 32 + 48 * 24 + 2 * 16 * 32 * 48) + 32 * 48 * 35);
    conv.in[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 32, 6, 7), NULL));
    conv.out[0] = sdlf_tensor_channels_last(sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, 48, 6, 7), NULL));
    CHECK_TEXT(sdlf_calculator_algorithm(cpu, &conv), "implicit-gemm"); /* 12 tiles are too few */
    CHECK(sdlf_calculator_note(reference, &conv).summary == NULL);
    asked = sdlf_operation_cost(&conv);
    CHECK_EQUAL(sdlf_calculator_work(reference, &conv).flops, asked.flops);
    CHECK_EQUAL(sdlf_calculator_work(reference, &conv).bytes, asked.bytes);
    conv.algorithm = 99;
    CHECK(sdlf_calculator_note(cpu, &conv).summary == NULL);
    sdlf_calculator_close(reference);
    sdlf_calculator_close(cpu);
}

/* The layout and the algorithm of convolutions whose filters do not fill a vector depend on the cost of patches; these
 * cases are the same at every level of vector instructions. */
static void few_filters_stay_row_major(void)
{
    static const struct {
        int64_t c, side, k;
        int stride;
        bool last;
        const char *row_major;
    } conv[] = {
        {1, 63, 1, 1, false, "im2col"},  {3, 31, 1, 3, true, "im2col"},   {3, 63, 1, 3, false, "im2col"},
        {3, 127, 1, 2, true, "im2col"},  {512, 14, 2, 1, true, "im2col"}, {3, 224, 64, 1, true, "im2col"},
        {1, 28, 32, 1, false, "im2col"}, {64, 56, 64, 2, true, "im2col"},
    };
    sdlf_calculator *cpu = NULL;
    CHECK_OK(sdlf_calculator_open(&cpu, "cpu", NULL));
    for (size_t i = 0; i < sizeof conv / sizeof conv[0]; i++) {
        int64_t c = conv[i].c, side = conv[i].side, k = conv[i].k, out = (side - 1) / conv[i].stride + 1;
        sdlf_operation o = {.kind = SDLF_CONV2D_FORWARD,
                            .in = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, c, side, side), NULL),
                                   sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(k, c, 3, 3), NULL)},
                            .out = {sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(1, k, out, out), NULL)},
                            .conv2d = {.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, .groups = 1}};
        for (int axis = 0; axis < 2; axis++) o.conv2d.window.stride[axis] = conv[i].stride;
        CHECK_EQUAL(sdlf_calculator_prefers_channels_last(cpu, &o), conv[i].last);
        CHECK_TEXT(sdlf_calculator_algorithm(cpu, &o), conv[i].row_major);
        if (c > 1) CHECK_EQUAL(sdlf_calculator_prepared(cpu, &o), 0); /* prepacking would change the layout */
    }
    sdlf_calculator_close(cpu);
}

/* For every calculator: each algorithm of a convolution has a note, and "auto" chooses one that supports the operation
 * and does not run only on request. */
static void check_automatic(sdlf_calculator *calculator, sdlf_operation operation)
{
    const sdlf_kernel_slot *slot = sdlf_calculator_slot(calculator, &operation);
    for (int i = 0; slot->notes && slot->algorithms[i]; i++) CHECK(slot->notes[i].summary && *slot->notes[i].summary);
    if (!slot->automatic || !sdlf_calculator_supports(calculator, &operation)) return;
    const char *auto_name = slot->algorithms[0];
    CHECK(strcmp(sdlf_calculator_algorithm(calculator, &operation), auto_name) != 0);
    sdlf_cost least = sdlf_operation_cost(&operation), work = sdlf_calculator_work(calculator, &operation);
    CHECK(work.bytes >= least.bytes && work.flops > 0);
    operation.algorithm = slot->automatic(calculator, &operation);
    CHECK(!sdlf_calculator_note(calculator, &operation).on_request);
    CHECK(sdlf_calculator_supports(calculator, &operation));
}

static void what_auto_takes_is_told(void)
{
    static const struct {
        int n, c, side, k, size, stride, groups;
    } shapes[] = {{1, 3, 31, 1, 3, 1, 1},     {2, 64, 56, 64, 3, 1, 1},  {1, 512, 14, 512, 3, 1, 1},
                  {1, 32, 112, 32, 3, 1, 32}, {32, 96, 28, 24, 1, 1, 1}, {1, 3, 64, 64, 7, 2, 1},
                  {1, 2, 40, 3, 33, 1, 1}};
    for (int i = 0; test_calculator_class_at(i); i++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(i)->name);
        if (calculator == NULL) continue;
        for (size_t j = 0; j < sizeof shapes / sizeof shapes[0]; j++) {
            int size = shapes[j].size, stride = shapes[j].stride, out = (shapes[j].side - 1) / stride + 1;
            sdlf_tensor x = sdlf_tensor_view(
                SDLF_FLOAT32, sdlf_shape(shapes[j].n, shapes[j].c, shapes[j].side, shapes[j].side), NULL);
            sdlf_tensor w = sdlf_tensor_view(SDLF_FLOAT32,
                                             sdlf_shape(shapes[j].k, shapes[j].c / shapes[j].groups, size, size), NULL);
            sdlf_tensor y = sdlf_tensor_view(SDLF_FLOAT32, sdlf_shape(shapes[j].n, shapes[j].k, out, out), NULL);
            sdlf_operation operation = {
                .kind = SDLF_CONV2D_FORWARD,
                .in = {x, w},
                .out = {y},
                .conv2d = {
                    .window = {{size, size}, {stride, stride}, {1, 1}, {size / 2, size / 2}, {size / 2, size / 2}},
                    .groups = shapes[j].groups}};
            CHECK_OK(sdlf_operation_check(&operation));
            check_automatic(calculator, operation);
            operation.kind = SDLF_CONV2D_BACKWARD_INPUT;
            operation.in[0] = y;
            operation.out[0] = x;
            check_automatic(calculator, operation);
            operation.kind = SDLF_CONV2D_BACKWARD_WEIGHTS;
            operation.in[0] = x;
            operation.in[1] = y;
            operation.out[0] = w;
            check_automatic(calculator, operation);
        }
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(algorithms_are_described);
    RUN(few_filters_stay_row_major);
    RUN(what_auto_takes_is_told);
    return test_summary();
}
