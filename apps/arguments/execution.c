/* SPDX-License-Identifier: MIT */
/* Where a network runs. */
#include "apps/arguments/execution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/suggest.h>

#include "apps/output/file.h"
#include "apps/output/terminal.h"
#include "apps/system/memory.h"

const argument execution_arguments[] = {
    {.name = "Calculators", .type = ARGUMENT_HEADING},
    {"calculator", ARGUMENT_NAME, offsetof(execution, calculator), "NAME", .names = machine_calculator_name,
     .fallback = "cpu", .help = "backend to use"},
    {"forward", ARGUMENT_NAME, offsetof(execution, forward), "NAME", .names = machine_calculator_name,
     .help = "another one for the forward pass"},
    {"backward", ARGUMENT_NAME, offsetof(execution, backward), "NAME", .names = machine_calculator_name,
     .help = "another one for the backward pass"},
    {"place", ARGUMENT_LIST, offsetof(execution, place), "LAYER=NAME",
     .help = "another one for a layer: LAYER=NAME or LAYER=forward:NAME,backward:NAME; may be repeated"},
    {"threads", ARGUMENT_INT, offsetof(execution, choice.threads), "N", .minimum = 1, .maximum = 1024,
     .help = "threads of the cpu calculator (default: all)"},
    {"conv-algorithm", ARGUMENT_TEXT, offsetof(execution, conv_algorithm), "NAME",
     .help =
         "force a convolution algorithm instead of the calculators' own choice; CALC:NAME for that calculator only"},
    {"plan-file", ARGUMENT_TEXT, offsetof(execution, plan_file), "FILE",
     .help = "use the algorithms that FILE names; time those of other operations, and add the fastest to it"},
    {"no-fusion", ARGUMENT_FLAG, offsetof(execution, no_fusion), .help = "run each operation by itself"},
    {0},
};

static sdlf_status check_calculator(const char *name, const char *place)
{
    sdlf_suggestion s = {.word = name};
    const char *known;
    for (int i = 0; (known = machine_calculator_name(i)); i++) {
        if (strcmp(known, name) == 0) return SDLF_OK;
        sdlf_suggest(&s, known);
    }
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; (known = machine_calculator_name(i)) && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", known);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--place %s: there is no calculator '%s'%s; there are %s", place, name,
                     sdlf_suggestion_print(&s).text, list);
}

static sdlf_status check_layer(const sdlf_model *model, const char *name, const char *place)
{
    sdlf_suggestion s = {.word = name};
    if (strcmp(name, "loss") == 0) return SDLF_OK; /* added by training; a model with another loss reports it later */
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        const char *layer = sdlf_model_layer(model, i)->name;
        if (strcmp(layer, name) == 0) return SDLF_OK;
        sdlf_suggest(&s, layer);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--place %s: %s has no layer '%s'%s", place, sdlf_model_name(model), name,
                     sdlf_suggestion_print(&s).text);
}

/* "conv1=cpu", "conv1=forward:cuda,backward:cpu": `text` is modified. */
static sdlf_status read_place(sdlf_trainer_placement *placement, char *text, const char *place)
{
    char *equals = strchr(text, '='), *rest = NULL;
    if (!equals || equals == text || equals[1] == '\0') goto malformed;
    *equals = '\0';
    placement->layer = text;
    for (char *half = strtok_r(equals + 1, ",", &rest); half; half = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(half, ':');
        const char *name = colon ? colon + 1 : half;
        if (colon) *colon = '\0';
        if (!colon) {
            placement->forward = placement->backward = name;
        } else if (strcmp(half, "forward") == 0) {
            placement->forward = name;
        } else if (strcmp(half, "backward") == 0) {
            placement->backward = name;
        } else {
            goto malformed;
        }
        sdlf_status status = check_calculator(name, place);
        if (status != SDLF_OK) return status;
    }
    return SDLF_OK;
malformed:
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--place %s: expected LAYER=CALC or LAYER=forward:CALC,backward:CALC", place);
}

