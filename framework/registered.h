/* SPDX-License-Identifier: MIT */
/* Classes that programs add to a registry: a list that only grows, so that readers need no lock. */
#ifndef SDLF_FRAMEWORK_REGISTERED_H
#define SDLF_FRAMEWORK_REGISTERED_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sdlf/calculator.h>
#include <sdlf/layer.h>

enum { REGISTERED_MAX = 64 };

/* Static storage, all zero. Tables are kept for as long as the process lives. */
typedef struct registered {
    _Atomic(const void *) table[REGISTERED_MAX];
} registered;

/* The table at that position; NULL past the end. */
const void *registered_at(registered *list, int index);

/* Append a table, unless one that `same` says to be equal in name stands in the list: that one is the answer then.
 * NULL: the list is full. */
const void *registered_add(registered *list, const void *table, bool (*same)(const void *a, const void *b));

/* The classes of this library, and NULL: layers/registry.c, calculators/registry.c. */
extern const sdlf_layer_class *const sdlf_builtin_layers[];
extern const sdlf_calculator_class *const sdlf_builtin_calculators[];

/* What every class's name must be: lower-case letters, digits and underscores, a letter first, at most 40. */
bool registered_name_is_sound(const char *name);

#endif
