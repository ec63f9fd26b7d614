/* SPDX-License-Identifier: MIT */
/* The times of two plans, layer by layer, side by side. */
#include "apps/timing/layers.h"

#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

/* All possible layers: the model's, and the loss that plans add. */
typedef struct names {
    const char **name;
    int *line; /* of the result; -1: in none of the plans */
    int count;
} names;

static names list_names(const sdlf_model *model)
{
    names n = {.count = sdlf_model_layer_count(model) + 1};
    n.name = memory_allocate((size_t)n.count * sizeof *n.name);
    n.line = memory_allocate((size_t)n.count * sizeof *n.line);
    for (int i = 0; i + 1 < n.count; i++) n.name[i] = sdlf_model_layer(model, i)->name;
    n.name[n.count - 1] = "loss";
    for (int i = 0; i + 1 < n.count; i++) {
        if (strcmp(n.name[i], "loss") == 0) n.name[n.count - 1] = ""; /* the model has its own */
    }
    return n;
}

static int find_name(const names *n, const char *name)
{
    for (int i = 0; i < n->count; i++) {
        if (strcmp(n->name[i], name) == 0) return i;
    }
    return -1;
}

static bool listed(const sdlf_plan *const *plan, const char *name)
{
    return sdlf_plan_layer_of(plan[0], name) >= 0 || sdlf_plan_layer_of(plan[1], name) >= 0;
}

static bool together(const sdlf_plan *const *plan, const char *a, const char *b)
{
    for (int side = 0; side < LAYER_TIMES_SIDES; side++) {
        int line = sdlf_plan_layer_of(plan[side], a);
        if (line >= 0 && line == sdlf_plan_layer_of(plan[side], b)) return true;
    }
    return false;
}

/* Gives layers that any plan fuses the same number: that of the first of them. */
static void group_names(names *n, const sdlf_plan *const *plan)
{
    for (int i = 0; i < n->count; i++) {
        n->line[i] = listed(plan, n->name[i]) ? i : -1;
        for (int j = 0; j < i && n->line[i] >= 0; j++) {
            if (n->line[j] < 0 || n->line[j] == n->line[i] || !together(plan, n->name[i], n->name[j])) continue;
            int from = n->line[i] > n->line[j] ? n->line[i] : n->line[j];
            int to = n->line[i] > n->line[j] ? n->line[j] : n->line[i];
            for (int k = 0; k <= i; k++) {
                if (n->line[k] == from) n->line[k] = to;
            }
        }
    }
}

/* Creates a line for each group, in the order of their first layers. Line 0 is for the steps before the first layer. */
static layer_times make_lines(names *n, const sdlf_plan *const *plan)
{
    layer_times times = {.count = 1};
    times.line = memory_allocate((size_t)(n->count + 1) * sizeof *times.line);
    times.line[0].name = memory_copy_text("(drawing the batch)");
    int *number = memory_allocate((size_t)n->count * sizeof *number);
    for (int i = 0; i < n->count; i++) {
        if (n->line[i] < 0) continue;
        bool first = n->line[i] == i;
        if (first) number[i] = times.count++;
        layer_line *line = &times.line[number[n->line[i]]];
        char *name = first ? memory_copy_text(n->name[i]) : memory_print("%s+%s", line->name, n->name[i]);
        free(line->name);
        line->name = name;
        int info = sdlf_plan_layer_of(plan[0], n->name[i]);
        line->shape = sdlf_plan_layer_info(plan[0], info).shape;
    }
    for (int i = 0; i < n->count; i++) n->line[i] = n->line[i] < 0 ? -1 : number[n->line[i]];
    free(number);
    return times;
}

layer_times layer_times_make(const sdlf_model *model, const sdlf_plan *const plan[LAYER_TIMES_SIDES])
{
    names n = list_names(model);
    group_names(&n, plan);
    layer_times times = make_lines(&n, plan);
    for (int side = 0; side < LAYER_TIMES_SIDES; side++) {
        for (int i = 0; i < sdlf_plan_step_count(plan[side]); i++) {
            sdlf_step_info step = sdlf_plan_step_info(plan[side], i);
            int name = find_name(&n, step.layer);
            int line = name < 0 || n.line[name] < 0 ? 0 : n.line[name];
            times.line[line].seconds[side][step.phase] += step.seconds;
        }
    }
    free(n.name);
    free(n.line);
    return times;
}

void layer_times_release(layer_times *times)
{
    for (int i = 0; i < times->count; i++) free(times->line[i].name);
    free(times->line);
    *times = (layer_times){.count = 0};
}

double layer_times_sum(const layer_line *line, int side)
{
    double sum = 0;
    for (int phase = 0; phase < LAYER_TIMES_PHASES; phase++) sum += line->seconds[side][phase];
    return sum;
}

layer_line layer_times_total(const layer_times *times)
{
    layer_line total = {.name = NULL};
    for (int i = 0; i < times->count; i++) {
        for (int side = 0; side < LAYER_TIMES_SIDES; side++) {
            for (int phase = 0; phase < LAYER_TIMES_PHASES; phase++)
                total.seconds[side][phase] += times->line[i].seconds[side][phase];
        }
    }
    return total;
}
