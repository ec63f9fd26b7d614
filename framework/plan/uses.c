/* SPDX-License-Identifier: MIT */
/* Use lists of buffers, and the queries of the rules. See uses.h. */
#include "framework/plan/uses.h"

#include <stdlib.h>

#include "framework/operand.h"
#include "framework/plan/passes.h"

/* The buffer of an operand; 0: absent. */
static int operand_buffer(const sdlf_operation *operation, int index)
{
    const sdlf_tensor *tensor = sdlf_operand_at(operation, index);
    return sdlf_tensor_present(tensor) ? tensor->buffer : 0;
}

static sdlf_status no_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "plan: out of memory for the uses of its buffers");
}

/* Ensures capacity for the uses of one more step. */
static sdlf_status reserve(plan_uses *uses)
{
    if (uses->count + SDLF_MAX_OPERANDS <= uses->capacity) return SDLF_OK;
    int capacity = 2 * (uses->capacity + SDLF_MAX_OPERANDS);
    plan_use *use = realloc(uses->use, (size_t)capacity * sizeof *use);
    if (use == NULL) return no_memory();
    uses->use = use;
    uses->capacity = capacity;
    return SDLF_OK;
}

/* Ensures capacity for buffers created since. */
static sdlf_status widen(plan_uses *uses, int buffer)
{
    if (buffer < uses->buffer_count) return SDLF_OK;
    int count = 2 * (buffer + 1);
    plan_use_list *list = realloc(uses->list, (size_t)count * sizeof *list);
    if (list == NULL) return no_memory();
    for (int i = uses->buffer_count; i < count; i++) list[i] = (plan_use_list){.first = -1, .late = -1, .found = -1};
    uses->list = list;
    uses->buffer_count = count;
    return SDLF_OK;
}

/* Prepends a step to a list, unless it is already first. */
static void prepend(plan_uses *uses, int *list, int step)
{
    if (*list >= 0 && uses->use[*list].step == step) return;
    uses->use[uses->count] = (plan_use){.step = step, .next = *list};
    *list = uses->count++;
}

static sdlf_status add(plan_uses *uses, const plan_step *steps, int step, bool late)
{
    sdlf_status status = reserve(uses);
    for (int i = 0; i < SDLF_MAX_OPERANDS && status == SDLF_OK; i++) {
        int buffer = operand_buffer(&steps[step].operation, i);
        if (buffer == 0) continue;
        status = widen(uses, buffer);
        if (status == SDLF_OK) prepend(uses, late ? &uses->list[buffer].late : &uses->list[buffer].first, step);
    }
    return status;
}

sdlf_status plan_uses_add(plan_uses *uses, const plan_step *steps, int step)
{
    return add(uses, steps, step, true);
}

sdlf_status plan_uses_make(plan_uses *uses, const plan_step *steps, int step_count, int buffer_count)
{
    *uses = (plan_uses){.count = 0};
    sdlf_status status = widen(uses, buffer_count);
    for (int i = step_count - 1; i >= 0 && status == SDLF_OK; i--) { /* each is prepended to its lists */
        if (!steps[i].dead) status = add(uses, steps, i, false);
    }
    if (status != SDLF_OK) plan_uses_release(uses);
    return status;
}

void plan_uses_release(plan_uses *uses)
{
    free(uses->list);
    free(uses->use);
    *uses = (plan_uses){.count = 0};
}

int plan_uses_first(const plan_uses *uses, int buffer)
{
    if (buffer >= uses->buffer_count) return -1;
    plan_use_list *list = &uses->list[buffer];
    while (list->late >= 0) {
        int use = list->late, *link = &list->first;
        list->late = uses->use[use].next;
        while (*link >= 0 && uses->use[*link].step < uses->use[use].step) {
            link = &uses->use[*link].next;
            if (uses->looks != NULL) ++*uses->looks;
        }
        if (*link >= 0 && uses->use[*link].step == uses->use[use].step) continue; /* already listed */
        uses->use[use].next = *link;
        *link = use;
    }
    return list->first;
}

/* ---- queries of rules ---- */

