/* SPDX-License-Identifier: MIT */
/* A growing list of pointers in an arena. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_LIST_H
#define SDLF_FORMATS_ONNX_EXPORT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "framework/formats/onnx/arena.h"

typedef struct export_list {
    void **item;
    size_t count, capacity;
} export_list;

/* False when out of memory. */
bool export_list_add(export_list *list, onnx_arena *arena, void *item);

#endif
