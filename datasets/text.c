/* SPDX-License-Identifier: MIT */
/* text: the characters of a file, each to be predicted from those before it.
 *
 *     text:FILE[,length=T]
 *
 * The classes are the file's characters, sorted by code point. Samples (M,T) are T characters; their labels (M,T) are
 * the T characters that begin one later. Samples are adjacent; the remainder at the end of a half is unused. The last
 * tenth of the file is for testing. The class names are the characters, except that those unprintable in a table are
 * escaped: "\n", "\t", "\r", "\\" and "\xNN". */
#include "datasets/datasets_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/budget.h"
#include "framework/formats/read_file.h"

enum {
    LENGTH = 128,
    MOST_LENGTH = 65536,
    MOST_CLASSES = 4096,
    TEST_PART = 10,
    CODES = 0x110000,
    TIMES = 6 /* memory per byte of the file: the bytes, in a buffer that doubles, and their tokens */
};

typedef struct text_file {
    const char *path;
    int64_t length;   /* of a sample */
    int32_t *token;   /* code points, later classes */
    int64_t count;    /* tokens */
    int32_t *classes; /* per code point: 1 if it occurs, later its class */
    int32_t codes;    /* code points up to the last that occurs */
} text_file;

/* ---- characters ---- */

/* The code point that begins at `at`, and the number of its bytes; -1: not UTF-8. A NUL follows the last byte. */
static int32_t take_character(const unsigned char *at, int *bytes)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    *bytes = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    if (*bytes == 0) return -1;
    int32_t code = *bytes == 1 ? at[0] : at[0] & (0x7f >> *bytes);
    for (int i = 1; i < *bytes; i++) {
        if (at[i] >> 6 != 2) return -1;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[*bytes] || code >= CODES || surrogate ? -1 : code;
}

static sdlf_status take_characters(text_file *t, const char *bytes, size_t size)
{
    const unsigned char *text = (const unsigned char *)bytes;
    int length;
    for (size_t at = 0; at < size; at += (size_t)length) {
        int32_t code = take_character(text + at, &length);
        if (code < 0 || (size_t)length > size - at)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %zu: expected a character in UTF-8, found %02x", t->path, at,
                             text[at]);
        t->token[t->count++] = code;
        t->classes[code] = 1;
        if (code >= t->codes) t->codes = code + 1;
    }
    return SDLF_OK;
}

static char *name_of(int32_t code)
{
    char name[16];
    if (code == '\n' || code == '\t' || code == '\r' || code == '\\')
        snprintf(name, sizeof name, "\\%c", code == '\n' ? 'n' : code == '\t' ? 't' : code == '\r' ? 'r' : '\\');
    else if (code < 0x20 || code == 0x7f)
        snprintf(name, sizeof name, "\\x%02x", (unsigned)code & 0x7f);
    else if (code < 0x80)
        snprintf(name, sizeof name, "%c", (int)code);
    else if (code < 0x800)
        snprintf(name, sizeof name, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 0x3f));
    else if (code < 0x10000)
        snprintf(name, sizeof name, "%c%c%c", 0xe0 | code >> 12, 0x80 | (code >> 6 & 0x3f), 0x80 | (code & 0x3f));
    else
        snprintf(name, sizeof name, "%c%c%c%c", 0xf0 | code >> 18, 0x80 | (code >> 12 & 0x3f),
                 0x80 | (code >> 6 & 0x3f), 0x80 | (code & 0x3f));
    return strdup(name);
}

/* Replace the characters by their classes. */
static sdlf_status number_classes(sdlf_dataset *dataset, text_file *t)
{
    int count = 0;
    for (int32_t code = 0; code < t->codes; code++) count += t->classes[code];
    if (count < 2 || count > MOST_CLASSES)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected 2 to %d different characters, found %d", t->path,
                         (int)MOST_CLASSES, count);
    dataset->class_names = calloc((size_t)count, sizeof *dataset->class_names);
    if (dataset->class_names == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->path);
    for (int32_t code = 0; code < t->codes; code++) {
        if (t->classes[code] == 0) continue;
        t->classes[code] = dataset->class_count;
        dataset->class_names[dataset->class_count] = name_of(code);
        if (dataset->class_names[dataset->class_count++] == NULL)
            return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", t->path);
    }
    for (int64_t i = 0; i < t->count; i++) t->token[i] = t->classes[t->token[i]];
    return SDLF_OK;
}

