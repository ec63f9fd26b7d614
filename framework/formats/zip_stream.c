/* SPDX-License-Identifier: MIT */
/* The content of an entry of a ZIP archive. See zip.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/zip_bytes.h"

enum { LOCAL = 30, BUFFER = 1 << 16 };

sdlf_status zip_stream_open(zip_stream *stream, const zip_archive *archive, const zip_entry *entry)
{
    unsigned char local[LOCAL];
    *stream = (zip_stream){.archive = archive, .entry = *entry};
    snprintf(stream->name, sizeof stream->name, "%s: %.*s", archive->name,
             (int)(entry->name_length < 200 ? entry->name_length : 200), entry->name);
    if (entry->refused != NULL)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: cannot be read: %s", stream->name, entry->refused);
    sdlf_status status = zip_bytes_at(archive, entry->at, local, LOCAL);
    if (status == SDLF_OK && memcmp(local, "PK\3\4", 4) != 0)
        status = zip_fail(archive, entry->at, "expected the header of an entry");
    if (status != SDLF_OK) return status;
    stream->at = entry->at + LOCAL + (int64_t)zip_u16(local + 26) + (int64_t)zip_u16(local + 28);
    stream->left = entry->stored;
    stream->crc = (uint32_t)crc32(0, NULL, 0);
    if (stream->left > archive->size - stream->at)
        return zip_fail(archive, entry->at, "the entry's content goes beyond the archive's end");
    if (!entry->deflated) return SDLF_OK;
    stream->buffer = malloc(BUFFER);
    stream->inflating = stream->buffer != NULL && inflateInit2(&stream->zlib, -MAX_WBITS) == Z_OK;
    if (stream->inflating) return SDLF_OK;
    zip_stream_close(stream);
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", archive->name);
}

void zip_stream_close(zip_stream *stream)
{
    if (stream->inflating) inflateEnd(&stream->zlib);
    free(stream->buffer);
    stream->inflating = false;
    stream->buffer = NULL;
}

/* Reads up to `count` stored bytes to `bytes`, and advances. */
static sdlf_status take_stored(zip_stream *stream, void *bytes, size_t count, size_t *found)
{
    *found = (int64_t)count < stream->left ? count : (size_t)stream->left;
    sdlf_status status = zip_bytes_at(stream->archive, stream->at, bytes, *found);
    stream->at += (int64_t)*found;
    stream->left -= (int64_t)*found;
    return status;
}

static sdlf_status damaged(const zip_stream *stream, const char *why)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %" PRId64 ": damaged deflate data: %s", stream->name,
                     stream->at - (int64_t)stream->zlib.avail_in, why);
}

static sdlf_status inflate_some(zip_stream *stream, void *bytes, size_t count, size_t *found)
{
    *found = 0;
    while (*found < count && !stream->ended) {
        size_t part, most = count - *found < 1u << 30 ? count - *found : 1u << 30;
        if (stream->zlib.avail_in == 0) {
            sdlf_status status = take_stored(stream, stream->buffer, BUFFER, &part);
            if (status != SDLF_OK) return status;
            stream->zlib.next_in = stream->buffer;
            stream->zlib.avail_in = (uInt)part;
        }
        stream->zlib.next_out = (unsigned char *)bytes + *found;
        stream->zlib.avail_out = (uInt)most;
        int result = inflate(&stream->zlib, Z_NO_FLUSH);
        *found += most - stream->zlib.avail_out;
        if (result == Z_MEM_ERROR) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", stream->name);
        if (result == Z_BUF_ERROR ||
            (result == Z_OK && stream->zlib.avail_in == 0 && stream->left == 0 && stream->zlib.avail_out > 0))
            return damaged(stream, "it ends in the middle");
        if (result != Z_OK && result != Z_STREAM_END)
            return damaged(stream, stream->zlib.msg != NULL ? stream->zlib.msg : "it cannot be unpacked");
        stream->ended = result == Z_STREAM_END;
    }
    return SDLF_OK;
}

sdlf_status zip_stream_read(void *context, void *bytes, size_t count, size_t *found)
{
    zip_stream *stream = context;
    int64_t rest = stream->entry.size - stream->given;
    sdlf_status status =
        stream->entry.deflated ? inflate_some(stream, bytes, count, found) : take_stored(stream, bytes, count, found);
    if (status != SDLF_OK) return status;
    for (size_t done = 0, part; done < *found; done += part) {
        part = *found - done < 1u << 30 ? *found - done : 1u << 30;
        stream->crc = (uint32_t)crc32(stream->crc, (const unsigned char *)bytes + done, (uInt)part);
    }
    stream->given += (int64_t)*found;
    if ((int64_t)*found > rest || (*found < count && (int64_t)*found != rest))
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected %" PRId64 " bytes, found %s", stream->name,
                         stream->entry.size, (int64_t)*found > rest ? "more" : "fewer");
    if (*found < count && stream->crc != stream->entry.crc)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected a content of checksum %08x, found %08x", stream->name,
                         (unsigned)stream->entry.crc, (unsigned)stream->crc);
    return SDLF_OK;
}
