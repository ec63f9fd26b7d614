/* SPDX-License-Identifier: MIT */
/* The reader is a state machine that passes over the text once. Its state survives from one block to the next, so that
 * lines may have any length. 3.2 million edges of 14 bytes take about as long as zlib takes to unpack them. */
#include "graphs/edge_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 18, COMMENT_BYTES = 64 };

typedef enum reader_state {
    LINE_START, /* blanks may follow */
    COMMENT,
    FIRST,   /* within the first number */
    BETWEEN, /* the blanks after it */
    SECOND,
    AFTER, /* blanks up to the end of the line */
} reader_state;

typedef struct edge_reader {
    const char *name;
    edges *list;
    reader_state state;
    int64_t line, from, number, declared, largest;
    char comment[COMMENT_BYTES]; /* its first bytes */
    int comment_length;
} edge_reader;

static sdlf_status malformed(const edge_reader *reader, unsigned char found, const char *expected)
{
    char text[24];
    if (found == '\n')
        snprintf(text, sizeof text, "the end of the line");
    else
        snprintf(text, sizeof text, found > ' ' && found < 127 ? "'%c'" : "byte %d", found);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%" PRId64 ": expected %s, found %s", reader->name, reader->line, expected,
                     text);
}

/* A comment with "Nodes: N" declares the number of nodes, including those without edges. */
static void take_comment(edge_reader *reader)
{
    reader->comment[reader->comment_length < COMMENT_BYTES ? reader->comment_length : COMMENT_BYTES - 1] = '\0';
    reader->comment_length = 0;
    const char *at = strstr(reader->comment, "Nodes:");
    if (at == NULL) return;
    char *end;
    long long count = strtoll(at + 6, &end, 10);
    if (end != at + 6 && count > 0) reader->declared = count;
}

/* Append a digit to the number that is being read. */
static sdlf_status take_digit(edge_reader *reader, unsigned char byte)
{
    int digit = byte - '0';
    if (reader->number > (INT64_MAX - digit) / 10)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%" PRId64 ": a node's number is larger than %" PRId64, reader->name,
                         reader->line, INT64_MAX);
    reader->number = 10 * reader->number + digit;
    return SDLF_OK;
}

static bool is_blank(unsigned char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static bool is_digit(unsigned char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Read all available digits of a number in one call: the fast path. */
static sdlf_status take_number(edge_reader *reader, const unsigned char **at, const unsigned char *end)
{
    int64_t number = reader->number;
    const unsigned char *p = *at;
    while (p < end && is_digit(*p) && number < INT64_MAX / 100) number = 10 * number + (*p++ - '0');
    reader->number = number;
    sdlf_status status = SDLF_OK;
    while (p < end && is_digit(*p) && status == SDLF_OK) status = take_digit(reader, *p++);
    *at = p;
    return status;
}

static sdlf_status end_line(edge_reader *reader)
{
    reader->state = LINE_START;
    reader->line++;
    return SDLF_OK;
}

static sdlf_status end_edge(edge_reader *reader)
{
    int64_t most = reader->from > reader->number ? reader->from : reader->number;
    if (most > reader->largest)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%" PRId64 ": expected nodes from 0 to %" PRId64 ", found %" PRId64,
                         reader->name, reader->line, reader->largest, most);
    sdlf_status status = edges_add(reader->list, reader->from, reader->number);
    return status == SDLF_OK ? status : sdlf_fail_context(status, "%s:%" PRId64, reader->name, reader->line);
}

/* Process one byte outside the fast path of take_number. */
static sdlf_status take_byte(edge_reader *reader, unsigned char byte)
{
    switch (reader->state) {
    case LINE_START:
        if (is_blank(byte)) return SDLF_OK;
        if (byte == '\n') return end_line(reader);
        if (byte == '#' || byte == '%') {
            reader->state = COMMENT;
            return SDLF_OK;
        }
        return malformed(reader, byte, "a node's number, or # before a comment");
    case FIRST:
        if (!is_blank(byte)) return malformed(reader, byte, "a blank or a tab after the first node's number");
        reader->from = reader->number;
        reader->state = BETWEEN;
        return SDLF_OK;
    case BETWEEN:
        if (is_blank(byte)) return SDLF_OK;
        return malformed(reader, byte, "the second node's number");
    case SECOND:
        if (!is_blank(byte) && byte != '\n') return malformed(reader, byte, "the end of the line after two numbers");
        reader->state = AFTER;
        {
            sdlf_status status = end_edge(reader);
            return status == SDLF_OK && byte == '\n' ? end_line(reader) : status;
        }
    case AFTER:
        if (is_blank(byte)) return SDLF_OK;
        if (byte == '\n') return end_line(reader);
        return malformed(reader, byte, "the end of the line after two numbers");
    default: return SDLF_OK;
    }
}

static sdlf_status take_block(edge_reader *reader, const unsigned char *at, const unsigned char *end)
{
    sdlf_status status = SDLF_OK;
    while (at < end && status == SDLF_OK) {
        if (reader->state == COMMENT) {
            const unsigned char *stop = memchr(at, '\n', (size_t)(end - at));
            const unsigned char *last = stop != NULL ? stop : end;
            while (at < last && reader->comment_length < COMMENT_BYTES - 1)
                reader->comment[reader->comment_length++] = (char)*at++;
            at = last;
            if (stop == NULL) continue;
            at++;
            take_comment(reader);
            status = end_line(reader);
        } else if (is_digit(*at) && reader->state != AFTER) {
            if (reader->state == LINE_START || reader->state == BETWEEN) {
                reader->state = reader->state == LINE_START ? FIRST : SECOND;
                reader->number = 0;
            }
            status = take_number(reader, &at, end);
        } else {
            status = take_byte(reader, *at++);
        }
    }
    return status;
}

/* Finish the input; the last line may lack its newline. */
static sdlf_status take_end(edge_reader *reader)
{
    if (reader->state == COMMENT) take_comment(reader);
    if (reader->state == SECOND) return end_edge(reader);
    if (reader->state == FIRST || reader->state == BETWEEN)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s:%" PRId64 ": expected the second node's number, found the end of the file", reader->name,
                         reader->line);
    return SDLF_OK;
}

