/* SPDX-License-Identifier: MIT */
/* Copies of parts of a tensor are eliminated if the reader supports views. */
#include <math.h>
#include <string.h>

#include "framework/plan/networks.h"
#include "testing.h"

enum { WIDTH = 12, PART = WIDTH / 3 };

static sdlf_node part_of(sdlf_model *net, sdlf_node x, int index)
{
    return sdlf_slice(net, x,
                      &(sdlf_slice_options){.axes = sdlf_shape(1),
                                            .start = sdlf_shape((int64_t)index * PART),
                                            .end = sdlf_shape((int64_t)(index + 1) * PART)});
}

/* tanh(a) b + c of the parts of a sum, and the whole sum concatenated with the first part. */
static sdlf_model *parts(void)
{
    sdlf_model *net = sdlf_model_create("parts");
    const sdlf_binary_layer_options multiply = {.function = SDLF_LAYER_MULTIPLY};
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(WIDTH));
    x = sdlf_add(net, x, x);
    sdlf_node a = part_of(net, x, 0), b = part_of(net, x, 1), c = part_of(net, x, 2);
    sdlf_node scaled = sdlf_binary(net, (sdlf_node[]){sdlf_tanh(net, a), b}, 2, &multiply);
    sdlf_output(net, "sum", sdlf_add(net, scaled, c));
    sdlf_output(net, "joined", sdlf_concat(net, (sdlf_node[]){a, x}, 2, NULL));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

typedef struct results {
    float sum[2 * PART], joined[2 * (PART + WIDTH)];
} results;

static void run(sdlf_model *net, sdlf_calculator *calculator, int batch, bool fused, int copies, results *found)
{
    static float x[2 * WIDTH];
    sdlf_plan *plan = NULL;
    fill_random(x, batch * WIDTH, 8);
    CHECK_OK(
        sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = batch, .forward = calculator, .no_fusion = !fused}));
    if (plan == NULL) return;
    CHECK_EQUAL(count_steps(plan, "copy"), copies);
    CHECK_OK(test_plan_write(plan, "x", x));
    CHECK_OK(sdlf_plan_forward(plan));
    CHECK_OK(test_plan_read(plan, "sum", found->sum));
    CHECK_OK(test_plan_read(plan, "joined", found->joined));
    sdlf_plan_free(plan);
}

/* With one sample, a part is contiguous, and every operation can read it in place; with two, only operations that support strides can: in host
 * memory the product and the concatenation. The concatenation itself requires two copies. */
static void parts_are_read_in_place(void)
{
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        bool host = strcmp(calculator->space, SDLF_HOST_SPACE) == 0;
        for (int batch = 1; batch <= 2; batch++) {
            static results found, expected;
            sdlf_model *net = parts();
            run(net, calculator, batch, true, batch == 1 ? 2 : host ? 4 : 5, &found);
            run(net, calculator, batch, false, 5, &expected);
            for (int i = 0; i < batch * PART; i++) CHECK_CLOSE((double)found.sum[i], (double)expected.sum[i], 1e-6);
            for (int i = 0; i < batch * (PART + WIDTH); i++)
                CHECK_CLOSE((double)found.joined[i], (double)expected.joined[i], 0);
            sdlf_model_free(net);
        }
        sdlf_calculator_close(calculator);
    }
}

