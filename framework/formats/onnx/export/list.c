/* SPDX-License-Identifier: MIT */
/* A growing list of pointers in an arena. See list.h. */
#include "framework/formats/onnx/export/list.h"

#include <string.h>

bool export_list_add(export_list *list, onnx_arena *arena, void *item)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        void **larger = onnx_arena_array(arena, capacity, sizeof *larger);
        if (larger == NULL) return false;
        if (list->count > 0) memcpy(larger, list->item, list->count * sizeof *larger);
        list->item = larger;
        list->capacity = capacity;
    }
    list->item[list->count++] = item;
    return true;
}
