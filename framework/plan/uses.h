/* SPDX-License-Identifier: MIT */
/* Use lists: for every buffer, the steps that name it, so that no rule scans all steps to find a buffer's readers.
 * Built once per pass in time linear in the steps; a rule that replaces a step's operation records it
 * (plan_replace_operation).
 *
 * A list may contain steps that no longer use the buffer: its reader must check the step. */
#ifndef SDLF_FRAMEWORK_PLAN_USES_H
#define SDLF_FRAMEWORK_PLAN_USES_H

#include <stdint.h>

#include <sdlf/status.h>

struct plan_step;

typedef struct plan_use {
    int step;
    int next; /* the next in its list; -1: none */
} plan_use;

/* The uses of one buffer; -1: none. */
typedef struct plan_use_list {
    int first; /* in the order of steps */
    int late;  /* uses added since, in any order; sorted into the list on the next query */
    int found; /* last result of plan_next_reader, where the next query resumes; uses stay in their lists */
} plan_use_list;

typedef struct plan_uses {
    plan_use_list *list; /* of each buffer */
    int buffer_count;
    plan_use *use;
    int count, capacity;
    int64_t *looks; /* borrowed; counts the uses that queries examine; may be NULL */
} plan_uses;

/* Collects the uses by live steps. On failure there is nothing to release. */
sdlf_status plan_uses_make(plan_uses *uses, const struct plan_step *steps, int step_count, int buffer_count);
void plan_uses_release(plan_uses *uses);

/* Adds the uses of a step's present operation to the lists. Takes constant time regardless of the lists' lengths, as
 * many steps read the learning rate and no rule looks up which. */
sdlf_status plan_uses_add(plan_uses *uses, const struct plan_step *steps, int step);

/* The first use of a buffer; -1: none. (A buffer created since the lists were built has none.) */
int plan_uses_first(const plan_uses *uses, int buffer);

#endif
