/* SPDX-License-Identifier: MIT */
/* A table from names to numbers, for graphs of any size. */
#ifndef SDLF_FORMATS_ONNX_NAME_TABLE_H
#define SDLF_FORMATS_ONNX_NAME_TABLE_H

#include <stdbool.h>

#include "framework/formats/onnx/arena.h"

typedef struct onnx_name_table {
    onnx_arena *arena; /* what the table takes its memory from; names are borrowed */
    struct onnx_name *entry;
    size_t capacity, count;
} onnx_name_table;

/* The number under that name; -1 if there is none. */
int onnx_name_table_find(const onnx_name_table *names, const char *name);

/* Put `number` under that name, in the place of an older one. False when memory is out. */
bool onnx_name_table_put(onnx_name_table *names, const char *name, int number);

#endif
