/* SPDX-License-Identifier: MIT */
/* sdlf bench conv: the available rungs, and other calculators as additional rungs. */
#include "testing.h"

#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/bench.h"
#include "apps/bench/conv/conv.h"
#include "apps/bench/conv/rungs.h"
#include "apps/capture.h"
#include "apps/program.h"

/* The time of another calculator is a rung with its name, on the same operands; the summary compares auto with it. */
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
               "--against cpu: expected a calculator other than --calculator");
    static lab l;
    machine m = {.count = 0};
    sdlf_calculator *cpu = NULL;
    char left_out[200];
    const argument_list none = {.count = 0}, device = {.item = {"guarded"}, .count = 1};
    CHECK_OK(machine_open(&m, "cpu", &cpu));
    const lab_rung_choice choice = {.against = &device, .wanted = &none, .usual = lab_usual_rivals};
    CHECK_FAILS(lab_choose_rungs(&l, &m, cpu, &choice, left_out, sizeof left_out), SDLF_ERROR_ARGUMENT,
                "--against guarded: it computes in the memory of guarded:0, and cpu in that of host");
    machine_close(&m);
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "nothing"), "--against nothing");
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--rung", "im2cow"), "did you mean 'im2col'?");
}

/* An algorithm may have another calculator's name, such as "cuda" of the cudnn calculator: then the rival gets a longer
 * name. */
static void no_two_rungs_have_one_name(void)
{
    static const char *const algorithms[] = {"auto", "im2col", "reference", NULL};
    static lab l;
    machine m = {.count = 0};
    sdlf_calculator *cpu = NULL;
    char left_out[200];
    if (!CHECK_OK(machine_open(&m, "cpu", &cpu))) return;
    const sdlf_calculator_class *own = cpu->type;
    sdlf_calculator_class renamed = *own;
    renamed.kernel[SDLF_CONV2D_FORWARD].algorithms = algorithms;
    renamed.kernel[SDLF_CONV2D_FORWARD].notes = NULL;
    cpu->type = &renamed;
    const argument_list none = {.count = 0}, against = {.item = {"reference"}, .count = 1},
                        algorithm = {.item = {"reference"}, .count = 1},
                        rival = {.item = {"reference:auto"}, .count = 1};
    lab_rung_choice choice = {.against = &against, .wanted = &none, .usual = lab_usual_rivals};
    l.rungs = 0;
    CHECK_OK(lab_choose_rungs(&l, &m, cpu, &choice, left_out, sizeof left_out));
    CHECK_EQUAL(l.rungs, 4);
    CHECK_TEXT(l.rung[1].name, "reference");
    CHECK(l.rung[1].calculator == cpu && l.rung[1].algorithm == 2 && !l.rung[1].rival);
    CHECK_TEXT(l.rung[3].name, "reference:auto");
    CHECK(l.rung[3].calculator != cpu && l.rung[3].rival);
    choice.wanted = &algorithm;
    l.rungs = 0;
    CHECK_OK(lab_choose_rungs(&l, &m, cpu, &choice, left_out, sizeof left_out));
    CHECK(l.rungs == 1 && !l.rung[0].rival);
    choice.wanted = &rival;
    l.rungs = 0;
    CHECK_OK(lab_choose_rungs(&l, &m, cpu, &choice, left_out, sizeof left_out));
    CHECK(l.rungs == 1 && l.rung[0].rival);
    cpu->type = own;
    machine_close(&m);
    json_t *report = CAPTURE_JSON(conv_bench.run, SMALL, "--against", "reference", "--rung", "reference:auto", "--json",
                                  "-"); /* its short name is free here */
    CHECK_TEXT(json_string_value(json_object_get(json_array_get(json_object_get(report, "rungs"), 0), "name")),
               "reference");
    json_decref(report);
    CHECK_SAYS(SDLF(2, "bench", "conv", SMALL, "--against", "reference", "--against", "reference"),
               "--against reference is given twice");
}

/* The calculators that are open after these rungs are selected; by default reference is compared with cpu. */
static int opened_for(const argument_list *wanted, const char *rival, sdlf_status expected, const char *message,
                      char *left_out, size_t size)
{
    static lab l;
    machine m = {.count = 0};
    sdlf_calculator *cpu = NULL;
    const argument_list none = {.count = 0};
    const lab_usual_rival usual[] = {{"abacus", "reference"}, {"cpu", "slide rule"}, {"cpu", rival}, {NULL, NULL}};
    const lab_rung_choice choice = {.against = &none, .wanted = wanted, .usual = usual};
    l.rungs = 0;
    CHECK_OK(machine_open(&m, "cpu", &cpu));
    sdlf_status status = lab_choose_rungs(&l, &m, cpu, &choice, left_out, size);
    if (expected == SDLF_OK)
        CHECK_OK(status);
    else
        CHECK_FAILS(status, expected, message);
    int count = m.count;
    machine_close(&m);
    return count;
}

static void a_usual_rival_is_opened_where_it_is_wanted(void)
{
    char left_out[200];
    const argument_list none = {.count = 0}, own = {.item = {"im2col", "auto"}, .count = 2},
                        both = {.item = {"auto", "reference"}, .count = 2}, wrong = {.item = {"refer"}, .count = 1};
    CHECK_EQUAL(opened_for(&none, "reference", SDLF_OK, NULL, left_out, sizeof left_out), 2);
    CHECK_EQUAL(opened_for(&both, "reference", SDLF_OK, NULL, left_out, sizeof left_out), 2);
    CHECK_EQUAL(opened_for(&own, "reference", SDLF_OK, NULL, left_out, sizeof left_out), 1);
    CHECK_TEXT(left_out, "");
    opened_for(&wrong, "reference", SDLF_ERROR_ARGUMENT, "--rung refer: cpu has no such algorithm", left_out,
               sizeof left_out);
    /* cpu cannot be compared with itself, which serves here for a library that is missing on this machine */
    CHECK_EQUAL(opened_for(&none, "cpu", SDLF_OK, NULL, left_out, sizeof left_out), 1);
    CHECK(strstr(left_out, "cpu is left out: --against cpu: expected a calculator other") != NULL);
    CHECK_EQUAL(opened_for(&own, "cpu", SDLF_OK, NULL, left_out, sizeof left_out), 1);
    CHECK_TEXT(left_out, "");
    opened_for(&wrong, "cpu", SDLF_ERROR_ARGUMENT, "; cpu is left out: ", left_out, sizeof left_out);
}

int main(void)
{
    RUN(calculators_are_held_against_each_other);
    RUN(no_two_rungs_have_one_name);
    RUN(a_usual_rival_is_opened_where_it_is_wanted);
    return test_summary();
}
