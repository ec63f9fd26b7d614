/* SPDX-License-Identifier: MIT */
/* The findings of sdlf doctor, and their output. */
#ifndef SDLF_APPS_DOCTOR_DOCTOR_H
#define SDLF_APPS_DOCTOR_DOCTOR_H

#include <sdlf/sdlf.h>

#include "apps/output/json.h"
#include "apps/output/terminal.h"

/* One calculator, and whether it can run the model. */
typedef struct doctor_calculator {
    const char *name;
    bool is_device; /* with memory of its own, of which this machine has one */
    bool here;      /* it could be opened */
    bool planned;   /* it can compute everything, in so much memory: */
    sdlf_memory_info memory;
    bool runs;        /* which there is */
    char reason[400]; /* why not */
    sdlf_cost cost;
} doctor_calculator;

enum { DOCTOR_CALCULATORS = 16 };

/* The memory that a run takes: the plan, its parameters, and a copy of its largest output. */
int64_t doctor_memory(const doctor_calculator *entry);

typedef struct doctor {
    const char *path;
    const sdlf_onnx_report *report;
    sdlf_dtype dtype;
    sdlf_machine machine;
    bool every_node;
    doctor_calculator calculator[DOCTOR_CALCULATORS];
    int calculator_count;
} doctor;

void doctor_print(const doctor *doctor, const terminal *out);
json_t *doctor_json(const doctor *doctor);

#endif
