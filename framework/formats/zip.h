/* SPDX-License-Identifier: MIT */
/* Reads ZIP archives (PKWARE's APPNOTE 6.3), such as NumPy's .npz files: stored or deflated entries, including Zip64.
 * The central directory is trusted only as far as the file confirms it: entries must lie inside the file, deflate packs
 * at most 1032 bytes into one, and checksums are verified. Encrypted entries, other methods and multi-part archives are
 * rejected. */
#ifndef SDLF_FORMATS_ZIP_H
#define SDLF_FORMATS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <sdlf/status.h>

typedef struct zip_archive {
    const char *name;            /* for messages; borrowed */
    int file;                    /* descriptor, owned; -1: the archive is in memory: */
    const unsigned char *memory; /* borrowed */
    int64_t size;                /* bytes of it */
    unsigned char *directory;    /* the central directory, owned */
    size_t directory_size;
    int64_t count; /* of entries */
} zip_archive;

/* One file of the archive. */
typedef struct zip_entry {
    const char *name; /* in the archive's directory, not NUL-terminated */
    size_t name_length;
    int64_t at;           /* offset of its local header */
    int64_t stored, size; /* compressed and uncompressed bytes */
    uint32_t crc;
    bool deflated;
    const char *refused; /* why it cannot be read; NULL: it can */
} zip_entry;

/* Opens an archive, or wraps `size` bytes of memory (borrowed); `name` is kept, not copied. After a
 * failure there is nothing to close. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (file and byte),
 * SDLF_ERROR_MEMORY. */
sdlf_status zip_open(zip_archive *archive, const char *path);
sdlf_status zip_wrap(zip_archive *archive, const void *bytes, size_t size, const char *name);
void zip_close(zip_archive *archive);

/* Reads the directory entry at byte *at (start with 0), and advances *at; false: there is none. */
bool zip_next(const zip_archive *archive, size_t *at, zip_entry *entry);

/* Finds the entry of that name; false: there is none. The last of several is used, as by Python's zipfile. */
bool zip_find(const zip_archive *archive, const char *name, zip_entry *entry);

/* An entry's content, read sequentially. */
typedef struct zip_stream {
    const zip_archive *archive;
    zip_entry entry;
    char name[512]; /* "ARCHIVE: ENTRY", for messages */
    int64_t at;     /* byte of the archive to read next */
    int64_t left;   /* stored bytes not read yet */
    int64_t given;  /* bytes of content delivered */
    uint32_t crc;   /* of these */
    bool inflating; /* `zlib` is initialised */
    bool ended;     /* the end of the deflate stream was reached */
    z_stream zlib;
    unsigned char *buffer; /* owned */
} zip_stream;

/* Errors: SDLF_ERROR_FORMAT (an entry that cannot be read, or whose headers disagree), SDLF_ERROR_MEMORY. */
sdlf_status zip_stream_open(zip_stream *stream, const zip_archive *archive, const zip_entry *entry);
void zip_stream_close(zip_stream *stream);

/* Reads up to `count` bytes of a zip_stream's content; fewer only at its end, where its size and checksum have been
 * verified. */
sdlf_status zip_stream_read(void *stream, void *bytes, size_t count, size_t *found);

#endif
