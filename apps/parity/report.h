/* SPDX-License-Identifier: MIT */
/* The results of sdlf parity, and their output. */
#ifndef SDLF_APPS_PARITY_REPORT_H
#define SDLF_APPS_PARITY_REPORT_H

#include "apps/output/json.h"
#include "apps/output/terminal.h"
#include "apps/parity/run.h"

typedef struct parity_report {
    const parity_options *options;
    const parity_result *result;
    const char *data;
    sdlf_math math[2];
} parity_report;

void parity_print(const terminal *out, const parity_report *report);
json_t *parity_json(const parity_report *report);

#endif
