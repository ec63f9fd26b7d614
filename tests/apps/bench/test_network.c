/* SPDX-License-Identifier: MIT */
/* sdlf bench network: the data on which it times a network. */
#include "testing.h"

#include <stdlib.h>

#include "apps/bench/bench.h"
#include "apps/capture.h"
#include "apps/program.h"

/* Images of 1x28x28, although the network's default is 3x32x32. */
static void built_in_network_is_made_for_the_data(void)
{
    json_t *report = CAPTURE_JSON(network_bench.run, "--net", "resnet20", "--data", "digits:40", "--batch", "4",
                                  "--steps", "2", "--repeats", "1", "--copy-size", "1MB", "--json");
    const json_t *first = json_array_get(json_object_get(report, "layers"), 0);
    CHECK_TEXT(json_string_value(json_object_get(first, "layer")), "conv1");
    CHECK_EQUAL(json_integer_value(json_array_get(json_object_get(first, "shape"), 3)), 28);
    json_decref(report);
}

static void what_cannot_be(void)
{
    CHECK_SAYS(SDLF(2, "bench", "--net", "resnet20", "--data", "nothing"), "data set 'nothing' is unknown");
    CHECK_SAYS(SDLF(2, "bench", "--net", "nothing"), "there is no network 'nothing'");
}

int main(void)
{
    RUN(built_in_network_is_made_for_the_data);
    RUN(what_cannot_be);
    return test_summary();
}
