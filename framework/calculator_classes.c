/* SPDX-License-Identifier: MIT */
/* The registry of calculator classes: built-in ones, then those that programs register. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/version.h>

#include "framework/fusion.h"
#include "framework/registered.h"
#include "framework/require.h"

static registered others;

static int builtin_count(void)
{
    int count = 0;
    while (sdlf_builtin_calculators[count] != NULL) count++;
    return count;
}

const sdlf_calculator_class *sdlf_calculator_class_at(int index)
{
    int count = builtin_count();
    if (index < 0) return NULL;
    return index < count ? sdlf_builtin_calculators[index] : registered_at(&others, index - count);
}

static const sdlf_calculator_class *find(const char *name)
{
    const sdlf_calculator_class *type;
    for (int i = 0; (type = sdlf_calculator_class_at(i)) != NULL; i++)
        if (strcmp(type->name, name) == 0) return type;
    return NULL;
}

/* Describes what is wrong with the table; NULL: nothing. */
static const char *class_fault(const sdlf_calculator_class *type)
{
    bool alone = type->inherits == NULL;
    if (type->summary == NULL) return "summary is NULL";
    if (type->size < sizeof(sdlf_calculator)) return "size is less than that of an sdlf_calculator";
    if (alone && type->open == NULL) return "open is NULL";
    if (alone && type->close == NULL) return "close is NULL";
    if (alone && type->describe == NULL) return "describe is NULL";
    if (alone && type->allocate == NULL) return "allocate is NULL";
    if ((type->allocate == NULL) != (type->deallocate == NULL)) return "allocate and deallocate belong together";
    if (alone && type->upload == NULL) return "upload is NULL";
    if (alone && type->download == NULL) return "download is NULL";
    if (alone && type->synchronize == NULL) return "synchronize is NULL";
    for (size_t i = 0; i < sizeof type->reserved / sizeof type->reserved[0]; i++)
        if (type->reserved[i] != NULL) return "reserved members must be zero";
    const char *fault = NULL;
    for (const sdlf_fused_slot *f = type->fusions; f != NULL && f->fusion != NULL && fault == NULL; f++)
        fault = fusion_fault(f->fusion);
    return fault;
}

static bool same_name(const void *a, const void *b)
{
    return strcmp(((const sdlf_calculator_class *)a)->name, ((const sdlf_calculator_class *)b)->name) == 0;
}

/* A copy, extended to the current size, of a table with fewer kinds of operations; the new kinds are empty. */
static const sdlf_calculator_class *completed(const sdlf_calculator_class *type, size_t size)
{
    if (size == sizeof *type) return type;
    sdlf_calculator_class *full = calloc(1, sizeof *full);
    if (full != NULL) memcpy(full, type, size);
    return full;
}

sdlf_status sdlf_register_calculator_sized(const sdlf_calculator_class *type, size_t size)
{
    SDLF_REQUIRE(type);
    if (!registered_name_is_sound(type->name))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_register_calculator: the name '%s', expected lower-case letters, digits and "
                         "underscores, a letter first, at most 40",
                         type->name != NULL ? type->name : "(NULL)");
    if (size > sizeof *type)
        return sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                         "sdlf_register_calculator: '%s' has a table of %zu bytes, and this library's has %zu: it was "
                         "compiled for a newer one than " SDLF_VERSION,
                         type->name, size, sizeof *type);
    if (size < offsetof(sdlf_calculator_class, kernel))
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "sdlf_register_calculator: '%s' has a table of %zu bytes, smaller than the smallest valid table",
            type->name, size);
    const char *fault = class_fault(type);
    if (fault != NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_calculator: '%s': %s", type->name, fault);
    const sdlf_calculator_class *base = type->inherits != NULL ? find(type->inherits) : NULL;
    if (type->inherits != NULL && base == NULL)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "sdlf_register_calculator: '%s' inherits from '%s', which is not registered", type->name,
                         type->inherits);
    if (base != NULL && (base->queues != NULL || base->record_begin != NULL))
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "sdlf_register_calculator: '%s' inherits from '%s', which queues its work: nothing would order "
            "what the two do",
            type->name, type->inherits);
    for (int i = 0; sdlf_builtin_calculators[i] != NULL; i++)
        if (same_name(sdlf_builtin_calculators[i], type))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_calculator: there is a calculator '%s' already",
                             type->name);
    const sdlf_calculator_class *full = completed(type, size);
    const void *there = full != NULL ? registered_add(&others, full, same_name) : NULL;
    if (there == full && full != NULL) return SDLF_OK;
    bool again = full != type && there != NULL && memcmp(there, full, sizeof *full) == 0;
    if (full != type) free((void *)full);
    if (again) return SDLF_OK;
    if (there == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "sdlf_register_calculator: there is no room for '%s': %d can be registered",
                         type->name, REGISTERED_MAX);
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "sdlf_register_calculator: there is a calculator '%s' already", type->name);
}