/* If an operation reads a buffer in two orders at once, its output must not overwrite that buffer. */
static void results_keep_off_what_is_read_otherwise(void)
{
    enum { SIDE = 48 };
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float x[SIDE * SIDE], found[2][SIDE * SIDE];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = sdlf_model_create("both");
        const sdlf_binary_layer_options subtract = {.function = SDLF_LAYER_SUBTRACT};
        sdlf_node in = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(SIDE, SIDE)), a = sdlf_tanh(net, in);
        sdlf_node b = sdlf_transpose(net, a, &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1)});
        sdlf_output(net, "y", sdlf_tanh(net, sdlf_binary(net, (sdlf_node[]){a, b}, 2, &subtract)));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_random(x, SIDE * SIDE, 9);
        for (int parts = 0; parts < 2; parts++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator, .no_fusion = parts != 0}));
            if (plan == NULL) continue;
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", found[parts]));
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < SIDE * SIDE; i++) CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* Parts of a transposed tensor that are copied once more: only the last copies are left, which read the source by its strides. */
static void parts_of_a_transposed_tensor_are_read_in_place(void)
{
    enum { ROWS = 5, PARTS = 3, UNITS = 8, COUNT = 2 * ROWS * PARTS * UNITS };
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float x[COUNT], found[2][COUNT];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = sdlf_model_create("transposed");
        sdlf_node in = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(ROWS, PARTS, UNITS)), part[PARTS];
        sdlf_node transposed =
            sdlf_transpose(net, sdlf_add(net, in, in), &(sdlf_transpose_options){.order = sdlf_shape(0, 2, 1, 3)});
        for (int i = 0; i < PARTS; i++)
            part[i] = sdlf_slice(net, transposed,
                                 &(sdlf_slice_options){.axes = sdlf_shape(1),
                                                       .start = sdlf_shape((int64_t)(PARTS - 1 - i)),
                                                       .end = sdlf_shape((int64_t)(PARTS - i))});
        sdlf_output(net, "y", sdlf_concat(net, part, PARTS, NULL));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_random(x, COUNT, 11);
        for (int apart = 0; apart < 2; apart++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net, &(sdlf_plan_options){.batch = 2, .forward = calculator, .no_fusion = apart != 0}));
            if (plan == NULL) continue;
            CHECK_EQUAL(count_steps(plan, "copy"), apart ? 1 + 2 * PARTS : PARTS);
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", found[apart]));
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < COUNT; i++) CHECK_CLOSE((double)found[0][i], (double)found[1][i], 0);
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < PARTS * ROWS * UNITS; i++) {
                int of = i / (ROWS * UNITS), row = i / UNITS % ROWS, unit = i % UNITS;
                float value = x[((n * ROWS + row) * PARTS + PARTS - 1 - of) * UNITS + unit];
                CHECK_CLOSE((double)found[0][n * PARTS * ROWS * UNITS + i], 2 * (double)value, 0);
            }
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

/* The first row of a convolution's channels-last result is read in place: an addition to it is not a residual of all
 * rows. */
static void a_sum_with_a_part_of_a_result_is_no_epilogue(void)
{
    enum { CHANNELS = 16, ROWS = 9, COUNT = CHANNELS * ROWS };
    for (int c = 0; test_calculator_class_at(c) != NULL; c++) {
        static float x[COUNT], row[CHANNELS], found[2][CHANNELS];
        sdlf_calculator *calculator = test_open(test_calculator_class_at(c)->name);
        sdlf_model *net = sdlf_model_create("part");
        sdlf_node y = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(CHANNELS, ROWS, 1));
        sdlf_node other = sdlf_tanh(net, sdlf_input(net, "row", SDLF_FLOAT32, sdlf_shape(CHANNELS, 1, 1)));
        for (int i = 0; i < 3; i++) /* several, so that NHWC is chosen */
            y = sdlf_conv2d(net, y, &(sdlf_conv2d_options){.filters = CHANNELS, .kernel = {3, 1}, .padding = {1, 0}});
        y = sdlf_slice(net, y,
                       &(sdlf_slice_options){.axes = sdlf_shape(2), .start = sdlf_shape(0), .end = sdlf_shape(1)});
        sdlf_output(net, "y", sdlf_tanh(net, sdlf_add(net, y, other)));
        CHECK_OK(sdlf_model_build(net, 1));
        fill_random(x, COUNT, 13);
        fill_random(row, CHANNELS, 14);
        for (int apart = 0; apart < 2; apart++) {
            sdlf_plan *plan = NULL;
            CHECK_OK(sdlf_plan_create(
                &plan, net, &(sdlf_plan_options){.batch = 1, .forward = calculator, .no_fusion = apart != 0}));
            if (plan == NULL) continue;
            CHECK_OK(test_plan_write(plan, "x", x));
            CHECK_OK(test_plan_write(plan, "row", row));
            CHECK_OK(sdlf_plan_forward(plan));
            CHECK_OK(test_plan_read(plan, "y", found[apart]));
            sdlf_plan_free(plan);
        }
        for (int i = 0; i < CHANNELS; i++) CHECK_CLOSE((double)found[0][i], (double)found[1][i], 1e-5);
        sdlf_model_free(net);
        sdlf_calculator_close(calculator);
    }
}

int main(void)
{
    RUN(parts_of_a_transposed_tensor_are_read_in_place);
    RUN(parts_are_read_in_place);
    RUN(results_keep_off_what_is_read_otherwise);
    RUN(a_sum_with_a_part_of_a_result_is_no_epilogue);
    return test_summary();
}
