/* SPDX-License-Identifier: MIT */
/* The data sets that are known by name. */
#include "datasets/datasets_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const sdlf_dataset_class *const classes[] = {
#define SDLF_DATASET(class) &class,
#include "datasets/list.h"
#undef SDLF_DATASET
};

bool sdlf_dataset_is_for_test(const char *name, size_t length)
{
    enum { PART = 5 };
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash % PART == 0;
}

sdlf_status sdlf_dataset_name(sdlf_dataset *dataset, const char *kind, const char *place)
{
    size_t size = strlen(kind) + strlen(place) + sizeof " ()";
    dataset->name = malloc(size);
    if (dataset->name == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: no memory for a name of %zu bytes", kind, size);
    snprintf(dataset->name, size, "%s (%s)", kind, place);
    return SDLF_OK;
}

const sdlf_dataset_class *sdlf_dataset_class_at(int index)
{
    return index >= 0 && index < (int)(sizeof classes / sizeof classes[0]) ? classes[index] : NULL;
}
