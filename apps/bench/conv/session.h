/* SPDX-License-Identifier: MIT */
/* A run of `sdlf bench conv`: what was asked for, who computes, what was found until now. */
#ifndef SDLF_APPS_BENCH_CONV_SESSION_H
#define SDLF_APPS_BENCH_CONV_SESSION_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"
#include "apps/bench/conv/shape.h"
#include "apps/system/machine.h"

/* What the command line says. */
typedef struct lab_settings {
    int workload, dtype;
    int64_t batch, side, repeats, copy_size;
    lab_shape_text shape;
    argument_list rung, against;
    double seconds;
    bool no_check;
    const char *calculator, *from, *json, *svg;
    machine_choice choice;
} lab_settings;

typedef struct lab_session {
    lab_settings set;
    machine machine;
    sdlf_calculator *calculator, *reference;
    char left_out[512]; /* why there is no rival where there usually is one */
    terminal out;
    bool text; /* is the table wanted? */
    lab lab;
} lab_session;

/* Can the files be written? Is the table wanted beside them? */
sdlf_status lab_session_files(lab_session *session);

/* Calculators, convolutions and rungs, all checked before anything is measured. Errors: SDLF_ERROR_ARGUMENT names the
 * option. */
sdlf_status lab_session_open(lab_session *session, const arguments *given);

/* What the machine can do; then, one after the other, the convolutions. On standard error stands meanwhile what is at
 * work. */
sdlf_status lab_session_limits(lab_session *session);
sdlf_status lab_session_case(lab_session *session, int index);

/* SDLF_ERROR_DEVICE: a rung is off by more than rounding can explain. */
sdlf_status lab_session_judge(const lab_session *session);

void lab_session_close(lab_session *session);

#endif
