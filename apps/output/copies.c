/* SPDX-License-Identifier: MIT */
/* The copies between memories in one step of a plan. */
#include "apps/output/copies.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "apps/output/number.h"
#include "apps/output/table.h"

static const char *const phase_names[] = {"forward", "backward", "update", "copy"}; /* in the order of sdlf_phase */

copies_sum copies_of(const sdlf_plan *plan)
{
    copies_sum all = {.count = 0};
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COPY) continue;
        all.count++;
        all.bytes += step.cost.bytes;
        all.seconds += step.seconds;
    }
    return all;
}

/* Bytes a second. */
static const char *rate_text(int64_t bytes, double seconds, number_text *text)
{
    *text = number_fixed(1e-9 * (double)bytes / seconds, 1);
    return seconds > 0 ? text->text : "";
}

void copies_print(const terminal *out, const sdlf_plan *plan, bool timed)
{
    copies_sum all = copies_of(plan);
    if (all.count == 0) return;
    number_text rate;
    table *t = table_create("copies between memories|for|pass|>bytes|>ms|>GB/s");
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COPY) continue;
        const char *where = strncmp(step.operation, "copy ", 5) == 0 ? step.operation + 5 : step.operation;
        table_cell(t, "%s: %s", where, step.content);
        table_cell(t, "%s", step.layer);
        table_cell(t, "%s", phase_names[step.serves]);
        table_cell(t, "%s", number_count(step.cost.bytes).text);
        table_cell(t, "%s", timed ? number_fixed(1e3 * step.seconds, 3).text : "");
        table_cell(t, "%s", timed ? rate_text(step.cost.bytes, step.seconds, &rate) : "");
    }
    table_rule(t);
    table_cell(t, "%d copies a step", all.count);
    table_cell(t, "%s", "");
    table_cell(t, "%s", "");
    table_cell(t, "%s", number_count(all.bytes).text);
    table_cell(t, "%s", timed ? number_fixed(1e3 * all.seconds, 3).text : "");
    table_cell(t, "%s", timed ? rate_text(all.bytes, all.seconds, &rate) : "");
    fputc('\n', out->file);
    table_print(t, out, 2);
    table_free(t);
}

json_t *copies_json(const sdlf_plan *plan, bool timed)
{
    copies_sum all = copies_of(plan);
    json_t *list = json_array();
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        if (step.phase != SDLF_PHASE_COPY) continue;
        json_array_append_new(list, json_pack("{ss so so so sI so}", "phase", phase_names[step.serves], "layer",
                                              json_text(step.layer), "content", json_text(step.content), "operation",
                                              json_text(step.operation), "bytes", (json_int_t)step.cost.bytes,
                                              "seconds", json_number(timed ? step.seconds : NAN)));
    }
    return json_pack("{si sI so so}", "count", all.count, "bytes", (json_int_t)all.bytes, "seconds",
                     json_number(timed ? all.seconds : NAN), "list", list);
}
