/* SPDX-License-Identifier: MIT */
/* The chosen algorithms of a plan. */
#include "apps/output/algorithms.h"

#include <stdio.h>

#include "apps/output/number.h"
#include "apps/output/table.h"

void algorithms_print(const terminal *out, const sdlf_plan *plan)
{
    table *t = table_create("operation|layer|on|algorithm|>ms");
    int count = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (!step.algorithm) continue;
        table_cell(t, "%s", step.operation);
        table_cell(t, "%s", step.layer ? step.layer : "");
        table_cell(t, "%s", step.calculator);
        table_cell(t, "%s", step.algorithm);
        table_cell(t, "%s", step.seconds > 0 ? number_fixed(1e3 * step.seconds, 3).text : "");
        count++;
    }
    if (count > 0) {
        putchar('\n');
        table_print(t, out, 2);
    }
    table_free(t);
}

json_t *algorithms_json(const sdlf_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (!step.algorithm) continue;
        json_array_append_new(list, json_pack("{so so so so so}", "layer", json_text(step.layer), "operation",
                                              json_text(step.operation), "calculator", json_text(step.calculator),
                                              "algorithm", json_text(step.algorithm), "seconds",
                                              step.seconds > 0 ? json_number(step.seconds) : json_null()));
    }
    return list;
}
