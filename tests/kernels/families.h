/* SPDX-License-Identifier: MIT */
/* The families of cases, each with a generator in a cases_*.c: those that are checked, and those that are timed. */
#ifndef SDLF_TESTS_KERNEL_FAMILIES_H
#define SDLF_TESTS_KERNEL_FAMILIES_H

#include "kernels.h"

typedef struct kernel_family {
    const char *name;
    kernel_generator *cases, *bench;
} kernel_family;

enum { KERNEL_FAMILIES = 19 };
extern const kernel_family kernel_families[KERNEL_FAMILIES];

/* True if `name` is in a comma-separated list. A NULL list is empty. */
bool kernel_is_listed(const char *list, const char *name);

/* The number of families that a list names; -1 if it names anything else. */
int kernel_families_in(const char *list);

#endif
