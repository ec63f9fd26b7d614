/* sdlf bench conv: which rungs there are, and other calculators as rungs beside them. */
#include "testing.h"

#include <sdlf/sdlf.h>

#include "apps/bench.h"
#include "apps/bench_conv.h"
#include "apps/bench_conv_rungs.h"
#include "apps/capture.h"
#include "apps/program.h"

/* What another calculator takes is a rung of its own name, on the same operands; the summary sets auto beside it. */
static void calculators_are_held_against_each_other(void)
{
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--against", "reference", "--rung", "im2col", "--rung", "auto",
                                  "--rung", "reference", "--json", "-");
    const json_t *rungs = json_object_get(report, "rungs"), *rival = json_array_get(rungs, 2);
    CHECK_EQUAL(json_array_size(rungs), 3);
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(rungs, 1), "calculator")), "cpu");
    CHECK_TEXT(json_string_value(json_object_get(rival, "name")), "reference");
    CHECK_TEXT(json_string_value(json_object_get(rival, "calculator")), "reference");
    CHECK(number(rival, "seconds") > 0 && number(rival, "error") == 0);
    json_decref(report);
    const program *p = SDLF(0, "bench", "conv", "--workload", "study", "--side", "31", QUICK, "--against", "reference");
    CHECK_SAYS(p, "auto beside reference");
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "cpu"),
               "--against cpu: expected another calculator than --calculator");
    static lab l;
    machine m = {.count = 0};
    sdlf_calculator *cpu = NULL;
    char left_out[200];
    const argument_list none = {.count = 0}, device = {.item = {"guarded"}, .count = 1};
    CHECK_OK(machine_open(&m, "cpu", &cpu));
    CHECK_FAILS(lab_choose_rungs(&l, &m, cpu, &device, &none, left_out, sizeof left_out), SDLF_ERROR_ARGUMENT,
                "--against guarded: it computes in the memory of guarded:0, and cpu in that of host");
    machine_close(&m);
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "nothing"), "--against nothing");
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--rung", "im2cow"), "did you mean 'im2col'?");
}

int main(void)
{
    RUN(calculators_are_held_against_each_other);
    return test_summary();
}
