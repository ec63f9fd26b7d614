/* SPDX-License-Identifier: MIT */
/* The rungs of the convolution lab. */
#include "apps/bench/conv/rungs.h"

#include <stdio.h>
#include <string.h>

#include <sdlf/suggest.h>

enum { RIVALS = 4 };

const lab_usual_rival lab_usual_rivals[] = {{"cuda", "cudnn"}, {NULL, NULL}};

/* Opens a calculator to compare with. It must use the memory of the operands. */
static sdlf_status open_rival(machine *m, const sdlf_calculator *calculator, const char *name, lab_rung *rung)
{
    sdlf_calculator *rival = NULL;
    sdlf_status status = machine_open(m, name, &rival);
    if (status != SDLF_OK) return sdlf_fail_context(status, "--against %s", name);
    if (rival == calculator)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against %s: expected a calculator other than --calculator", name);
    if (!rival->type->kernel[SDLF_CONV2D_FORWARD].run)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "--against %s: it has no conv2d_forward", name);
    if (!sdlf_calculator_shares_memory(rival, calculator))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against %s: it computes in the memory of %s, and %s in that of %s",
                         name, rival->space, calculator->type->name, calculator->space);
    *rung = lab_rival_of(rival, false);
    return SDLF_OK;
}

static bool has_rung(const lab_rung *rungs, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(rungs[i].name, name) == 0) return true;
    }
    return false;
}

/* Adds a rival to the ladder, with its long name if an algorithm has the short one ("cuda" of the cudnn calculator). */
static sdlf_status add_rival(machine *m, const sdlf_calculator *calculator, const char *name, lab_rung *rungs,
                             int *count)
{
    lab_rung *rung = &rungs[*count];
    sdlf_status status = open_rival(m, calculator, name, rung);
    if (status != SDLF_OK) return status;
    for (int i = 0; i < *count; i++) {
        if (rungs[i].rival && rungs[i].calculator == rung->calculator)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against %s is given twice", name);
    }
    if (has_rung(rungs, *count, rung->name)) *rung = lab_rival_of(rung->calculator, true);
    ++*count;
    return SDLF_OK;
}

static bool is_built(const char *name)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)); i++) {
        if (strcmp(name, type->name) == 0) return true;
    }
    return false;
}

/* True if one of the wanted rungs is not among these. An empty list means all. */
static bool wants_more(const argument_list *wanted, const lab_rung *rungs, int count)
{
    for (int i = 0; i < wanted->count; i++) {
        if (!has_rung(rungs, count, wanted->item[i])) return true;
    }
    return wanted->count == 0;
}

/* Opens the requested rivals, or the usual ones whose rung is wanted: opening one may load a large
 * library. */
static sdlf_status open_rivals(machine *m, const sdlf_calculator *calculator, const lab_rung_choice *choice,
                               lab_rung *rungs, int *count, char *left_out, size_t size)
{
    const argument_list *against = choice->against;
    left_out[0] = '\0';
    if (against->count > RIVALS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against is given %d times: expected %d at most", against->count,
                         RIVALS);
    for (int i = 0; i < against->count; i++) {
        sdlf_status status = add_rival(m, calculator, against->item[i], rungs, count);
        if (status != SDLF_OK) return status;
    }
    if (against->count > 0 || !wants_more(choice->wanted, rungs, *count)) return SDLF_OK;
    for (const lab_usual_rival *usual = choice->usual; usual->calculator; usual++) {
        if (strcmp(calculator->type->name, usual->calculator) != 0 || !is_built(usual->rival)) continue;
        if (add_rival(m, calculator, usual->rival, rungs, count) != SDLF_OK)
            snprintf(left_out, size, "%s is left out: %s", usual->rival, sdlf_error_message());
    }
    return SDLF_OK;
}

/* True if the rung has this name. A rival also matches its long name. */
static bool is_called(const lab_rung *rung, const char *name)
{
    lab_rung full = rung->rival ? lab_rival_of(rung->calculator, true) : *rung;
    return strcmp(rung->name, name) == 0 || strcmp(full.name, name) == 0;
}

/* Checks that `name` is a rung. The message lists the rungs, and says what is left out. */
static sdlf_status check_requested(const char *name, const lab_rung *rungs, int count, const char *calculator,
                                   const char *left_out)
{
    sdlf_suggestion near = {.word = name};
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        if (is_called(&rungs[i], name)) return SDLF_OK;
        sdlf_suggest(&near, rungs[i].name);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", rungs[i].name);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--rung %s: %s has no such algorithm%s; it has %s%s%s", name, calculator,
                     sdlf_suggestion_print(&near).text, list, left_out[0] ? "; " : "", left_out);
}

sdlf_status lab_choose_rungs(lab *l, machine *m, sdlf_calculator *calculator, const lab_rung_choice *choice,
                             char *left_out, size_t size)
{
    const argument_list *wanted = choice->wanted;
    lab_rung all[LAB_RUNGS];
    int count = lab_rungs_of(calculator, all, LAB_RUNGS - RIVALS);
    if (count == 0)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s' has no conv2d_forward", calculator->type->name);
    sdlf_status status = open_rivals(m, calculator, choice, all, &count, left_out, size);
    for (int i = 0; i < wanted->count && status == SDLF_OK; i++)
        status = check_requested(wanted->item[i], all, count, calculator->type->name, left_out);
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        bool chosen = wanted->count == 0;
        for (int w = 0; w < wanted->count; w++) chosen = chosen || is_called(&all[i], wanted->item[w]);
        if (chosen) l->rung[l->rungs++] = all[i];
    }
    return status;
}
