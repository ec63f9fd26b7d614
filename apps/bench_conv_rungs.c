/* Which rungs the convolution lab has. */
#include "apps/bench_conv_rungs.h"

#include <stdio.h>
#include <string.h>

#include "apps/suggest.h"

enum { RIVALS = 4 };

/* Open a calculator to compare with. It must compute where the operands are. */
static sdlf_status open_rival(machine *m, const sdlf_calculator *calculator, const char *name, lab_rung *rung)
{
    sdlf_calculator *rival = NULL;
    sdlf_status status = machine_open(m, name, &rival);
    if (status != SDLF_OK) return sdlf_fail_context(status, "--against %s", name);
    if (rival == calculator)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against %s: expected another calculator than --calculator", name);
    if (!rival->type->kernel[SDLF_CONV2D_FORWARD].run)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "--against %s: it has no conv2d_forward", name);
    if (!sdlf_calculator_shares_memory(rival, calculator))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against %s: it computes in the memory of %s, and %s in that of %s",
                         name, rival->space, calculator->type->name, calculator->space);
    *rung = lab_rival_of(rival);
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

/* Those that were asked for, or those that usually are there. */
static sdlf_status open_rivals(machine *m, const sdlf_calculator *calculator, const argument_list *against,
                               lab_rung *rungs, int *count, char *left_out, size_t size)
{
    static const struct {
        const char *calculator, *rival;
    } usual[] = {{"cuda", "cudnn"}};
    left_out[0] = '\0';
    if (against->count > RIVALS)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--against is given %d times: expected %d at most", against->count,
                         RIVALS);
    for (int i = 0; i < against->count; i++) {
        sdlf_status status = open_rival(m, calculator, against->item[i], &rungs[*count]);
        if (status != SDLF_OK) return status;
        ++*count;
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && against->count == 0; i++) {
        if (strcmp(calculator->type->name, usual[i].calculator) != 0 || !is_built(usual[i].rival)) continue;
        if (open_rival(m, calculator, usual[i].rival, &rungs[*count]) == SDLF_OK)
            ++*count;
        else
            snprintf(left_out, size, "%s is left out: %s", usual[i].rival, sdlf_error_message());
    }
    return SDLF_OK;
}

/* Is `name` a rung? The message offers what there is. */
static sdlf_status check_wanted(const char *name, const lab_rung *rungs, int count, const char *calculator)
{
    suggestion near = {.word = name};
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(rungs[i].name, name) == 0) return SDLF_OK;
        suggest_offer(&near, rungs[i].name);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", rungs[i].name);
    }
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--rung %s: %s has no such algorithm%s%s%s; it has %s", name, calculator,
                     near.best ? ", did you mean '" : "", near.best ? near.best : "", near.best ? "'?" : "", list);
}

sdlf_status lab_choose_rungs(lab *l, machine *m, sdlf_calculator *calculator, const argument_list *against,
                             const argument_list *wanted, char *left_out, size_t size)
{
    lab_rung all[LAB_RUNGS];
    int count = lab_rungs_of(calculator, all, LAB_RUNGS - RIVALS);
    if (count == 0)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED, "calculator '%s' has no conv2d_forward", calculator->type->name);
    sdlf_status status = open_rivals(m, calculator, against, all, &count, left_out, size);
    for (int i = 0; i < wanted->count && status == SDLF_OK; i++)
        status = check_wanted(wanted->item[i], all, count, calculator->type->name);
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        bool chosen = wanted->count == 0;
        for (int w = 0; w < wanted->count; w++) chosen = chosen || strcmp(all[i].name, wanted->item[w]) == 0;
        if (chosen) l->rung[l->rungs++] = all[i];
    }
    return status;
}
