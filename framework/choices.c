/* SPDX-License-Identifier: MIT */
/* Choices of algorithms in memory: a sorted list. */
#include "framework/choices.h"

#include <stdlib.h>
#include <string.h>

sdlf_choices *sdlf_choices_create(void)
{
    return calloc(1, sizeof(sdlf_choices));
}

static void release(choice *entry)
{
    free(entry->device);
    free(entry->operation);
    free(entry->algorithm);
    free(entry->times);
}

void sdlf_choices_free(sdlf_choices *choices)
{
    if (choices == NULL) return;
    for (int i = 0; i < choices->count; i++) release(&choices->entries[i]);
    free(choices->entries);
    free(choices);
}

bool sdlf_choices_changed(const sdlf_choices *choices)
{
    if (choices == NULL) return false;
    return choices->changed;
}

int sdlf_choices_count(const sdlf_choices *choices)
{
    if (choices == NULL) return 0;
    return choices->count;
}

/* The index of the entry, or where to insert it: the first that does not sort before it. */
static int place_of(const sdlf_choices *choices, const char *device, const char *operation, bool *found)
{
    int low = 0, high = choices->count;
    *found = false;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(choices->entries[middle].device, device);
        if (order == 0) order = strcmp(choices->entries[middle].operation, operation);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *choices_find(const sdlf_choices *choices, const char *device, const char *operation)
{
    bool found;
    int place = place_of(choices, device, operation, &found);
    return found ? choices->entries[place].algorithm : NULL;
}

/* A copy without characters that would end a line or a part of it. */
static char *copy_line(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; c != NULL && *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || strchr("#[]=", *c) != NULL) *c = ' ';
    }
    return copy;
}

static sdlf_status grow(sdlf_choices *choices)
{
    if (choices->count < choices->capacity) return SDLF_OK;
    int capacity = choices->capacity > 0 ? 2 * choices->capacity : 16;
    choice *entries = realloc(choices->entries, (size_t)capacity * sizeof *entries);
    if (entries == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "choices: out of memory");
    choices->entries = entries;
    choices->capacity = capacity;
    return SDLF_OK;
}

sdlf_status choices_add(sdlf_choices *choices, const char *device, const char *operation, const char *algorithm,
                        const char *times)
{
    sdlf_status status = grow(choices);
    if (status != SDLF_OK) return status;
    choice made = {copy_line(device), copy_line(operation), copy_line(algorithm), copy_line(times)};
    if (made.device == NULL || made.operation == NULL || made.algorithm == NULL || made.times == NULL) {
        release(&made);
        return sdlf_fail(SDLF_ERROR_MEMORY, "choices: out of memory");
    }
    bool found;
    int place = place_of(choices, made.device, made.operation, &found);
    choice *at = &choices->entries[place];
    if (found) {
        release(at);
    } else {
        memmove(at + 1, at, (size_t)(choices->count - place) * sizeof *at);
        choices->count++;
    }
    *at = made;
    choices->changed = true;
    return SDLF_OK;
}