sdlf_status execution_complete(execution *e, const sdlf_model *model)
{
    if (!e->forward) e->forward = e->calculator;
    if (!e->backward) e->backward = e->calculator;
    for (int i = 0; i < e->place.count; i++) {
        e->text[i] = memory_copy_text(e->place.item[i]);
        sdlf_status status = read_place(&e->placement[i], e->text[i], e->place.item[i]);
        if (status == SDLF_OK) status = check_layer(model, e->placement[i].layer, e->place.item[i]);
        if (status != SDLF_OK) return status;
    }
    if (!e->plan_file) return SDLF_OK;
    e->choices = sdlf_choices_create();
    if (!e->choices) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for a plan file");
    if (access(e->plan_file, F_OK) != 0 || output_is_stream(e->plan_file))
        return output_file_check(e->plan_file); /* before its algorithms are timed */
    return sdlf_choices_read(e->choices, e->plan_file);
}

sdlf_status execution_keep_choices(const execution *e)
{
    if (!e->choices || !sdlf_choices_changed(e->choices)) return SDLF_OK;
    return sdlf_choices_write(e->choices, e->plan_file);
}

void execution_warn(const execution *e, const sdlf_plan *plan, const char *command)
{
    if (e->conv_algorithm == NULL) return;
    const char *colon = strchr(e->conv_algorithm, ':'), *name = colon ? colon + 1 : e->conv_algorithm;
    if (strcmp(name, "auto") == 0) return;
    for (int i = 0; i < sdlf_plan_step_count(plan); i++) {
        sdlf_step_info step = sdlf_plan_step_info(plan, i);
        bool convolution = strncmp(step.operation, "conv2d", strlen("conv2d")) == 0;
        if (convolution && step.algorithm != NULL && strcmp(step.algorithm, name) == 0) return;
    }
    terminal_warning(command,
                     "--conv-algorithm %s: no convolution here is computed by it; those that are fused with their "
                     "pooling have no choice (--no-fusion), and not every algorithm takes every shape",
                     e->conv_algorithm);
}

void execution_release(execution *e)
{
    sdlf_choices_free(e->choices);
    for (int i = 0; i < e->place.count; i++) free(e->text[i]);
}

void execution_to_trainer(const execution *e, sdlf_trainer_options *options)
{
    options->forward = e->forward;
    options->backward = e->backward;
    options->placement = e->placement;
    options->placement_count = e->place.count;
    options->threads = (int)e->choice.threads;
    options->device = (int)e->choice.device;
    options->math = (sdlf_math)e->choice.math;
    options->no_fusion = e->no_fusion;
    options->conv_algorithm = e->conv_algorithm;
    options->choices = e->choices;
}

sdlf_status execution_to_plan(execution *e, machine *m, sdlf_plan_options *options)
{
    m->choice = e->choice;
    sdlf_status status = machine_open(m, e->forward, &options->forward);
    if (status == SDLF_OK) status = machine_open(m, e->backward, &options->backward);
    for (int i = 0; i < e->place.count && status == SDLF_OK; i++) {
        const sdlf_trainer_placement *from = &e->placement[i];
        e->plan_placement[i] = (sdlf_placement){.layer = from->layer};
        if (from->forward) status = machine_open(m, from->forward, &e->plan_placement[i].forward);
        if (from->backward && status == SDLF_OK) {
            status = machine_open(m, from->backward, &e->plan_placement[i].backward);
        }
    }
    options->placement = e->plan_placement;
    options->placement_count = e->place.count;
    options->no_fusion = e->no_fusion;
    options->conv_algorithm = e->conv_algorithm;
    options->choices = e->choices;
    return status == SDLF_OK ? machine_check_choice(m) : status;
}

const char *execution_of_devices(const execution *e)
{
    const char *forward = e->forward ? e->forward : e->calculator,
               *backward = e->backward ? e->backward : e->calculator;
    return !machine_has_devices(forward) && machine_has_devices(backward) ? backward : forward;
}
