/* SPDX-License-Identifier: MIT */
#include "framework/formats/npy_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The position in the text. */
typedef struct text_reader {
    const char *at, *end;
    const char *name; /* of the file */
} text_reader;

typedef struct npy_type {
    const char *code;
    sdlf_dtype dtype;
} npy_type;

/* Writing uses the first row of a dtype; reading uses the last row of a code: bools become bytes. */
static const npy_type types[] = {
    {"<f4", SDLF_FLOAT32}, {"<f8", SDLF_FLOAT64}, {"<f2", SDLF_FLOAT16}, {"|u1", SDLF_UINT8}, {"|i1", SDLF_INT8},
    {"<i4", SDLF_INT32},   {"<i8", SDLF_INT64},   {"|b1", SDLF_BOOL},    {"|b1", SDLF_UINT8},
};
enum { TYPES = sizeof types / sizeof types[0] };

const unsigned char npy_magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* ---- reading ---- */

static void skip_blanks(text_reader *header)
{
    while (header->at < header->end && (*header->at == ' ' || *header->at == '\n' || *header->at == '\t')) header->at++;
}

static bool take(text_reader *header, char wanted)
{
    skip_blanks(header);
    if (header->at == header->end || *header->at != wanted) return false;
    header->at++;
    return true;
}

static sdlf_status malformed(const text_reader *header, const char *expected)
{
    int left = (int)(header->end - header->at < 20 ? header->end - header->at : 20);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: expected %s, found '%.*s'", header->name, expected, left,
                     header->at);
}

/* A quoted string without escapes, shorter than `size`. */
static sdlf_status take_text(text_reader *header, char *text, size_t size, const char *expected)
{
    skip_blanks(header);
    char quote = header->at < header->end ? *header->at : '\0';
    if (quote != '\'' && quote != '"') return malformed(header, expected);
    const char *first = header->at + 1, *last = memchr(first, quote, (size_t)(header->end - first));
    if (last == NULL || (size_t)(last - first) >= size || memchr(first, '\0', (size_t)(last - first)) != NULL)
        return malformed(header, expected);
    memcpy(text, first, (size_t)(last - first));
    text[last - first] = '\0';
    header->at = last + 1;
    return SDLF_OK;
}

static sdlf_status take_shape(text_reader *header, sdlf_shape *shape)
{
    *shape = SDLF_SCALAR;
    if (!take(header, '(')) return malformed(header, "'shape' in parentheses");
    while (!take(header, ')')) {
        int64_t side = 0;
        int digits = 0;
        for (skip_blanks(header); header->at < header->end && *header->at >= '0' && *header->at <= '9'; header->at++) {
            if (side > (INT64_MAX - 9) / 10) return malformed(header, "a side that 63 bits can hold");
            side = 10 * side + (*header->at - '0');
            digits++;
        }
        if (digits == 0) return malformed(header, "a side of 'shape'");
        if (shape->rank == SDLF_MAX_RANK)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: expected at most %d dimensions, found more",
                             header->name, SDLF_MAX_RANK);
        shape->dim[shape->rank++] = side;
        if (take(header, ',')) continue;
        if (!take(header, ')')) return malformed(header, "',' or ')' in 'shape'");
        break;
    }
    return SDLF_OK;
}

static sdlf_status take_type(text_reader *header, sdlf_dtype *dtype)
{
    char code[16];
    sdlf_status status = take_text(header, code, sizeof code, "'descr' in quotes");
    if (status != SDLF_OK) return status;
    for (int i = 0; i < TYPES; i++) {
        if (strcmp(types[i].code, code) == 0) *dtype = types[i].dtype;
    }
    if (*dtype != SDLF_NONE) return SDLF_OK;
    if (code[0] != '\0' && code[1] == 'O')
        return sdlf_fail(
            SDLF_ERROR_FORMAT,
            "%s: .npy header: Python objects, a pickle that may run any program: expected an array of numbers",
            header->name);
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: .npy header: element type '%s', expected <f2, <f4, <f8, |u1, |i1, |b1, <i4 or <i8",
                     header->name, code);
}

static sdlf_status take_order(text_reader *header, bool *column_major)
{
    skip_blanks(header);
    size_t left = (size_t)(header->end - header->at);
    *column_major = left >= 4 && memcmp(header->at, "True", 4) == 0;
    if (!*column_major && !(left >= 5 && memcmp(header->at, "False", 5) == 0))
        return malformed(header, "True or False for 'fortran_order'");
    header->at += *column_major ? 4 : 5;
    return SDLF_OK;
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } in any order, each key once. */
static sdlf_status parse(text_reader *header, sdlf_dtype *dtype, sdlf_shape *shape, bool *column_major)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    *dtype = SDLF_NONE;
    if (!take(header, '{')) return malformed(header, "'{'");
    while (!take(header, '}')) {
        char key[16];
        sdlf_status status = take_text(header, key, sizeof key, "descr, fortran_order or shape");
        if (status != SDLF_OK) return status;
        int which = 0;
        while (which < 3 && strcmp(key, keys[which]) != 0) which++;
        if (which == 3 || seen[which])
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: %s key '%s'", header->name,
                             which == 3 ? "unknown" : "repeated", key);
        if (!take(header, ':')) return malformed(header, "':'");
        seen[which] = true;
        status = which == 0   ? take_type(header, dtype)
                 : which == 1 ? take_order(header, column_major)
                              : take_shape(header, shape);
        if (status != SDLF_OK) return status;
        if (take(header, ',')) continue;
        if (!take(header, '}')) return malformed(header, "',' or '}'");
        break;
    }
    for (int i = 0; i < 3; i++) {
        if (!seen[i]) return sdlf_fail(SDLF_ERROR_FORMAT, "%s: .npy header: '%s' is missing", header->name, keys[i]);
    }
    return SDLF_OK;
}

sdlf_status npy_parse_header(const char *text, size_t length, const char *name, sdlf_dtype *dtype, sdlf_shape *shape,
                             bool *column_major)
{
    text_reader header = {.at = text, .end = text + length, .name = name};
    *shape = SDLF_SCALAR;
    return parse(&header, dtype, shape, column_major);
}

/* ---- writing ---- */

const char *npy_type_code(sdlf_dtype dtype)
{
    for (int i = 0; i < TYPES; i++) {
        if (types[i].dtype == dtype) return types[i].code;
    }
    return NULL;
}

size_t npy_print_header(char *text, size_t size, const sdlf_tensor *tensor)
{
    size_t used = sizeof npy_magic + 4;
    used += (size_t)snprintf(text + used, size - used, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                             npy_type_code(tensor->dtype));
    for (int i = 0; i < tensor->shape.rank; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? ", " : "", tensor->shape.dim[i]);
    used += (size_t)snprintf(text + used, size - used, "%s), }", tensor->shape.rank == 1 ? "," : "");
    size_t end = (used + 1 + 63) / 64 * 64;
    memset(text + used, ' ', end - 1 - used);
    text[end - 1] = '\n';
    memcpy(text, npy_magic, sizeof npy_magic);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)((end - 10) & 0xff);
    text[9] = (char)((end - 10) >> 8);
    return end;
}
