/* SPDX-License-Identifier: MIT */
/* A run of `sdlf bench conv`: its settings, its calculators and the results so far. */
#ifndef SDLF_APPS_BENCH_CONV_SESSION_H
#define SDLF_APPS_BENCH_CONV_SESSION_H

#include "apps/arguments/arguments.h"
#include "apps/bench/conv/report.h"
#include "apps/bench/conv/shape.h"
#include "apps/system/machine.h"

/* The command-line options. */
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
    char left_out[512]; /* why the usual rival is missing */
    terminal out;
    bool text; /* print the table */
    lab lab;
} lab_session;

/* Check that the files can be written, and decide whether the table is printed as well. */
sdlf_status lab_session_files(lab_session *session);

/* Open calculators, convolutions and rungs, all checked before anything is measured. Errors: SDLF_ERROR_ARGUMENT names
 * the option. */
sdlf_status lab_session_open(lab_session *session, const arguments *given);

/* Measure the machine's limits; then, one after the other, the convolutions. Standard error shows the current work
 * meanwhile. */
sdlf_status lab_session_limits(lab_session *session);
sdlf_status lab_session_case(lab_session *session, int index);

/* SDLF_ERROR_DEVICE: a rung's error is larger than rounding can explain. */
sdlf_status lab_session_judge(const lab_session *session);

void lab_session_close(lab_session *session);

#endif
