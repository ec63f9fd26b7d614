/* SPDX-License-Identifier: MIT */
/* The families of cases, each a generator in a cases_*.c: those that are checked, and those that are timed. */
#ifndef SDLF_TESTS_KERNEL_FAMILIES_H
#define SDLF_TESTS_KERNEL_FAMILIES_H

#include "kernels.h"

typedef struct kernel_family {
    const char *name;
    kernel_generator *cases, *bench;
} kernel_family;

enum { KERNEL_FAMILIES = 19 };
extern const kernel_family kernel_families[KERNEL_FAMILIES];

/* Does `name` stand in a list with commas? A list that is NULL has nothing. */
bool kernel_is_listed(const char *list, const char *name);

/* How many families a list names; -1 where it names something else. */
int kernel_families_in(const char *list);

#endif
