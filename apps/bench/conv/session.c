/* SPDX-License-Identifier: MIT */
/* A run of `sdlf bench conv`. */
#include "apps/bench/conv/session.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/sdlf.h>

#include "apps/bench/conv/rungs.h"
#include "apps/output/file.h"
#include "apps/output/status_line.h"
#include "apps/output/stream.h"
#include "apps/system/interrupt.h"

/* Rejects options of one form with the other. */
static sdlf_status choose_workload(lab_session *s, const arguments *given)
{
    static const char *const of_shape[] = {"kernel", "stride", "padding", "dilation", "groups"};
    static const char *const of_workload[] = {"workload", "batch", "side"};
    const lab_settings *set = &s->set;
    if (!set->shape.shape) {
        for (size_t i = 0; i < sizeof of_shape / sizeof of_shape[0]; i++) {
            if (arguments_given(given, of_shape[i]))
                return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s describes one convolution: expected --shape NxCxHxW too",
                                 of_shape[i]);
        }
        return lab_workload_make(&s->lab.workload, set->workload, set->batch, set->side);
    }
    for (size_t i = 0; i < sizeof of_workload / sizeof of_workload[0]; i++) {
        if (arguments_given(given, of_workload[i]))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s cannot be combined with --shape", of_workload[i]);
    }
    lab_shape shape;
    sdlf_status status = lab_shape_read(&shape, &set->shape);
    if (status == SDLF_OK) lab_workload_of_shape(&s->lab.workload, &shape);
    return status;
}

/* Checks that every convolution is valid and fits in memory, before hours are spent on the first. */
static sdlf_status check_cases(lab_session *s)
{
    sdlf_operation operation;
    for (int i = 0; i < s->lab.workload.count; i++) {
        sdlf_status status = lab_shape_operation(&s->lab.workload.item[i].shape, s->lab.dtype, &operation);
        if (status == SDLF_OK) {
            s->lab.cost[i] = sdlf_operation_cost(&operation);
            status = machine_check_memory(&s->machine, lab_bench_bytes(s->calculator, &operation),
                                          s->set.shape.shape ? "a smaller --shape" : "a smaller --batch or --side");
        }
        if (status != SDLF_OK) return sdlf_fail_context(status, "%s", s->lab.workload.item[i].name);
    }
    return machine_check_memory(&s->machine, 2 * s->set.copy_size, "a smaller --copy-size");
}

/* The default calculator: in a math mode other than fp32, the first one that has modes. */
static const char *usual_calculator(const lab_settings *set)
{
    const sdlf_calculator_class *type;
    for (int i = 0; set->choice.math != SDLF_MATH_FP32 && (type = sdlf_calculator_class_at(i)) != NULL; i++) {
        if (type->has_math) return type->name;
    }
    return set->calculator;
}

sdlf_status lab_session_files(lab_session *s)
{
    const char *json = s->set.json, *svg = s->set.svg;
    s->text = !(json && output_is_standard(json)) && !(svg && output_is_standard(svg));
    if (json && svg && strcmp(json, svg) == 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--json and --svg name the same file, %s", svg);
    sdlf_status status = json ? output_stream_check(json) : SDLF_OK;
    return status == SDLF_OK && svg ? output_stream_check(svg) : status;
}

sdlf_status lab_session_open(lab_session *s, const arguments *given)
{
    s->machine.choice = s->set.choice;
    if (!arguments_given(given, "calculator")) s->set.calculator = usual_calculator(&s->set);
    s->lab.dtype = s->set.dtype == 1 ? SDLF_FLOAT64 : SDLF_FLOAT32;
    s->lab.math = sdlf_math_name((sdlf_math)s->set.choice.math);
    s->lab.calculator = s->set.calculator;
    s->lab.unchecked = s->set.no_check;
    sdlf_status status = choose_workload(s, given);
    if (status == SDLF_OK) status = lab_session_files(s);
    if (status == SDLF_OK) status = machine_open(&s->machine, s->set.calculator, &s->calculator);
    if (status == SDLF_OK) status = machine_check_choice(&s->machine);
    if (status == SDLF_OK)
        status = lab_choose_rungs(
            &s->lab, &s->machine, s->calculator,
            &(lab_rung_choice){.against = &s->set.against, .wanted = &s->set.rung, .usual = lab_usual_rivals},
            s->left_out, sizeof s->left_out);
    if (status == SDLF_OK) status = check_cases(s);
    if (status == SDLF_OK) status = sdlf_calculator_open(&s->reference, "reference", NULL);
    if (status == SDLF_OK) s->calculator->type->describe(s->calculator, s->lab.runs_on, sizeof s->lab.runs_on);
    return status;
}

static void show_progress(const lab_session *s, int index, const char *what)
{
    status_line_show("%d of %d, %s: %s", index + 1, s->lab.workload.count, s->lab.workload.item[index].name, what);
}

sdlf_status lab_session_case(lab_session *s, int index)
{
    lab_bench *made = NULL;
    sdlf_operation operation;
    const lab_effort effort = {.repeats = (int)s->set.repeats, .seconds = s->set.seconds};
    sdlf_status status = lab_shape_operation(&s->lab.workload.item[index].shape, s->lab.dtype, &operation);
    show_progress(s, index, s->lab.unchecked ? "its numbers" : "what reference makes of it");
    if (status == SDLF_OK) status = lab_bench_create(&made, s->calculator, s->reference, &operation, !s->lab.unchecked);
    for (int i = 0; i < s->lab.rungs && status == SDLF_OK && interrupt_signal() == 0; i++) {
        show_progress(s, index, s->lab.rung[i].name);
        status = lab_bench_run(made, &s->lab.rung[i], &effort, &s->lab.result[index][i]);
    }
    status_line_clear();
    lab_bench_free(made);
    return sdlf_fail_context(status, "%s", s->lab.workload.item[index].name);
}

/* The error limit, relative to the range of the outputs; above it, a rung is wrong. */
static double error_limit(const lab_session *s)
{
    if (s->lab.dtype == SDLF_FLOAT64) return 1e-9;
    if (strcmp(s->lab.math, sdlf_math_name(SDLF_MATH_BF16)) == 0) return 5e-2;
    return strcmp(s->lab.math, sdlf_math_name(SDLF_MATH_FP32)) == 0 ? 1e-3 : 1e-2;
}

sdlf_status lab_session_judge(const lab_session *s)
{
    for (int i = 0; i < s->lab.rungs; i++) {
        lab_total total = lab_total_of(&s->lab, i, 0, s->lab.cases);
        if (s->lab.unchecked || total.ran == 0 || total.error <= error_limit(s)) continue; /* NaN is not */
        return sdlf_fail(SDLF_ERROR_DEVICE,
                         "%s of %s is wrong: it is off by %.1e of the range of the outputs, where %.0e is allowed",
                         s->lab.rung[i].name, s->lab.calculator, total.error, error_limit(s));
    }
    return SDLF_OK;
}

sdlf_status lab_session_limits(lab_session *s)
{
    status_line_show("the machine's limits");
    sdlf_status status = ceilings_measure(&s->lab.ceilings, s->calculator, s->lab.dtype, s->set.copy_size);
    status_line_clear();
    return status;
}

void lab_session_close(lab_session *s)
{
    sdlf_calculator_close(s->reference);
    machine_close(&s->machine);
    json_decref(s->lab.source);
}
