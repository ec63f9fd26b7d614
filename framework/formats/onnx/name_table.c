/* SPDX-License-Identifier: MIT */
/* Open addressing, at most half full. See name_table.h. */
#include "framework/formats/onnx/name_table.h"

#include <stdint.h>
#include <string.h>

struct onnx_name {
    const char *name; /* NULL: free */
    int number;
};

/* FNV-1a. */
static uint64_t hash(const char *name)
{
    uint64_t value = 0xCBF29CE484222325;
    for (; *name != '\0'; name++) value = (value ^ (unsigned char)*name) * 0x100000001B3;
    return value;
}

/* The entry of that name, or the free one where it would go. The table has a free entry. */
static struct onnx_name *place(struct onnx_name *entry, size_t capacity, const char *name)
{
    size_t at = (size_t)hash(name) & (capacity - 1);
    while (entry[at].name != NULL && strcmp(entry[at].name, name) != 0) at = (at + 1) & (capacity - 1);
    return &entry[at];
}

int onnx_name_table_find(const onnx_name_table *names, const char *name)
{
    if (names->capacity == 0) return -1;
    const struct onnx_name *found = place(names->entry, names->capacity, name);
    return found->name != NULL ? found->number : -1;
}

static bool grow(onnx_name_table *names)
{
    size_t capacity = names->capacity > 0 ? 2 * names->capacity : 64;
    struct onnx_name *entry = onnx_arena_array(names->arena, capacity, sizeof *entry);
    if (entry == NULL) return false;
    for (size_t i = 0; i < names->capacity; i++)
        if (names->entry[i].name != NULL) *place(entry, capacity, names->entry[i].name) = names->entry[i];
    names->entry = entry;
    names->capacity = capacity;
    return true;
}

bool onnx_name_table_put(onnx_name_table *names, const char *name, int number)
{
    if (2 * (names->count + 1) > names->capacity && !grow(names)) return false;
    struct onnx_name *found = place(names->entry, names->capacity, name);
    names->count += found->name == NULL;
    *found = (struct onnx_name){name, number};
    return true;
}
