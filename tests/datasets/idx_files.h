/* SPDX-License-Identifier: MIT */
/* IDX files for tests: building their bytes, compressing bytes with gzip, and writing both to files. */
#ifndef SDLF_TESTS_DATASETS_IDX_FILES_H
#define SDLF_TESTS_DATASETS_IDX_FILES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <sdlf/shape.h>

typedef struct idx_bytes {
    unsigned char *data; /* free() it */
    size_t size;
} idx_bytes;

static inline unsigned char idx_element(int64_t i)
{
    return (unsigned char)((uint32_t)i * 2654435761u >> 24);
}

/* An IDX file of unsigned bytes: `elements`, or idx_element of each index if that is NULL. */
static inline idx_bytes idx_make(sdlf_shape shape, const unsigned char *elements)
{
    size_t header = 4 + 4 * (size_t)shape.rank, count = (size_t)sdlf_shape_count(shape);
    idx_bytes made = {.data = malloc(header + count), .size = header + count};
    if (made.data == NULL) abort();
    memcpy(made.data, (unsigned char[]){0, 0, 8, (unsigned char)shape.rank}, 4);
    for (size_t i = 0; i < 4 * (size_t)shape.rank; i++) {
        made.data[4 + i] = (unsigned char)(shape.dim[i / 4] >> 8 * (3 - i % 4));
    }
    for (size_t i = 0; i < count; i++) made.data[header + i] = elements ? elements[i] : idx_element((int64_t)i);
    return made;
}

/* One gzip member of these bytes. */
static inline idx_bytes idx_gzip(const void *bytes, size_t size)
{
    z_stream zlib = {0};
    if (deflateInit2(&zlib, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    size_t bound = deflateBound(&zlib, size);
    idx_bytes made = {.data = malloc(bound)};
    if (made.data == NULL) abort();
    zlib.next_in = (Bytef *)(uintptr_t)bytes;
    zlib.avail_in = (uInt)size;
    zlib.next_out = made.data;
    zlib.avail_out = (uInt)bound;
    if (deflate(&zlib, Z_FINISH) != Z_STREAM_END) abort();
    made.size = zlib.total_out;
    deflateEnd(&zlib);
    return made;
}

/* The bytes of a followed by those of b; frees both. */
static inline idx_bytes idx_join(idx_bytes a, idx_bytes b)
{
    idx_bytes made = {.data = malloc(a.size + b.size), .size = a.size + b.size};
    if (made.data == NULL) abort();
    memcpy(made.data, a.data, a.size);
    memcpy(made.data + a.size, b.data, b.size);
    free(a.data);
    free(b.data);
    return made;
}

#endif
