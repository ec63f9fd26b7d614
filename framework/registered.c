/* SPDX-License-Identifier: MIT */
#include "framework/registered.h"

#include <string.h>

const void *registered_at(registered *list, int index)
{
    return index >= 0 && index < REGISTERED_MAX ? atomic_load(&list->table[index]) : NULL;
}

const void *registered_add(registered *list, const void *table, bool (*same)(const void *a, const void *b))
{
    for (int i = 0; i < REGISTERED_MAX; i++) {
        const void *there = NULL;
        if (atomic_compare_exchange_strong(&list->table[i], &there, table)) return table;
        if (same(there, table)) return there;
    }
    return NULL;
}

bool registered_name_is_sound(const char *name)
{
    if (name == NULL || name[0] < 'a' || name[0] > 'z') return false;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return name[length] == '\0' && length <= 40;
}
