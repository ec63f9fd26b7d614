/* SPDX-License-Identifier: MIT */
/* Streams of bytes from a file or from memory, plain or gzip. */
#include "framework/formats/byte_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads up to `count` stored bytes, fewer only at the end. */
static sdlf_status read_stored(sdlf_byte_stream *stream, void *bytes, size_t count, size_t *found)
{
    *found = 0;
    if (stream->file < 0) {
        size_t left = (size_t)(stream->size - stream->taken);
        *found = count < left ? count : left;
        if (*found > 0) memcpy(bytes, stream->memory + stream->taken, *found);
    }
    while (stream->file >= 0 && *found < count) {
        size_t part = count - *found < SSIZE_MAX ? count - *found : SSIZE_MAX;
        ssize_t n = read(stream->file, (char *)bytes + *found, part);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            return sdlf_fail(SDLF_ERROR_IO, "%s: byte %lld: cannot read: %s", stream->name,
                             (long long)(stream->taken + (int64_t)*found), strerror(errno));
        }
        if (n == 0) break;
        *found += (size_t)n;
    }
    stream->taken += (int64_t)*found;
    return SDLF_OK;
}

/* zlib's position in the stored bytes: bytes read minus those it has not used yet. */
static long long zlib_position(const sdlf_byte_stream *stream)
{
    return (long long)(stream->taken - (int64_t)stream->zlib.avail_in);
}

/* Examines the first two bytes; for gzip, prepares to inflate. */
static sdlf_status detect(sdlf_byte_stream *stream)
{
    unsigned char magic[2] = {0};
    size_t found = 0;
    sdlf_status status = read_stored(stream, magic, sizeof magic, &found);
    if (status != SDLF_OK) return status;
    if (stream->file >= 0 && lseek(stream->file, 0, SEEK_SET) != 0) {
        return sdlf_fail(SDLF_ERROR_IO, "%s: cannot go back to its start: %s", stream->name, strerror(errno));
    }
    stream->taken = 0;
    stream->compressed = found == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    if (!stream->compressed) return SDLF_OK;

    stream->buffer = malloc(SDLF_BYTE_STREAM_BUFFER);
    if (stream->buffer == NULL) {
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: no memory for a buffer of %d bytes", stream->name,
                         SDLF_BYTE_STREAM_BUFFER);
    }
    int code = inflateInit2(&stream->zlib, 16 + MAX_WBITS); /* 16: requires a gzip wrapper */
    if (code != Z_OK) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: zlib cannot start: %s", stream->name, zError(code));
    stream->inflating = true;
    return SDLF_OK;
}

sdlf_status sdlf_byte_stream_open(sdlf_byte_stream *stream, const char *path)
{
    *stream = (sdlf_byte_stream){.name = path, .file = -1};
    sdlf_status status = SDLF_OK;
    struct stat about;
    stream->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* must not block on a named pipe */
    if (stream->file < 0 || fstat(stream->file, &about) != 0) {
        status = sdlf_fail(SDLF_ERROR_IO, "%s: cannot open: %s", path, strerror(errno));
        goto fail;
    }
    if (!S_ISREG(about.st_mode)) {
        status = sdlf_fail(SDLF_ERROR_IO, "%s: expected a regular file, found %s", path,
                           S_ISDIR(about.st_mode) ? "a folder" : "something else");
        goto fail;
    }
    stream->size = about.st_size;
    status = detect(stream);
    if (status != SDLF_OK) goto fail;
    return SDLF_OK;
fail:
    sdlf_byte_stream_release(stream);
    return status;
}

sdlf_status sdlf_byte_stream_wrap(sdlf_byte_stream *stream, const void *bytes, size_t size, const char *name)
{
    assert(size <= INT64_MAX);
    *stream = (sdlf_byte_stream){.name = name, .file = -1, .memory = bytes, .size = (int64_t)size};
    sdlf_status status = detect(stream);
    if (status != SDLF_OK) sdlf_byte_stream_release(stream);
    return status;
}

void sdlf_byte_stream_release(sdlf_byte_stream *stream)
{
    if (stream->inflating) inflateEnd(&stream->zlib);
    free(stream->buffer);
    if (stream->file >= 0) close(stream->file);
    *stream = (sdlf_byte_stream){.file = -1};
}

/* Gives zlib more stored bytes once it has used the previous ones; *more is false at the end of the file. */
static sdlf_status refill(sdlf_byte_stream *stream, bool *more)
{
    if (stream->zlib.avail_in == 0) {
        size_t found = 0;
        sdlf_status status = read_stored(stream, stream->buffer, SDLF_BYTE_STREAM_BUFFER, &found);
        if (status != SDLF_OK) return status;
        stream->zlib.next_in = stream->buffer;
        stream->zlib.avail_in = (uInt)found;
    }
    *more = stream->zlib.avail_in > 0;
    return SDLF_OK;
}

/* A member has ended with the right checksum and more bytes follow: they must be another member. */
static sdlf_status next_member(sdlf_byte_stream *stream)
{
    if (stream->zlib.next_in[0] != 0x1f) {
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: compressed byte %lld: expected the end of the file, found 0x%02x",
                         stream->name, zlib_position(stream), stream->zlib.next_in[0]);
    }
    inflateReset(&stream->zlib);
    stream->member_ended = false;
    return SDLF_OK;
}

static sdlf_status inflate_failed(const sdlf_byte_stream *stream, int code)
{
    if (code == Z_MEM_ERROR) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: no memory to decompress it", stream->name);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: compressed byte %lld: damaged gzip data: %s", stream->name,
                     zlib_position(stream), stream->zlib.msg != NULL ? stream->zlib.msg : zError(code));
}

static sdlf_status read_inflated(sdlf_byte_stream *stream, unsigned char *bytes, size_t count, size_t *found)
{
    *found = 0;
    while (*found < count) {
        bool more = false;
        sdlf_status status = refill(stream, &more);
        if (status != SDLF_OK) return status;
        if (!more && stream->member_ended) return SDLF_OK;
        if (!more) {
            return sdlf_fail(SDLF_ERROR_FORMAT,
                             "%s: compressed byte %lld: expected more gzip data (after %lld bytes of content), found "
                             "the end of the file",
                             stream->name, zlib_position(stream), (long long)(stream->offset + (int64_t)*found));
        }
        if (stream->member_ended) {
            status = next_member(stream);
            if (status != SDLF_OK) return status;
        }
        size_t part = count - *found < UINT_MAX ? count - *found : UINT_MAX;
        stream->zlib.next_out = bytes + *found;
        stream->zlib.avail_out = (uInt)part;
        int code = inflate(&stream->zlib, Z_NO_FLUSH);
        *found += part - stream->zlib.avail_out;
        if (code == Z_STREAM_END)
            stream->member_ended = true;
        else if (code != Z_OK)
            return inflate_failed(stream, code);
    }
    return SDLF_OK;
}

sdlf_status sdlf_byte_stream_read(sdlf_byte_stream *stream, void *bytes, size_t count, size_t *found)
{
    sdlf_status status =
        stream->compressed ? read_inflated(stream, bytes, count, found) : read_stored(stream, bytes, count, found);
    if (status == SDLF_OK) stream->offset += (int64_t)*found;
    return status;
}

int64_t sdlf_byte_stream_capacity(const sdlf_byte_stream *stream)
{
    if (!stream->compressed) return stream->size;
    return stream->size <= INT64_MAX / 1032 ? stream->size * 1032 : INT64_MAX;
}
