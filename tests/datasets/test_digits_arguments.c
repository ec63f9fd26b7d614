/* SPDX-License-Identifier: MIT */
/* The argument of the procedural digits: counts, seeds, invalid arguments, and lack of memory. */
#include "testing.h"

#include "datasets/datasets_internal.h"
#include "datasets/digits.h"
#include "datasets/digits_open.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void counts_and_seeds_are_obeyed(void)
{
    sdlf_dataset one, two, test;
    CHECK_OK(open_digits(&one, "1", SDLF_SPLIT_TRAIN));
    CHECK_EQUAL(one.samples.shape.dim[0], 1);
    close_digits(&one);

    CHECK_OK(open_digits(&one, "25,1", SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&two, "25,18446744073709551615", SDLF_SPLIT_TRAIN));
    CHECK_OK(open_digits(&test, "25", SDLF_SPLIT_TEST));
    CHECK_EQUAL(one.samples.shape.dim[0], 25);
    CHECK_EQUAL(test.samples.shape.dim[0], 5); /* a sixth, rounded up */
    CHECK_TEXT(two.name, "digits (procedural, seed 18446744073709551615)");
    CHECK(memcmp(one.samples.data, two.samples.data, 25 * DIGIT_PIXELS) != 0);
    close_digits(&one);
    close_digits(&two);
    close_digits(&test);
}

static void bad_arguments_are_refused(void)
{
    static const char *const bad[] = {
        "abc", "", "0", "00", "-5", "+5", " 5", "5 ", "1.5", "1e3", "5;1", "2147483648", "99999999999999999999999999"};
    sdlf_dataset dataset;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_FAILS(open_digits(&dataset, bad[i], SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                    "expected digits:COUNT or digits:COUNT,SEED");
        close_digits(&dataset);
    }
    CHECK_FAILS(open_digits(&dataset, "abc", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found 'digits:abc'");
    CHECK_FAILS(open_digits(&dataset, "5,", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "expected a seed");
    CHECK_FAILS(open_digits(&dataset, "5,x", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found 'x'");
    CHECK_FAILS(open_digits(&dataset, "5,-1", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found '-1'");
    CHECK_FAILS(open_digits(&dataset, "5,1,1", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "found '1,1'");
    CHECK_FAILS(open_digits(&dataset, "5,18446744073709551616", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT,
                "a seed from 0");
    CHECK_FAILS(open_digits(&dataset, "60,000", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "without a comma");
    close_digits(&dataset);
}

static void what_cannot_fit_is_refused_before_it_is_allocated(void)
{
    sdlf_dataset dataset;
    CHECK(setenv("SDLF_MEMORY", "1G", 1) == 0);
    int64_t before = test_allocations();
    CHECK_FAILS(open_digits(&dataset, "2147483647", SDLF_SPLIT_TRAIN), SDLF_ERROR_MEMORY,
                "digits: 2147483647 images: 1.7 TB of memory are needed");
    CHECK_EQUAL(test_allocations(), before);
    CHECK(unsetenv("SDLF_MEMORY") == 0);
    close_digits(&dataset);
}

static sdlf_status open_and_close(void *argument)
{
    sdlf_dataset dataset;
    sdlf_status status = open_digits(&dataset, argument, SDLF_SPLIT_TRAIN);
    close_digits(&dataset);
    return status;
}

static void survives_lack_of_memory(void)
{
    test_every_allocation("digits", open_and_close, "600");
}

int main(void)
{
    RUN(counts_and_seeds_are_obeyed);
    RUN(bad_arguments_are_refused);
    RUN(what_cannot_fit_is_refused_before_it_is_allocated);
    RUN(survives_lack_of_memory);
    return test_summary();
}
