/* SPDX-License-Identifier: MIT */
/* Field tables: defaults, ranges, and differences between options. */
#include <math.h>

#include "framework/field.h"
#include "testing.h"

typedef struct options {
    const char *name;
    int count, pair[2], choice;
    float share;
    double exact;
    bool flag;
    sdlf_shape shape;
} options;

static const char *const choices[] = {"share", "first", NULL};

static const sdlf_field fields[] = {
    {.name = "count", .type = SDLF_FIELD_INT, .offset = offsetof(options, count), .minimum = 1, .maximum = 9},
    {.name = "pair",
     .type = SDLF_FIELD_PAIR,
     .offset = offsetof(options, pair),
     .minimum = -2,
     .maximum = 8,
     .fallback = 3,
     .zero_means_default = true},
    {.name = "choice", .type = SDLF_FIELD_CHOICE, .offset = offsetof(options, choice), .choices = choices},
    {.name = "share",
     .type = SDLF_FIELD_FLOAT,
     .offset = offsetof(options, share),
     .minimum = 0.1,
     .maximum = 0.9,
     .fallback = 0.1,
     .zero_means_default = true},
    {.name = "exact",
     .type = SDLF_FIELD_DOUBLE,
     .offset = offsetof(options, exact),
     .minimum = 0.01,
     .maximum = 0.99,
     .fallback = 0.1,
     .zero_means_default = true},
    {.name = "flag", .type = SDLF_FIELD_BOOL, .offset = offsetof(options, flag)},
    {.name = "shape", .type = SDLF_FIELD_SHAPE, .offset = offsetof(options, shape), .minimum = -1, .maximum = 100},
    {.name = NULL},
};

static void defaults_are_filled_in(void)
{
    options found = {.count = 4, .pair = {0, 5}};
    CHECK_OK(sdlf_fields_complete(fields, &found));
    CHECK_EQUAL(found.count, 4);
    CHECK_EQUAL(found.pair[0], 3);
    CHECK_EQUAL(found.pair[1], 5);
    CHECK(found.share == 0.1f);
    CHECK(found.exact == 0.1);
}

static void check_fails(options found, const char *text)
{
    CHECK_FAILS(sdlf_fields_complete(fields, &found), SDLF_ERROR_ARGUMENT, text);
}

static void ranges_are_checked(void)
{
    check_fails((options){.count = 1, .exact = 0.995}, "exact: expected 0.01 to 0.99, found 0.995");
    check_fails((options){.count = 1, .exact = (double)NAN}, "exact");
    check_fails((options){.count = 0}, "count: expected 1 to 9, found 0");
    check_fails((options){.count = 10}, "count: expected 1 to 9, found 10");
    check_fails((options){.count = 1, .pair = {1, -3}}, "pair (horizontal): expected -2 to 8, found -3");
    check_fails((options){.count = 1, .choice = 2}, "choice: expected 0 to 1 (share, first), found 2");
    check_fails((options){.count = 1, .choice = -1}, "choice");
    check_fails((options){.count = 1, .share = 0.95f}, "share: expected 0.1 to 0.9, found 0.949999988");
    check_fails((options){.count = 1, .share = NAN}, "share: expected 0.1 to 0.9, found nan");
    check_fails((options){.count = 1, .share = -INFINITY}, "share");
    check_fails((options){.count = 1, .shape = {.rank = 9}}, "shape: expected at most 8 dimensions, found 9");
    check_fails((options){.count = 1, .shape = {.rank = 1, .dim = {101}}}, "shape (a dimension): expected -1 to 100");
}

static void the_first_difference_is_found(void)
{
    const options a = {.count = 4, .share = 0.2f, .shape = sdlf_shape(1, 2)};
    options b = a;
    CHECK(sdlf_fields_difference(fields, &a, &b) == NULL);
    b.shape.dim[1] = 3;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "shape");
    b.flag = true;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "flag");
    b.share = 0.3f;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "share");
    b.choice = 1;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "choice");
    b.pair[1] = 1;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "pair");
    b.count = 1;
    CHECK_TEXT(sdlf_fields_difference(fields, &a, &b)->name, "count");
}

int main(void)
{
    RUN(defaults_are_filled_in);
    RUN(ranges_are_checked);
    RUN(the_first_difference_is_found);
    return test_summary();
}
