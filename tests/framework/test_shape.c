/* SPDX-License-Identifier: MIT */
/* Shapes: counts and their overflow, comparison, printing. */
#include "testing.h"

#include <sdlf/shape.h>

static void counts_elements(void)
{
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(2, 3, 4)), 24);
    CHECK_EQUAL(sdlf_shape_count(SDLF_SCALAR), 1);
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(2, 0, 4)), 0);
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(INT64_MAX)), INT64_MAX);
}

static void refuses_what_cannot_be_counted(void)
{
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(2, -1)), -1);
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(INT64_MAX, 2)), -1);
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(INT64_C(1) << 32, INT64_C(1) << 31)), -1);
    CHECK_EQUAL(sdlf_shape_count(sdlf_shape(INT64_C(1) << 32, INT64_C(1) << 32, 0)), -1);
    CHECK_EQUAL(sdlf_shape_count((sdlf_shape){.rank = SDLF_MAX_RANK + 1}), -1);
    CHECK_EQUAL(sdlf_shape_count((sdlf_shape){.rank = -1}), -1);
}

static void spans_a_range_of_axes(void)
{
    sdlf_shape shape = sdlf_shape(2, 3, 5, 7);
    CHECK_EQUAL(sdlf_shape_span(shape, 0, 4), 210);
    CHECK_EQUAL(sdlf_shape_span(shape, 1, 3), 15);
    CHECK_EQUAL(sdlf_shape_span(shape, 2, 2), 1);
}

static void compares(void)
{
    CHECK(sdlf_shape_equal(sdlf_shape(2, 3), sdlf_shape(2, 3)));
    CHECK(!sdlf_shape_equal(sdlf_shape(2, 3), sdlf_shape(3, 2)));
    CHECK(!sdlf_shape_equal(sdlf_shape(2), sdlf_shape(2, 1)));
    CHECK(sdlf_shape_equal(SDLF_SCALAR, SDLF_SCALAR));
}

static void adds_and_removes_axes(void)
{
    CHECK(sdlf_shape_equal(sdlf_shape_prepend(9, sdlf_shape(2, 3)), sdlf_shape(9, 2, 3)));
    CHECK(sdlf_shape_equal(sdlf_shape_prepend(9, SDLF_SCALAR), sdlf_shape(9)));
    CHECK(sdlf_shape_equal(sdlf_shape_without(sdlf_shape(2, 3, 4), 0), sdlf_shape(3, 4)));
    CHECK(sdlf_shape_equal(sdlf_shape_without(sdlf_shape(2, 3, 4), 1), sdlf_shape(2, 4)));
    CHECK(sdlf_shape_equal(sdlf_shape_without(sdlf_shape(2, 3, 4), 2), sdlf_shape(2, 3)));
}

static void axes_that_are_not_there_give_nothing(void)
{
    sdlf_shape full = sdlf_shape(1, 2, 3, 4, 5, 6, 7, 8), wrong = {.rank = 9};
    CHECK_EQUAL(sdlf_shape_prepend(9, full).rank, 0);
    CHECK_EQUAL(sdlf_shape_without(sdlf_shape(2, 3), 2).rank, 0);
    CHECK_EQUAL(sdlf_shape_without(sdlf_shape(2, 3), -1).rank, 0);
    CHECK_EQUAL(sdlf_shape_without(wrong, 8).rank, 0);
    CHECK_EQUAL(sdlf_shape_span(full, -1, 2), 0);
    CHECK_EQUAL(sdlf_shape_span(full, 0, 9), 0);
    CHECK_EQUAL(sdlf_shape_span(wrong, 0, 9), 0);
}

static void broadcasts(void)
{
    sdlf_shape common;
    CHECK(sdlf_shape_broadcast(&common, sdlf_shape(4, 1, 3), sdlf_shape(5, 1)));
    CHECK(sdlf_shape_equal(common, sdlf_shape(4, 5, 3)));
    CHECK(sdlf_shape_broadcast(&common, SDLF_SCALAR, sdlf_shape(2, 7)));
    CHECK(sdlf_shape_equal(common, sdlf_shape(2, 7)));
    CHECK(!sdlf_shape_broadcast(&common, sdlf_shape(4, 2), sdlf_shape(4, 3)));
    CHECK(!sdlf_shape_broadcast(&common, sdlf_shape(3), sdlf_shape(3, 4)));
}

static void prints(void)
{
    CHECK_TEXT(sdlf_shape_print(sdlf_shape(64, 32, 28, 28)).text, "64x32x28x28");
    CHECK_TEXT(sdlf_shape_print(sdlf_shape(10)).text, "10");
    CHECK_TEXT(sdlf_shape_print(SDLF_SCALAR).text, "scalar");
    int64_t m = INT64_MIN; /* the longest text is cut, not overrun */
    CHECK(sdlf_shape_print(sdlf_shape(m, m, m, m, m, m, m, m)).text[111] == '\0');
}

int main(void)
{
    RUN(counts_elements);
    RUN(refuses_what_cannot_be_counted);
    RUN(spans_a_range_of_axes);
    RUN(compares);
    RUN(adds_and_removes_axes);
    RUN(axes_that_are_not_there_give_nothing);
    RUN(broadcasts);
    RUN(prints);
    return test_summary();
}
