/* SPDX-License-Identifier: MIT */
/* Memory: the live bytes at each step of a batch, for inference and for a training step. */
#include <stdlib.h>

#include "apps/output/number.h"
#include "apps/output/xml.h"
#include "apps/report/chart.h"
#include "apps/report/page.h"

enum { PEAKS = 5 };

static void add_steps(chart *c, const sdlf_plan *plan, const char *name, int colour, sdlf_phase phase)
{
    chart_line *line = NULL;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        bool backward = step.serves != SDLF_PHASE_FORWARD;
        if (backward != (phase != SDLF_PHASE_FORWARD)) continue;
        if (!line) line = chart_add(c, name, colour, backward);
        chart_point(line, i, (double)step.live / 1e6);
    }
}

/* Prints the steps with the most live memory, the first of equals. */
static void print_peaks(FILE *file, const sdlf_plan *plan, const char *caption)
{
    int order[PEAKS], count = 0;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        int at = count;
        int64_t live = sdlf_plan_step_info(plan, i).live;
        while (at > 0 && sdlf_plan_step_info(plan, order[at - 1]).live < live) at--;
        if (at == PEAKS) continue;
        if (count < PEAKS) count++;
        for (int k = count - 1; k > at; k--) order[k] = order[k - 1];
        order[at] = i;
    }
    fprintf(file,
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table><caption>%s</caption><thead>"
            "<tr><th class=\"n\">step</th><th>layer</th><th>operation</th><th class=\"n\">live</th></tr></thead>"
            "<tbody>\n",
            caption, caption);
    for (int i = 0; i < count; i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, order[i]);
        fputs("<tr>", file);
        page_number(file, number_count(order[i]).text);
        page_cell(file, step.layer);
        page_cell(file, step.operation);
        page_number(file, number_bytes(step.live).text);
        fputs("</tr>\n", file);
    }
    fputs("</tbody></table></div>\n", file);
}

void page_print_memory(FILE *file, const page *p)
{
    fprintf(file,
            "<h2 id=\"memory\">Memory</h2>\n<p>Bytes of activations, gradients and workspaces that are live while each "
            "step of a batch of %s runs; parameters and optimizer states (%s) come on top. Plans reuse memory: what is "
            "allocated is %s for inference",
            number_count(p->batch).text,
            number_bytes(sdlf_plan_memory(p->training ? p->training : p->outline).parameters +
                         (p->training ? sdlf_plan_memory(p->training).states : 0))
                .text,
            number_bytes(sdlf_plan_memory(p->outline).arena).text);
    if (p->training) fprintf(file, " and %s for training", number_bytes(sdlf_plan_memory(p->training).arena).text);
    fputs(".</p>\n<div class=\"charts\">\n", file);
    chart inference = {.title = "Inference", .across = "step", .up = "MB live"};
    chart training = {.title = "Training step", .across = "step", .up = "MB live"};
    add_steps(&inference, p->outline, "forward", 0, SDLF_PHASE_FORWARD);
    chart_print(file, &inference);
    if (p->training) {
        add_steps(&training, p->training, "forward", 0, SDLF_PHASE_FORWARD);
        add_steps(&training, p->training, "backward and updates", 1, SDLF_PHASE_BACKWARD);
        chart_print(file, &training);
    }
    fputs("</div>\n", file);
    chart_release(&inference);
    chart_release(&training);
    print_peaks(file, p->outline, "Inference: the steps with most");
    if (p->training) print_peaks(file, p->training, "Training: the steps with most");
}
