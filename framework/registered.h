/* SPDX-License-Identifier: MIT */
/* Classes that programs add to a registry: a list that only grows, so that reading it needs no lock. */
#ifndef SDLF_FRAMEWORK_REGISTERED_H
#define SDLF_FRAMEWORK_REGISTERED_H

#include <stdatomic.h>
#include <stdbool.h>

#include <sdlf/calculator.h>
#include <sdlf/layer.h>

enum { REGISTERED_MAX = 64 };

/* Static storage, zero-initialised. Tables are kept for the lifetime of the process. */
typedef struct registered {
    _Atomic(const void *) table[REGISTERED_MAX];
} registered;

/* The table at that index; NULL past the end. */
const void *registered_at(registered *list, int index);

/* Appends a table. If the list has one with an equal name, according to `same`, that one is returned instead.
 * NULL: the list is full. */
const void *registered_add(registered *list, const void *table, bool (*same)(const void *a, const void *b));

/* The classes of this library, NULL-terminated: layers/registry.c, calculators/registry.c. */
extern const sdlf_layer_class *const sdlf_builtin_layers[];
extern const sdlf_calculator_class *const sdlf_builtin_calculators[];

/* True if a class's name is valid: lower-case letters, digits and underscores, a letter first, at most 40. */
bool registered_name_is_sound(const char *name);

#endif