sdlf_status plan_find_uses(sdlf_plan *plan)
{
    plan_uses_release(&plan->uses);
    sdlf_status status = plan_uses_make(&plan->uses, plan->steps, plan->step_count, plan->buffer_count);
    plan->uses.looks = &plan->looks;
    return status;
}

sdlf_status plan_replace_operation(sdlf_plan *plan, int step, const sdlf_operation *operation)
{
    plan->steps[step].operation = *operation;
    plan->steps[step].dead = false;
    return plan_uses_add(&plan->uses, plan->steps, step);
}

/* The use of the first live step at or after use `at` that reads (or writes) the buffer; -1: none. */
static int next_use(const sdlf_plan *plan, int buffer, int at, bool (*question)(const plan_step *, int))
{
    for (; at >= 0; at = plan->uses.use[at].next) {
        const plan_step *step = &plan->steps[plan->uses.use[at].step];
        ++*plan->uses.looks;
        if (!step->dead && question(step, buffer)) return at;
    }
    return -1;
}

static int count_uses(const sdlf_plan *plan, int buffer, bool (*question)(const plan_step *, int))
{
    int count = 0, at = next_use(plan, buffer, plan_uses_first(&plan->uses, buffer), question);
    for (; at >= 0; at = next_use(plan, buffer, plan->uses.use[at].next, question)) count++;
    return count;
}

int plan_count_readers(const sdlf_plan *plan, int buffer)
{
    return count_uses(plan, buffer, plan_step_reads);
}

int plan_count_writers(const sdlf_plan *plan, int buffer)
{
    return count_uses(plan, buffer, plan_step_writes);
}

bool plan_writes_between(const sdlf_plan *plan, const sdlf_operation *operation, int first, int last)
{
    for (int between = first + 1; between < last; between++) {
        for (int in = 0; in < SDLF_MAX_INPUTS && !plan->steps[between].dead; in++) {
            const sdlf_tensor *read = &operation->in[in];
            if (sdlf_tensor_present(read) && plan_step_writes(&plan->steps[between], read->buffer)) return true;
        }
    }
    return false;
}

int plan_first_writer(const sdlf_plan *plan, int buffer)
{
    int at = next_use(plan, buffer, plan_uses_first(&plan->uses, buffer), plan_step_writes);
    return at >= 0 ? plan->uses.use[at].step : -1;
}

int plan_next_reader(const sdlf_plan *plan, int buffer, int after)
{
    int at = plan_uses_first(&plan->uses, buffer);
    if (at < 0) return -1;
    int *found = &plan->uses.list[buffer].found;
    if (*found >= 0 && plan->uses.use[*found].step <= after) at = *found;
    for (; at >= 0 && plan->uses.use[at].step <= after; at = plan->uses.use[at].next) ++*plan->uses.looks;
    at = next_use(plan, buffer, at, plan_step_reads);
    if (at >= 0) *found = at;
    return at >= 0 ? plan->uses.use[at].step : -1;
}

/* True if the operation reads that many elements wherever it reads the buffer. */
static bool reads_all(const sdlf_operation *reader, int buffer, int64_t count)
{
    for (int i = 0; i < SDLF_MAX_INPUTS; i++) {
        const sdlf_tensor *in = &reader->in[i];
        if (sdlf_tensor_present(in) && in->buffer == buffer && sdlf_tensor_count(in) != count) return false;
    }
    return true;
}

int plan_sole_reader(const sdlf_plan *plan, int i)
{
    const plan_step *step = &plan->steps[i];
    const int buffer = step->operation.out[0].buffer;
    if (plan->buffers[buffer].kind != BUFFER_ARENA || !plan_covers_buffer(plan, &step->operation.out[0])) return -1;
    if (plan_count_readers(plan, buffer) != 1 || plan_count_writers(plan, buffer) != 1) return -1;
    const int reader = plan_next_reader(plan, buffer, i);
    if (reader < 0 || plan->steps[reader].calculator != step->calculator) return -1;
    if (!reads_all(&plan->steps[reader].operation, buffer, sdlf_tensor_count(&step->operation.out[0]))) return -1;
    return (i < plan->forward_steps) == (reader < plan->forward_steps) ? reader : -1;
}
