/* SPDX-License-Identifier: MIT */
/* Uses: for every buffer, the steps that name it, so that no rule looks through all steps to find a buffer's readers.
 * Made once for a pass in time that grows with the steps; a rule that gives a step another operation says so
 * (plan_replace_operation).
 *
 * A list may hold steps that no longer use the buffer: whoever walks it asks the step itself. */
#ifndef SDLF_FRAMEWORK_PLAN_USES_H
#define SDLF_FRAMEWORK_PLAN_USES_H

#include <stdint.h>

#include <sdlf/status.h>

struct plan_step;

typedef struct plan_use {
    int step;
    int next; /* of its list; -1: none */
} plan_use;

/* The uses of one buffer; -1: none. */
typedef struct plan_use_list {
    int first; /* in the order of steps */
    int late;  /* those that were added since, in any order: put in their place when somebody asks */
    int found; /* what plan_next_reader found last, from where the next question goes on: uses stay in their lists */
} plan_use_list;

typedef struct plan_uses {
    plan_use_list *list; /* of each buffer */
    int buffer_count;
    plan_use *use;
    int count, capacity;
    int64_t *looks; /* borrowed; counts the uses that questions look at; NULL: nobody does */
} plan_uses;

/* The uses by steps that are not dead. On failure there is nothing to release. */
sdlf_status plan_uses_make(plan_uses *uses, const struct plan_step *steps, int step_count, int buffer_count);
void plan_uses_release(plan_uses *uses);

/* Note what a step uses now, beside what was known of it. However long the lists are, this takes no longer: many steps
 * read the learning rate, and nobody asks which. */
sdlf_status plan_uses_add(plan_uses *uses, const struct plan_step *steps, int step);

/* The first use of a buffer; -1: none. (A buffer made since then has none.) */
int plan_uses_first(const plan_uses *uses, int buffer);

#endif
