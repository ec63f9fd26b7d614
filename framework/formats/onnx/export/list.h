/* SPDX-License-Identifier: MIT */
/* A list of pointers that grows, in an arena. */
#ifndef SDLF_FORMATS_ONNX_EXPORT_LIST_H
#define SDLF_FORMATS_ONNX_EXPORT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "framework/formats/onnx/arena.h"

typedef struct export_list {
    void **item;
    size_t count, capacity;
} export_list;

/* False when memory is out. */
bool export_list_add(export_list *list, onnx_arena *arena, void *item);

#endif