/* ---- samples ---- */

static sdlf_status cut_samples(sdlf_dataset *dataset, const text_file *t, sdlf_split split)
{
    int64_t test = t->count / TEST_PART, first = split == SDLF_SPLIT_TEST ? t->count - test : 0;
    int64_t half = split == SDLF_SPLIT_TEST ? test : t->count - test, samples = (half - 1) / t->length;
    if (samples < 1)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: samples of %" PRId64 " characters and what follows need %" PRId64
                         " for %s, found %" PRId64 " of %" PRId64 "; length= makes them shorter",
                         t->path, t->length, t->length + 1, split == SDLF_SPLIT_TEST ? "testing" : "training", half,
                         t->count);
    bool narrow = dataset->class_count <= 256;
    sdlf_shape shape = sdlf_shape(samples, t->length);
    sdlf_status status = read_tensor_create(&dataset->samples, narrow ? SDLF_UINT8 : SDLF_FLOAT32, shape, t->path);
    if (status == SDLF_OK) status = read_tensor_create(&dataset->labels, SDLF_INT32, shape, t->path);
    if (status != SDLF_OK) return status;
    sdlf_convert(dataset->samples.dtype, dataset->samples.data, SDLF_INT32, t->token + first, samples * t->length);
    memcpy(dataset->labels.data, t->token + first + 1, (size_t)(samples * t->length) * sizeof *t->token);
    dataset->scale = 1;
    return SDLF_OK;
}

/* ---- the argument ---- */

/* Split FILE from its options; the caller owns *path. */
static sdlf_status read_argument(char **path, int64_t *length, const char *argument)
{
    *length = LENGTH;
    *path = argument != NULL ? strdup(argument) : NULL;
    if (argument != NULL && *path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "text: out of memory");
    char *comma = *path != NULL ? strrchr(*path, ',') : NULL;
    if (comma != NULL && strncmp(comma + 1, "length=", 7) == 0) {
        char *end;
        *length = strtol(comma + 8, &end, 10);
        if (end == comma + 8 || *end != '\0' || *length < 1 || *length > MOST_LENGTH)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "text: %s: expected a number of 1 to %d", comma + 1,
                             (int)MOST_LENGTH);
        *comma = '\0';
    }
    if (*path != NULL && **path != '\0') return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "text: expected text:FILE[,length=T], found 'text:%s'",
                     argument != NULL ? argument : "");
}

static sdlf_status load(sdlf_dataset *dataset, const char *argument, sdlf_split split,
                        const sdlf_dataset_options *options)
{
    (void)options;
    char *path, *bytes = NULL;
    size_t size = 0, most = 0;
    text_file t = {.count = 0};
    sdlf_status status = read_argument(&path, &t.length, argument);
    t.path = path;
    if (status == SDLF_OK) status = sdlf_dataset_name(dataset, "text", path);
    if (status == SDLF_OK) status = read_budget_file(&most, path, TIMES);
    if (status == SDLF_OK) status = read_file(&bytes, &size, path, most);
    if (status != SDLF_OK) goto done;
    t.token = malloc((size + 1) * sizeof *t.token);
    t.classes = calloc(CODES, sizeof *t.classes);
    if (t.token == NULL || t.classes == NULL) status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    if (status == SDLF_OK) status = take_characters(&t, bytes, size);
    if (status == SDLF_OK) status = number_classes(dataset, &t);
    if (status == SDLF_OK) status = cut_samples(dataset, &t, split);
done:
    free(t.classes);
    free(t.token);
    free(bytes);
    free(path);
    return status;
}

static sdlf_status check(const char *argument, sdlf_split split)
{
    char *path;
    int64_t length;
    (void)split;
    sdlf_status status = read_argument(&path, &length, argument);
    FILE *file = status == SDLF_OK ? fopen(path, "r") : NULL;
    if (status == SDLF_OK && file == NULL) status = sdlf_fail(SDLF_ERROR_IO, "cannot open '%s'", path);
    if (file != NULL) fclose(file);
    free(path);
    return status;
}

const sdlf_dataset_class sdlf_text_dataset_class = {
    .name = "text",
    .summary = "text:FILE, a text in UTF-8, for networks that predict the next character, as char_gpt; "
               "text:FILE,length=128 sets the characters of a sample",
    .load = load,
    .check = check,
};
