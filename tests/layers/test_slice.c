/* SPDX-License-Identifier: MIT */
/* slice selects the same elements as NumPy: every start, end and step in and around an axis; two axes at once, counted
 * from either end. */
#include <stdlib.h>

#include <sdlf/sdlf.h>

#include "testing.h"

enum { LENGTH = 5, BEYOND = 7 };

static sdlf_calculator *reference;

/* Slice x (2,ROWS,COLUMNS); returns the number of output elements, 0 if the slice is invalid. */
static int run(const sdlf_slice_options *options, sdlf_shape shape, const float *x, float *y)
{
    sdlf_model *net = sdlf_model_create("slice");
    sdlf_plan *plan = NULL;
    sdlf_binding binding;
    int count = 0;
    sdlf_output(net, "y", sdlf_slice(net, sdlf_input(net, "x", SDLF_FLOAT32, shape), options));
    sdlf_status status = sdlf_plan_create(&plan, net, &(sdlf_plan_options){.batch = 2, .forward = reference});
    CHECK(status == SDLF_OK || status == SDLF_ERROR_SHAPE);
    if (status == SDLF_OK && CHECK_OK(sdlf_plan_output(plan, "y", &binding))) {
        count = (int)sdlf_tensor_count(&binding.tensor);
        CHECK_OK(test_plan_write(plan, "x", x));
        CHECK_OK(sdlf_plan_forward(plan));
        CHECK_OK(test_plan_read(plan, "y", y));
    }
    sdlf_plan_free(plan);
    sdlf_model_free(net);
    return count;
}

/* The indices that start, start + step, ... before end are, worked out one by one. */
static int indices(int start, int end, int step, int *index)
{
    int count = 0;
    if (start < 0) start += LENGTH;
    if (end < 0) end += LENGTH;
    for (int at = 0; at < LENGTH; at++) { /* in the order in which they are met */
        int i = step > 0 ? at : LENGTH - 1 - at;
        int first = step > 0 ? (start < 0 ? 0 : start) : start >= LENGTH ? LENGTH - 1 : start;
        bool reached = step > 0 ? i >= first && i < end : i <= first && i > end;
        if (reached && (i - first) % step == 0) index[count++] = i;
    }
    return count;
}

static void one_axis(void)
{
    float x[2 * LENGTH], y[2 * LENGTH];
    int index[LENGTH];
    for (int i = 0; i < 2 * LENGTH; i++) x[i] = (float)i;
    for (int start = -BEYOND; start <= BEYOND; start++)
        for (int end = -BEYOND; end <= BEYOND; end++)
            for (int step = -3; step <= 3; step++) {
                if (step == 0) continue;
                sdlf_slice_options options = {
                    .axes = {1, {1}}, .start = {1, {start}}, .end = {1, {end}}, .step = {step == 1 ? 0 : 1, {step}}};
                int expected = indices(start, end, step, index);
                int found = run(&options, sdlf_shape(LENGTH), x, y);
                if (!CHECK_EQUAL(found, 2 * expected)) continue;
                for (int i = 0; i < found; i++) CHECK_CLOSE(y[i], x[i / expected * LENGTH + index[i % expected]], 0);
            }
}

/* Rows 2 and 0 of each sample, columns 1 and 2: axes counted from the front and from the back. */
static void two_axes(void)
{
    enum { ROWS = 3, COLUMNS = 4 };
    float x[2 * ROWS * COLUMNS], y[2 * ROWS * COLUMNS];
    for (int i = 0; i < 2 * ROWS * COLUMNS; i++) x[i] = (float)i;
    for (int named = 0; named < 2; named++) {
        sdlf_slice_options options = {.axes = {2, {named ? -1 : 2, named ? -2 : 1}},
                                      .start = {2, {1, -1}},
                                      .end = {2, {3, -99}},
                                      .step = {2, {1, -2}}};
        if (!CHECK_EQUAL(run(&options, sdlf_shape(ROWS, COLUMNS), x, y), 8)) continue;
        for (int i = 0; i < 8; i++) CHECK_CLOSE(y[i], x[i / 4 * 12 + (i / 2 % 2 ? 0 : 2) * COLUMNS + 1 + i % 2], 0);
    }
}

int main(void)
{
    reference = test_open("reference");
    RUN(one_axis);
    RUN(two_axes);
    sdlf_calculator_close(reference);
    return test_summary();
}
