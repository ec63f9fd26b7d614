/* SPDX-License-Identifier: MIT */
/* ZIP archives written by tests: the entries one after another, then the directory. The header fields of an entry may
 * be false. */
#ifndef SDLF_TESTS_DATASETS_ZIP_FILES_H
#define SDLF_TESTS_DATASETS_ZIP_FILES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "testing.h"

typedef struct zip_made {
    unsigned char bytes[1 << 16];
    unsigned char directory[4096];
    size_t size, directory_size;
    int count;
} zip_made;

typedef struct zip_lies {
    bool deflated;
    unsigned flags, method;    /* 0: stored */
    uint32_t size, crc_change; /* unpacked size to claim, 0: the true one */
} zip_lies;

static inline void zip_put(unsigned char *to, size_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[(*at)++] = (unsigned char)(value >> 8 * i);
}

static inline void zip_add(zip_made *zip, const char *name, const void *content, size_t size, zip_lies lies)
{
    uint32_t crc = (uint32_t)crc32(0, content, (uInt)size) ^ lies.crc_change;
    unsigned char *packed = malloc(size + 1024);
    if (packed == NULL) abort();
    size_t stored = size;
    memcpy(packed, content, size);
    if (lies.deflated) {
        z_stream z = {0};
        z.next_in = (unsigned char *)(uintptr_t)content;
        z.avail_in = (uInt)size;
        z.next_out = packed;
        z.avail_out = (uInt)(size + 1024);
        if (deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK ||
            deflate(&z, Z_FINISH) != Z_STREAM_END)
            abort();
        stored = z.total_out;
        deflateEnd(&z);
    }
    size_t where = zip->size;
    uint32_t method = lies.method != 0 ? lies.method : lies.deflated ? 8 : 0, length = (uint32_t)strlen(name);
    uint32_t claimed = lies.size != 0 ? lies.size : (uint32_t)size;
    if (zip->size + 30 + length + stored > sizeof zip->bytes - sizeof zip->directory) abort();
    zip_put(zip->bytes, &zip->size, 0x04034b50, 4);
    zip_put(zip->bytes, &zip->size, 20 | lies.flags << 16, 4);
    zip_put(zip->bytes, &zip->size, method, 2);
    zip_put(zip->bytes, &zip->size, 0, 4);
    zip_put(zip->bytes, &zip->size, crc, 4);
    zip_put(zip->bytes, &zip->size, (uint32_t)stored, 4);
    zip_put(zip->bytes, &zip->size, claimed, 4);
    zip_put(zip->bytes, &zip->size, length, 4);
    memcpy(zip->bytes + zip->size, name, length);
    memcpy(zip->bytes + zip->size + length, packed, stored);
    zip->size += length + stored;
    unsigned char *d = zip->directory;
    zip_put(d, &zip->directory_size, 0x02014b50, 4);
    zip_put(d, &zip->directory_size, 20 | 20 << 16, 4);
    zip_put(d, &zip->directory_size, lies.flags | method << 16, 4);
    zip_put(d, &zip->directory_size, 0, 4);
    zip_put(d, &zip->directory_size, crc, 4);
    zip_put(d, &zip->directory_size, (uint32_t)stored, 4);
    zip_put(d, &zip->directory_size, claimed, 4);
    zip_put(d, &zip->directory_size, length, 4);
    for (int i = 0; i < 5; i++) zip_put(d, &zip->directory_size, 0, 2);
    zip_put(d, &zip->directory_size, (uint32_t)where, 4);
    memcpy(d + zip->directory_size, name, length);
    zip->directory_size += length;
    zip->count++;
    free(packed);
}

static inline void zip_finish(zip_made *zip)
{
    size_t where = zip->size;
    memcpy(zip->bytes + zip->size, zip->directory, zip->directory_size);
    zip->size += zip->directory_size;
    zip_put(zip->bytes, &zip->size, 0x06054b50, 4);
    zip_put(zip->bytes, &zip->size, 0, 4);
    zip_put(zip->bytes, &zip->size, (uint32_t)zip->count | (uint32_t)zip->count << 16, 4);
    zip_put(zip->bytes, &zip->size, (uint32_t)zip->directory_size, 4);
    zip_put(zip->bytes, &zip->size, (uint32_t)where, 4);
    zip_put(zip->bytes, &zip->size, 0, 2);
}

/* Write a .npy of this type and shape ("(4,)") to `to`, of at least `size` + 128 bytes; returns its size. */
static inline size_t zip_array(unsigned char *to, const char *type, const char *shape, const void *data, size_t size)
{
    char text[119];
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(to, ' ', 128);
    memcpy(to, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(to + 10, text, (size_t)length);
    to[127] = '\n';
    memcpy(to + 128, data, size);
    return 128 + size;
}

#endif
