/* SPDX-License-Identifier: MIT */
/* planetoid:DIR: a citation graph as six text files, in which # begins a comment line (scripts/convert-citations.py
 * writes them):
 *
 *     edges.txt     an undirected edge list, node numbers from 0
 *     features.txt  one line per node: COLUMN:VALUE of each nonzero feature, columns from 0
 *     labels.txt    one line per node: its class, from 0
 *     train.txt, val.txt, test.txt   one line per node of this part
 *
 * The graphs and their parts are those of Z. Yang, W. Cohen, R. Salakhutdinov: Revisiting semi-supervised learning with
 * graph embeddings, 2016. An empty line in features.txt is a node without features. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graphs/edge_list.h"
#include "graphs/graphs_internal.h"

enum { MOST_BYTES = 1 << 30, MOST_CLASSES = 1 << 20, MOST_COLUMNS = 1 << 24 };

/* A text that is read line by line. */
typedef struct text {
    char *path;  /* owned */
    char *bytes; /* owned, NUL-terminated */
    char *at;
    int64_t line;
    read_budget budget;
} text;

static void release_text(text *t)
{
    free(t->path);
    free(t->bytes);
}

static sdlf_status read_all(text *t, sdlf_byte_stream *stream)
{
    size_t capacity = 1 << 16, count = 0;
    for (;;) {
        bool may = read_budget_take(&t->budget, (int64_t)(capacity - count));
        char *larger = may ? realloc(t->bytes, capacity + 1) : NULL;
        if (larger == NULL) return sdlf_fail_context(read_budget_fail(&t->budget), "%s", t->path);
        t->bytes = larger;
        size_t found;
        sdlf_status status = sdlf_byte_stream_read(stream, t->bytes + count, capacity - count, &found);
        if (status != SDLF_OK) return status;
        count += found;
        if (count < capacity) break;
        if (capacity >= MOST_BYTES)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: more than the %d bytes that are read", t->path, MOST_BYTES);
        capacity *= 2;
    }
    if (memchr(t->bytes, '\0', count) != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected text, found a byte 0", t->path);
    t->bytes[count] = '\0';
    t->at = t->bytes;
    return SDLF_OK;
}

static char *join(const char *folder, const char *file)
{
    size_t length = strlen(folder) + strlen(file) + 2;
    char *path = malloc(length);
    if (path != NULL) snprintf(path, length, "%s/%s", folder, file);
    return path;
}

static sdlf_status open_text(text *t, const char *folder, const char *file)
{
    *t = (text){.path = join(folder, file)};
    if (t->path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "planetoid: no memory");
    sdlf_byte_stream stream;
    sdlf_status status = sdlf_byte_stream_open(&stream, t->path);
    if (status == SDLF_OK) status = read_budget_make(&t->budget, stream.size, 0);
    if (status == SDLF_OK) status = read_all(t, &stream);
    sdlf_byte_stream_release(&stream); /* harmless if opening failed */
    return status;
}

/* The next line that is not a comment, NUL-terminated in place; NULL after the last. */
static char *next_line(text *t)
{
    while (*t->at != '\0') {
        char *line = t->at, *end = strchr(line, '\n');
        t->at = end != NULL ? end + 1 : line + strlen(line);
        if (end != NULL) *end = '\0';
        t->line++;
        size_t length = strlen(line);
        if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
        if (*line != '#') return line;
    }
    return NULL;
}

static sdlf_status malformed(const text *t, const char *expected, const char *found)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%" PRId64 ": expected %s, found '%.24s'", t->path, t->line, expected,
                     found);
}

/* Read an integer in [0, limit) at *at and advance *at past it. If there is none, the error message calls it
 * `what`. */
static sdlf_status take_number(const text *t, char **at, int64_t limit, const char *what, int64_t *number)
{
    char *p = *at, expected[80];
    bool small = true;
    for (*number = 0; *p >= '0' && *p <= '9' && small; p++) {
        *number = 10 * *number + (*p - '0');
        small = *number < limit;
    }
    snprintf(expected, sizeof expected, "%s from 0 to %" PRId64, what, limit - 1);
    if (p == *at || !small) return malformed(t, expected, *at);
    *at = p;
    return SDLF_OK;
}

