/* SPDX-License-Identifier: MIT */
/* Small ONNX files that expand a lot: models with any number of nodes, and nodes that are large once unpacked. */
#ifndef SDLF_TESTS_ONNX_HOSTILE_H
#define SDLF_TESTS_ONNX_HOSTILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"
#include "tests/onnx/bytes.h"

/* A growing graph. Zeroed: empty; hostile_write releases it. */
typedef struct hostile_graph {
    char *data;
    size_t size, capacity;
} hostile_graph;

static inline void hostile_append(hostile_graph *graph, const void *data, size_t size)
{
    while (graph->size + size > graph->capacity) {
        graph->capacity = graph->capacity > 0 ? 2 * graph->capacity : 1 << 16;
        graph->data = realloc(graph->data, graph->capacity);
        if (graph->data == NULL) abort();
    }
    memcpy(graph->data + graph->size, data, size);
    graph->size += size;
}

/* Add TYPE(inputs, separated by blanks) -> output, followed by a number of empty attributes. */
static inline void hostile_node(hostile_graph *graph, const char *type, const char *inputs, const char *output,
                                size_t attributes)
{
    bytes node = {.size = 0}, head = {.size = 0};
    char copy[200], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", inputs);
    for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
        bytes_text(&node, 1, name);
    bytes_text(&node, 2, output);
    bytes_text(&node, 4, type);
    bytes_varint(&head, 1 << 3 | 2);
    bytes_varint(&head, node.size + 2 * attributes);
    hostile_append(graph, head.data, head.size);
    hostile_append(graph, node.data, node.size);
    for (size_t i = 0; i < attributes; i++) hostile_append(graph, "\x2a\x00", 2);
}

/* Add a chain of `count` nodes from `first`, with outputs PREFIX0, PREFIX1, ...; "%" in the inputs is the previous
 * output. Returns the last name. */
static inline const char *hostile_chain(hostile_graph *graph, const char *type, const char *inputs, const char *prefix,
                                        const char *first, int count)
{
    static char name[40];
    char before[40], list[200];
    snprintf(before, sizeof before, "%s", first);
    for (int i = 0; i < count; i++) {
        size_t used = 0;
        for (const char *at = inputs; *at != '\0'; at++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%.*s", *at == '%' ? 40 : 1,
                                     *at == '%' ? before : at);
        snprintf(name, sizeof name, "%s%d", prefix, i);
        hostile_node(graph, type, list, name, 0);
        snprintf(before, sizeof before, "%s", name);
    }
    return name;
}

/* Concatenate `first` with itself along the axis, and so on: 2^count times as large. Returns the last name. */
static inline const char *hostile_doubling(hostile_graph *graph, const char *first, int axis, int count)
{
    static char name[40];
    char before[40];
    snprintf(before, sizeof before, "%s", first);
    for (int i = 0; i < count; i++) {
        bytes node = {.size = 0}, attribute = {.size = 0}, whole = {.size = 0};
        snprintf(name, sizeof name, "c%d", i);
        for (int k = 0; k < 2; k++) bytes_text(&node, 1, before);
        bytes_text(&node, 2, name);
        bytes_text(&node, 4, "Concat");
        bytes_text(&attribute, 1, "axis");
        bytes_number(&attribute, 3, (uint64_t)axis);
        bytes_message(&node, 5, &attribute);
        bytes_message(&whole, 1, &node);
        hostile_append(graph, whole.data, whole.size);
        memcpy(before, name, sizeof before);
    }
    return name;
}

/* Add `count` constants of n zeros each to the sum of x, one after another. Returns the last name. */
static inline const char *hostile_zeros(hostile_graph *graph, int count)
{
    static char name[40];
    char before[40] = "s", constant[40], inputs[100];
    hostile_node(graph, "ReduceSum", "x", "s", 0);
    for (int i = 0; i < count; i++) {
        snprintf(constant, sizeof constant, "z%d", i);
        snprintf(name, sizeof name, "y%d", i);
        snprintf(inputs, sizeof inputs, "%s %s", before, constant);
        hostile_node(graph, "ConstantOfShape", "n", constant, 0);
        hostile_node(graph, "Add", inputs, name, 0);
        memcpy(before, name, sizeof before);
    }
    return name;
}

/* Write the file, with inputs x (1,4) of float32 and `n`, a list of one int64, and the output. */
static inline const char *hostile_write(hostile_graph *graph, const char *file, const char *output, int64_t n)
{
    bytes tail = {.size = 0}, number = {.size = 0}, set = {.size = 0}, head = {.size = 0};
    bytes_number(&number, 1, 1);
    bytes_number(&number, 2, 7);
    bytes_text(&number, 8, "n");
    bytes_field(&number, 9, &n, sizeof n);
    bytes_message(&tail, 5, &number);
    bytes_value_info(&tail, 11, "x", (const int64_t[]){1, 4}, 2);
    bytes info = {.size = 0};
    bytes_text(&info, 1, output);
    bytes_message(&tail, 12, &info);
    hostile_append(graph, tail.data, tail.size);
    bytes_number(&set, 2, 17);
    bytes_number(&head, 1, 8);
    bytes_message(&head, 8, &set);
    bytes_varint(&head, 7 << 3 | 2);
    bytes_varint(&head, graph->size);
    hostile_graph model = {.data = NULL};
    hostile_append(&model, head.data, head.size);
    hostile_append(&model, graph->data, graph->size);
    const char *path = test_path(file);
    test_write_file(path, model.data, model.size);
    free(model.data);
    free(graph->data);
    *graph = (hostile_graph){.data = NULL};
    return path;
}

#endif
