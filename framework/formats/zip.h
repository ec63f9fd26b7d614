/* SPDX-License-Identifier: MIT */
/* Reading ZIP archives (PKWARE's APPNOTE 6.3), as NumPy's .npz files are: entries that are stored or deflated, Zip64
 * too. What the central directory says is believed only as far as the file bears it out: entries lie inside the file,
 * deflate packs at most 1032 bytes into one, and checksums are checked. Encrypted entries, other methods and archives
 * in several parts are refused. */
#ifndef SDLF_FORMATS_ZIP_H
#define SDLF_FORMATS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <sdlf/status.h>

typedef struct zip_archive {
    const char *name;            /* for messages; borrowed */
    int file;                    /* descriptor, owned; -1: the archive lies in memory: */
    const unsigned char *memory; /* borrowed */
    int64_t size;                /* bytes of it */
    unsigned char *directory;    /* the central directory, owned */
    size_t directory_size;
    int64_t count; /* of entries */
} zip_archive;

/* One file of the archive. */
typedef struct zip_entry {
    const char *name; /* in the archive's directory, without a 0 at its end */
    size_t name_length;
    int64_t at;           /* byte of the archive at which its local header stands */
    int64_t stored, size; /* bytes, as they lie there and unpacked */
    uint32_t crc;
    bool deflated;
    const char *refused; /* why it cannot be read; NULL: it can */
} zip_entry;

/* Open an archive, or wrap `size` bytes of memory (borrowed); `name` is kept, not copied. After a failure there is
 * nothing to close.
 * Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (file and byte), SDLF_ERROR_MEMORY. */
sdlf_status zip_open(zip_archive *archive, const char *path);
sdlf_status zip_wrap(zip_archive *archive, const void *bytes, size_t size, const char *name);
void zip_close(zip_archive *archive);

/* The next entry of the directory at byte *at (begin with 0), which moves behind it; false: there is none. */
bool zip_next(const zip_archive *archive, size_t *at, zip_entry *entry);

/* The entry of that name; false: there is none. Of several the last counts, as for Python's zipfile. */
bool zip_find(const zip_archive *archive, const char *name, zip_entry *entry);

/* An entry's content, from its begin on. */
typedef struct zip_stream {
    const zip_archive *archive;
    zip_entry entry;
    char name[512]; /* "ARCHIVE: ENTRY", for messages */
    int64_t at;     /* byte of the archive to read next */
    int64_t left;   /* bytes that are stored and not read yet */
    int64_t given;  /* of the content */
    uint32_t crc;   /* of these */
    bool inflating; /* `zlib` is initialised */
    bool ended;     /* deflate's own end was met */
    z_stream zlib;
    unsigned char *buffer; /* owned */
} zip_stream;

/* Errors: SDLF_ERROR_FORMAT (an entry that cannot be read, or that lies about itself), SDLF_ERROR_MEMORY. */
sdlf_status zip_stream_open(zip_stream *stream, const zip_archive *archive, const zip_entry *entry);
void zip_stream_close(zip_stream *stream);

/* Up to `count` bytes of a zip_stream's content; fewer only at its end, where its size and checksum are known to be
 * right. */
sdlf_status zip_stream_read(void *stream, void *bytes, size_t count, size_t *found);

#endif