/* The same for a number that must be the whole line. */
static sdlf_status take_line(const text *t, char *line, int64_t limit, const char *what, int64_t *number)
{
    char *end = line;
    sdlf_status status = take_number(t, &end, limit, what, number);
    return status == SDLF_OK && *end != '\0' ? malformed(t, "the end of the line after a number", end) : status;
}

/* ---- the files ---- */

static sdlf_status read_labels(sdlf_graph *graph, const char *folder)
{
    text t;
    int64_t capacity = 0, label, largest = -1;
    int32_t *labels = NULL;
    sdlf_status status = open_text(&t, folder, "labels.txt");
    for (char *line; status == SDLF_OK && (line = next_line(&t)) != NULL; graph->node_count++) {
        status = take_line(&t, line, MOST_CLASSES, "a class", &label);
        if (status != SDLF_OK) break;
        if (graph->node_count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 1024;
            int32_t *larger = realloc(labels, (size_t)capacity * sizeof *labels);
            if (larger == NULL) {
                status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: no memory", t.path);
                break;
            }
            labels = larger;
        }
        labels[graph->node_count] = (int32_t)label;
        largest = label > largest ? label : largest;
    }
    if (status == SDLF_OK && graph->node_count == 0)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected one class a line, found none", t.path);
    if (status == SDLF_OK) status = sdlf_tensor_create(&graph->labels, NULL, SDLF_INT32, sdlf_shape(graph->node_count));
    if (status == SDLF_OK) memcpy(graph->labels.data, labels, (size_t)graph->node_count * sizeof *labels);
    graph->class_count = (int)largest + 1;
    free(labels);
    release_text(&t);
    return status;
}

/* Read a decimal number, with or without an exponent, at *at and advance *at past it. Requires the "C"
 * locale. */
static sdlf_status take_value(const text *t, char **at, float *value)
{
    size_t length = strspn(*at, "+-.0123456789eE"); /* not all that strtof accepts: leading blanks, 0x1p4, inf, nan */
    char *end = *at;
    *value = length > 0 ? strtof(*at, &end) : 0;
    bool whole = length > 0 && end == *at + length && (*end == '\0' || *end == ' ' || *end == '\t');
    if (!whole || !isfinite(*value)) return malformed(t, "a finite value", *at);
    *at = end;
    return SDLF_OK;
}

/* Read a node's features into `row`, in which NaN marks a column that has not been read yet. `row` NULL: only find the
 * largest column. */
static sdlf_status read_features_line(const text *t, char *line, float *row, int64_t *columns)
{
    char *at = line;
    for (;;) {
        at += strspn(at, " \t");
        if (*at == '\0') return SDLF_OK;
        int64_t column;
        float value;
        char *start = at;
        sdlf_status status = take_number(t, &at, MOST_COLUMNS, "COLUMN:VALUE with a column", &column);
        if (status != SDLF_OK) return status;
        if (*at != ':') return malformed(t, "COLUMN:VALUE", start);
        at++;
        status = take_value(t, &at, &value);
        if (status != SDLF_OK) return status;
        if (row != NULL && !isnan(row[column])) return malformed(t, "a column once in a line", start);
        if (row != NULL) row[column] = value;
        if (column >= *columns) *columns = column + 1;
    }
}

/* Allocate one row per node; most elements are zeros that the file does not store. */
static sdlf_status create_features(sdlf_graph *graph, const text *t, int64_t columns)
{
    sdlf_shape shape = sdlf_shape(graph->node_count, columns); /* below 2^31 and 2^25 */
    sdlf_status status = read_budget_check(&t->budget, 4 * sdlf_shape_count(shape), "its features");
    if (status == SDLF_OK) return read_tensor_create(&graph->features, SDLF_FLOAT32, shape, t->path);
    return sdlf_fail_context(status, "%s", t->path);
}

