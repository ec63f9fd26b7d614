/* SPDX-License-Identifier: MIT */
/* The format of a file. */
#include "apps/input/file_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOK = 64, SHOWN = 12 };

/* A safetensors file begins with the length of the header, at most 100 MB, then the header: a JSON object. */
static bool is_safetensors(const unsigned char *byte, size_t count)
{
    uint64_t length = 0;
    for (int i = 7; i >= 0 && count > 8; i--) length = length << 8 | byte[i];
    return length >= 2 && length <= 100000000 && byte[8] == '{';
}

static bool is_json(const unsigned char *byte, size_t count)
{
    size_t at = count >= 3 && memcmp(byte, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < count && strchr(" \t\r\n", byte[at]) && byte[at]) at++;
    return at < count && byte[at] == '{';
}

/* A ModelProto begins with its ir_version (field 1, a small integer), followed by an integer or bytes field. */
static bool is_onnx(const unsigned char *byte, size_t count)
{
    return count > 2 && byte[0] == 0x08 && byte[1] > 0 && byte[1] < 0x80 && ((byte[2] & 7) == 0 || (byte[2] & 7) == 2);
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), wanted = strlen(end);
    return length > wanted && strcmp(path + length - wanted, end) == 0;
}

/* Reads the first bytes of a regular file; 0: there are none. */
static size_t read_first_bytes(const char *path, unsigned char *byte, size_t size)
{
    struct stat at;
    FILE *file = stat(path, &at) == 0 && S_ISREG(at.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return 0;
    size_t count = fread(byte, 1, size, file);
    fclose(file);
    return count;
}

file_type file_type_of(const char *path)
{
    unsigned char byte[LOOK];
    size_t count = read_first_bytes(path, byte, sizeof byte);
    if (is_safetensors(byte, count)) return FILE_TYPE_SAFETENSORS;
    if (is_json(byte, count)) return FILE_TYPE_JSON;
    if (is_onnx(byte, count) || ends_in(path, ".onnx")) return FILE_TYPE_ONNX;
    if (ends_in(path, ".safetensors")) return FILE_TYPE_SAFETENSORS;
    return ends_in(path, ".json") ? FILE_TYPE_JSON : FILE_TYPE_OTHER;
}

sdlf_status file_type_refuse_other(const char *path, const char *expected)
{
    unsigned char byte[SHOWN];
    size_t count = read_first_bytes(path, byte, sizeof byte), letters = 0;
    if (count == 0 || file_type_of(path) != FILE_TYPE_OTHER) return SDLF_OK;
    if (count >= 2 && byte[0] == 0x1f && byte[1] == 0x8b)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected %s, found a gzip-compressed file; decompress it first", path,
                         expected);
    char found[4 * SHOWN] = "";
    while (letters < count && byte[letters] >= ' ' && byte[letters] < 0x7F) letters++;
    if (letters >= 4) {
        snprintf(found, sizeof found, "'%.*s'", (int)letters, (const char *)byte);
    } else {
        for (size_t i = 0; i < count; i++) snprintf(found + 3 * i, 4, "%02x ", byte[i]);
        found[3 * count - 1] = '\0';
    }
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected %s, found %s at byte 0", path, expected, found);
}
