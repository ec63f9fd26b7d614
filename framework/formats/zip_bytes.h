/* SPDX-License-Identifier: MIT */
/* Shared by the files that read ZIP archives: bytes of the archive, and the numbers in them. */
#ifndef SDLF_FORMATS_ZIP_BYTES_H
#define SDLF_FORMATS_ZIP_BYTES_H

#include "framework/formats/zip.h"

/* Reads `count` bytes at offset `at`. Errors: SDLF_ERROR_FORMAT (past the archive's end), SDLF_ERROR_IO. */
sdlf_status zip_bytes_at(const zip_archive *archive, int64_t at, void *bytes, size_t count);

/* SDLF_ERROR_FORMAT: "ARCHIVE: byte N: WHAT". */
sdlf_status zip_fail(const zip_archive *archive, int64_t byte, const char *what);

static inline unsigned zip_u16(const unsigned char *bytes)
{
    return (unsigned)bytes[0] | (unsigned)bytes[1] << 8;
}

static inline uint32_t zip_u32(const unsigned char *bytes)
{
    return (uint32_t)zip_u16(bytes) | (uint32_t)zip_u16(bytes + 2) << 16;
}

/* Numbers of up to 63 bits; larger ones become negative. */
static inline int64_t zip_i64(const unsigned char *bytes)
{
    return (int64_t)((uint64_t)zip_u32(bytes) | (uint64_t)zip_u32(bytes + 4) << 32);
}

#endif
