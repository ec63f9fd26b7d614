/* SPDX-License-Identifier: MIT */
/* A plan that needs more memory than the process can have is rejected before any of it is allocated, and the message
 * states what is needed, what is available, and what takes most of it. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "testing.h"

enum { SIDE = 1024, BATCH = 64 }; /* 256 MB a value */

static sdlf_model *large(void)
{
    sdlf_model *net = sdlf_model_create("large");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(1, SIDE, SIDE));
    sdlf_output(net, "wide", sdlf_concat(net, (const sdlf_node[]){x, x}, 2, &(sdlf_concat_options){.name = "both"}));
    sdlf_output(net, "small", sdlf_global_avg_pool2d(net, x));
    CHECK_OK(sdlf_model_build(net, 1));
    return net;
}

static void refused_at_once(void)
{
    sdlf_model *net = large();
    sdlf_calculator *reference = test_open("reference");
    sdlf_plan *plan;
    sdlf_memory_info memory;
    sdlf_plan_options options = {.batch = BATCH, .forward = reference};
    CHECK(setenv("SDLF_MEMORY", "500M", 1) == 0);
    CHECK_OK(sdlf_plan_measure(&memory, net, &options));
    CHECK_EQUAL(memory.output, INT64_C(2) * BATCH * SIDE * SIDE * 4);
    CHECK_TEXT(memory.output_name, "wide");
    test_reset_peak();
    int64_t before = test_live_bytes();
    CHECK_FAILS(sdlf_plan_create(&plan, net, &options), SDLF_ERROR_MEMORY,
                "plan of 'large', batch 64, with 536.9 MB for the output of both: 805.3 MB of memory are needed, and ");
    CHECK(strstr(sdlf_error_message(), " are available (SDLF_MEMORY)") != NULL);
    CHECK(plan == NULL);
    CHECK(test_peak_bytes() - before < 1 << 20);
    options.batch = 1;
    CHECK_OK(sdlf_plan_create(&plan, net, &options));
    sdlf_plan_free(plan);
    CHECK(unsetenv("SDLF_MEMORY") == 0);
    sdlf_calculator_close(reference);
    sdlf_model_free(net);
}

/* Parameters are counted before they are allocated. */
static void parameters_too(void)
{
    sdlf_model *net = sdlf_model_create("wide");
    sdlf_node x = sdlf_input(net, "x", SDLF_FLOAT32, sdlf_shape(10000));
    sdlf_output(net, "y", sdlf_fully_connected(net, x, &(sdlf_fully_connected_options){.units = 10000}));
    CHECK(setenv("SDLF_MEMORY", "100M", 1) == 0);
    CHECK_FAILS(sdlf_model_build(net, 1), SDLF_ERROR_MEMORY,
                "take 0.4 GB, and 0.1049 GB of memory is available (SDLF_MEMORY)");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
    sdlf_model_free(net);
}

int main(void)
{
    RUN(refused_at_once);
    RUN(parameters_too);
    return test_summary();
}