static sdlf_status read_features(sdlf_graph *graph, const char *folder)
{
    int64_t columns = 0;
    sdlf_status status = SDLF_OK;
    for (int round = 0; round < 2 && status == SDLF_OK; round++) { /* first the number of columns, then the values */
        text t;
        int64_t node = 0;
        status = open_text(&t, folder, "features.txt");
        for (char *line; status == SDLF_OK && (line = next_line(&t)) != NULL; node++) {
            if (node >= graph->node_count) {
                status = malformed(&t, "as many nodes as labels.txt has", line);
                break;
            }
            float *row = round == 0 ? NULL : (float *)graph->features.data + node * columns;
            for (int64_t i = 0; row != NULL && i < columns; i++) row[i] = NAN;
            status = read_features_line(&t, line, row, &columns);
            for (int64_t i = 0; row != NULL && i < columns; i++) row[i] = isnan(row[i]) ? 0 : row[i];
        }
        if (status == SDLF_OK && node < graph->node_count)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected %" PRId64 " nodes as in labels.txt, found %" PRId64,
                               t.path, graph->node_count, node);
        if (status == SDLF_OK && columns == 0)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected features, found none", t.path);
        if (status == SDLF_OK && round == 0) status = create_features(graph, &t, columns);
        release_text(&t);
    }
    return status;
}

/* These files use a decimal point, whatever the host program's locale uses. */
static sdlf_status read_features_anywhere(sdlf_graph *graph, const char *folder)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0) return sdlf_fail(SDLF_ERROR_MEMORY, "planetoid: no memory");
    locale_t before = uselocale(plain); /* this thread's only */
    sdlf_status status = read_features(graph, folder);
    uselocale(before);
    freelocale(plain);
    return status;
}

static sdlf_status read_part(sdlf_graph *graph, const char *folder, const char *file, sdlf_node_part part)
{
    text t;
    uint8_t *parts = graph->parts.data;
    sdlf_status status = open_text(&t, folder, file);
    for (char *line; status == SDLF_OK && (line = next_line(&t)) != NULL;) {
        int64_t node;
        status = take_line(&t, line, graph->node_count, "a node's number", &node);
        if (status != SDLF_OK) break;
        if (parts[node] != SDLF_NODE_OTHER)
            status = malformed(&t, "a node that no part has yet", line);
        else
            parts[node] = (uint8_t)part;
    }
    release_text(&t);
    return status;
}

static sdlf_status read_edges(sdlf_graph *graph, const char *folder)
{
    edges list = {.count = 0};
    int64_t declared;
    sdlf_byte_stream stream;
    char *path = join(folder, "edges.txt");
    if (path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "planetoid: no memory");
    sdlf_status status = sdlf_byte_stream_open(&stream, path);
    if (status == SDLF_OK) {
        status = edge_list_read(&list, &declared, graph->node_count - 1, &stream);
        sdlf_byte_stream_release(&stream);
    }
    graph->undirected = true;
    if (status == SDLF_OK) status = edges_to_adjacency(&list, graph->node_count, true, &graph->adjacency);
    edges_release(&list);
    free(path);
    return status;
}

static sdlf_status load(sdlf_graph *graph, const char *argument)
{
    if (argument == NULL || *argument == '\0')
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "planetoid: expected planetoid:DIR, a folder with edges.txt, labels.txt ...");
    sdlf_status status = sdlf_graph_set_name(graph, "planetoid (%s)", argument);
    if (status == SDLF_OK) status = read_labels(graph, argument);
    if (status == SDLF_OK) status = read_features_anywhere(graph, argument);
    if (status == SDLF_OK) status = sdlf_tensor_create(&graph->parts, NULL, SDLF_UINT8, sdlf_shape(graph->node_count));
    if (status != SDLF_OK) return status;
    memset(graph->parts.data, SDLF_NODE_OTHER, (size_t)graph->node_count);
    status = read_part(graph, argument, "train.txt", SDLF_NODE_TRAIN);
    if (status == SDLF_OK) status = read_part(graph, argument, "val.txt", SDLF_NODE_VALIDATE);
    if (status == SDLF_OK) status = read_part(graph, argument, "test.txt", SDLF_NODE_TEST);
    return status == SDLF_OK ? read_edges(graph, argument) : status;
}

const sdlf_graph_class sdlf_planetoid_graph_class = {
    .name = "planetoid",
    .summary = "a citation graph with features, classes and parts: planetoid:DIR",
    .load = load,
};
