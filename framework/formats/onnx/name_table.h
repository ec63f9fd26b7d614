/* SPDX-License-Identifier: MIT */
/* A hash table from names to integers, for graphs of any size. */
#ifndef SDLF_FORMATS_ONNX_NAME_TABLE_H
#define SDLF_FORMATS_ONNX_NAME_TABLE_H

#include <stdbool.h>

#include "framework/formats/onnx/arena.h"

typedef struct onnx_name_table {
    onnx_arena *arena; /* provides the table's memory; names are borrowed */
    struct onnx_name *entry;
    size_t capacity, count;
} onnx_name_table;

/* The integer stored under that name; -1 if there is none. */
int onnx_name_table_find(const onnx_name_table *names, const char *name);

/* Stores `number` under that name, replacing an older one. False when out of memory. */
bool onnx_name_table_put(onnx_name_table *names, const char *name, int number);

#endif