sdlf_status edge_list_read(edges *list, int64_t *declared, int64_t largest, sdlf_byte_stream *stream)
{
    edge_reader reader = {.name = stream->name, .list = list, .line = 1, .largest = largest};
    sdlf_status status = read_budget_make(&list->budget, stream->size, 0);
    if (status != SDLF_OK) return status;
    unsigned char *block = malloc(BLOCK);
    if (block == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: no memory to read it", stream->name);
    size_t found = BLOCK;
    while (status == SDLF_OK && found == BLOCK) {
        status = sdlf_byte_stream_read(stream, block, BLOCK, &found);
        if (status == SDLF_OK) status = take_block(&reader, block, block + found);
    }
    if (status == SDLF_OK) status = take_end(&reader);
    free(block);
    *declared = reader.declared;
    return status;
}

static sdlf_status load_stream(sdlf_graph *graph, sdlf_byte_stream *stream, bool undirected)
{
    edges list = {.count = 0};
    int64_t declared;
    sdlf_status status = edge_list_read(&list, &declared, INT64_MAX, stream);
    if (status == SDLF_OK) status = edges_number_nodes(&list, declared, &graph->node_count, &graph->ids);
    if (status == SDLF_OK && graph->node_count == 0)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected edges, found none", stream->name);
    graph->undirected = undirected;
    if (status == SDLF_OK) status = edges_to_adjacency(&list, graph->node_count, undirected, &graph->adjacency);
    edges_release(&list);
    return status;
}

sdlf_status edge_list_load(sdlf_graph *graph, const char *path, bool undirected)
{
    sdlf_byte_stream stream;
    sdlf_status status = sdlf_byte_stream_open(&stream, path);
    if (status != SDLF_OK) return status;
    status = load_stream(graph, &stream, undirected);
    sdlf_byte_stream_release(&stream);
    return status;
}

sdlf_status edge_list_parse(sdlf_graph *graph, const void *bytes, size_t size, const char *name, bool undirected)
{
    sdlf_byte_stream stream;
    sdlf_status status = sdlf_byte_stream_wrap(&stream, bytes, size, name);
    if (status != SDLF_OK) return status;
    status = load_stream(graph, &stream, undirected);
    sdlf_byte_stream_release(&stream);
    return status;
}
