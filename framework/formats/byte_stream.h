/* SPDX-License-Identifier: MIT */
/* A stream of bytes from a file or from memory, plain or gzip (RFC 1952), distinguished by the first two bytes.
 *
 * A reader requests exactly the bytes it needs; nothing is decompressed beyond that, so the memory that a hostile file
 * can claim is bounded by what its reader was willing to allocate. Messages name the source and the byte at fault:
 * "FILE: byte B" counts in the content, "FILE: compressed byte B" in the gzip file itself. */
#ifndef SDLF_FORMATS_BYTE_STREAM_H
#define SDLF_FORMATS_BYTE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <sdlf/status.h>

enum { SDLF_BYTE_STREAM_BUFFER = 1 << 16 };

typedef struct sdlf_byte_stream {
    const char *name;            /* for messages; borrowed */
    int file;                    /* descriptor, owned; -1 for memory */
    const unsigned char *memory; /* borrowed; NULL for a file */
    int64_t size;                /* bytes of the file or of the memory, as stored */
    int64_t taken;               /* bytes read so far, of these */
    bool compressed;             /* gzip */
    bool inflating;              /* `zlib` is initialised */
    bool member_ended;           /* the last member's checksum was right, and no further member has begun */
    int64_t offset;              /* bytes of content delivered so far */
    z_stream zlib;
    unsigned char *buffer; /* compressed input of zlib, owned */
} sdlf_byte_stream;

/* Opens a regular file, or wraps `size` bytes of memory (borrowed until release). `name` is kept, not copied. After a
 * failure there is nothing to release. Errors: SDLF_ERROR_IO with the system's reason, SDLF_ERROR_MEMORY. */
sdlf_status sdlf_byte_stream_open(sdlf_byte_stream *stream, const char *path);
sdlf_status sdlf_byte_stream_wrap(sdlf_byte_stream *stream, const void *bytes, size_t size, const char *name);

/* Releases what the stream holds. */
void sdlf_byte_stream_release(sdlf_byte_stream *stream);

/* Reads up to `count` bytes of content; fewer only at its end. Content of a gzip file is verified only once a read has
 * reached its end, where the checksum is: read one byte more than expected. Errors: SDLF_ERROR_IO; SDLF_ERROR_FORMAT if
 * gzip data is damaged or truncated, or its checksum is wrong. */
sdlf_status sdlf_byte_stream_read(sdlf_byte_stream *stream, void *bytes, size_t count, size_t *found);

/* The most content that a stream of this stored size can hold: the size itself, or 1032 times as much for gzip (a
 * deflate code of 2 bits encodes at most 258 bytes). */
int64_t sdlf_byte_stream_capacity(const sdlf_byte_stream *stream);

#endif
