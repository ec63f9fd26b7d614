/* SPDX-License-Identifier: MIT */
/* The directory of a ZIP archive. See zip.h. */
#include "framework/formats/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/zip_bytes.h"

enum {
    END = 22,                  /* bytes of the end record, without its comment */
    END64 = 56,                /* of Zip64's */
    LOCATOR = 20,              /* of the locator of Zip64's end record */
    CENTRAL = 46,              /* of a directory entry, without names */
    MOST_COMMENT = 65535,      /* of the archive comment */
    MOST_DIRECTORY = 64 << 20, /* bytes */
};

sdlf_status zip_fail(const zip_archive *archive, int64_t byte, const char *what)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %" PRId64 ": %s", archive->name, byte, what);
}

sdlf_status zip_bytes_at(const zip_archive *archive, int64_t at, void *bytes, size_t count)
{
    if (at < 0 || (int64_t)count > archive->size - at)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: byte %" PRId64 ": expected %zu more bytes, found the archive's end",
                         archive->name, at, count);
    if (archive->file < 0) {
        if (count > 0) memcpy(bytes, archive->memory + at, count);
        return SDLF_OK;
    }
    for (size_t done = 0; done < count;) {
        ssize_t part = pread(archive->file, (char *)bytes + done, count - done, (off_t)(at + (int64_t)done));
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", archive->name, strerror(errno));
        if (part == 0) return zip_fail(archive, at + (int64_t)done, "the file became shorter while it was read");
        done += (size_t)part;
    }
    return SDLF_OK;
}

/* ---- locating the directory ---- */

typedef struct directory_place {
    int64_t at, size, count;
} directory_place;

/* The end record is the last one, followed only by a comment: found by searching backwards. */
static sdlf_status find_end(const zip_archive *archive, int64_t *at, unsigned char record[END])
{
    int64_t most = END + MOST_COMMENT, tail = archive->size < most ? archive->size : most;
    unsigned char *bytes = malloc((size_t)tail + 1);
    if (bytes == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", archive->name);
    sdlf_status status = zip_bytes_at(archive, archive->size - tail, bytes, (size_t)tail);
    int64_t i = tail - END;
    while (status == SDLF_OK && i >= 0 &&
           !(memcmp(bytes + i, "PK\5\6", 4) == 0 && i + END + zip_u16(bytes + i + 20) == tail))
        i--;
    if (status == SDLF_OK && i < 0)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: not a ZIP archive, as .npz files are, or cut short: no end record",
                           archive->name);
    if (status == SDLF_OK) memcpy(record, bytes + i, END);
    *at = archive->size - tail + i;
    free(bytes);
    return status;
}

/* Zip64's end record, if values of the older one are at their limit. */
static sdlf_status find_end64(const zip_archive *archive, int64_t end, directory_place *place)
{
    unsigned char locator[LOCATOR] = {0}, record[END64] = {0};
    sdlf_status status = zip_bytes_at(archive, end - LOCATOR, locator, LOCATOR);
    if (status == SDLF_OK && memcmp(locator, "PK\6\7", 4) != 0)
        status = zip_fail(archive, end - LOCATOR, "expected Zip64's locator");
    if (status != SDLF_OK) return status;
    int64_t at = zip_i64(locator + 8);
    status = zip_bytes_at(archive, at, record, END64);
    if (status == SDLF_OK && memcmp(record, "PK\6\6", 4) != 0)
        status = zip_fail(archive, at, "expected Zip64's end record");
    if (status == SDLF_OK)
        *place =
            (directory_place){.at = zip_i64(record + 48), .size = zip_i64(record + 40), .count = zip_i64(record + 32)};
    return status;
}

static sdlf_status find_directory(const zip_archive *archive, directory_place *place)
{
    unsigned char record[END] = {0};
    int64_t end = 0;
    sdlf_status status = find_end(archive, &end, record);
    if (status != SDLF_OK) return status;
    if (zip_u16(record + 4) != zip_u16(record + 6) || zip_u16(record + 8) != zip_u16(record + 10))
        return zip_fail(archive, end, "an archive in several parts");
    *place = (directory_place){.at = zip_u32(record + 16), .size = zip_u32(record + 12), .count = zip_u16(record + 8)};
    if (place->at == UINT32_MAX || place->size == UINT32_MAX || place->count == UINT16_MAX)
        status = find_end64(archive, end, place);
    if (status != SDLF_OK) return status;
    if (place->at < 0 || place->size < 0 || place->size > archive->size - place->at || place->size > MOST_DIRECTORY)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: byte %" PRId64 ": a directory of %" PRId64 " bytes at byte %" PRId64
                         " does not fit the archive of %" PRId64,
                         archive->name, end, place->size, place->at, archive->size);
    return SDLF_OK;
}

/* ---- entries ---- */

/* Reads the Zip64 values of fields at their limit: in this order, from the extra field of type 1. */
static bool take_wide(zip_entry *entry, const unsigned char *extra, size_t length)
{
    int64_t *const number[3] = {&entry->size, &entry->stored, &entry->at};
    while (length >= 4) {
        size_t size = zip_u16(extra + 2), used = 0;
        if (size > length - 4) return false;
        for (int i = 0; zip_u16(extra) == 1 && i < 3; i++) {
            if (*number[i] != UINT32_MAX) continue;
            if (size - used < 8) return false;
            *number[i] = zip_i64(extra + 4 + used);
            used += 8;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return true;
}

bool zip_next(const zip_archive *archive, size_t *at, zip_entry *entry)
{
    const unsigned char *bytes = archive->directory + *at;
    size_t left = archive->directory_size - *at;
    if (left < CENTRAL || memcmp(bytes, "PK\1\2", 4) != 0) return false;
    size_t name = zip_u16(bytes + 28), extra = zip_u16(bytes + 30), comment = zip_u16(bytes + 32);
    if (left - CENTRAL < name + extra + comment) return false;
    unsigned method = zip_u16(bytes + 10);
    *entry = (zip_entry){
        .name = (const char *)bytes + CENTRAL,
        .name_length = name,
        .at = zip_u32(bytes + 42),
        .stored = zip_u32(bytes + 20),
        .size = zip_u32(bytes + 24),
        .crc = zip_u32(bytes + 16),
        .deflated = method == 8,
    };
    if (!take_wide(entry, bytes + CENTRAL + name, extra)) return false;
    if ((zip_u16(bytes + 8) & 1) != 0) entry->refused = "it is encrypted";
    if (method != 0 && method != 8) entry->refused = "it is compressed with a method other than deflate";
    if (entry->at < 0 || entry->stored < 0 || entry->size < 0 || entry->stored > archive->size - entry->at)
        entry->refused = "it is not inside the archive";
    if (entry->refused == NULL && entry->size > (entry->deflated ? 1032 * entry->stored : entry->stored))
        entry->refused = "its size is more than its bytes can be unpacked to";
    *at += CENTRAL + name + extra + comment;
    return true;
}

bool zip_find(const zip_archive *archive, const char *name, zip_entry *entry)
{
    bool found = false;
    size_t at = 0;
    for (zip_entry next; zip_next(archive, &at, &next);) {
        if (next.name_length != strlen(name) || memcmp(next.name, name, next.name_length) != 0) continue;
        *entry = next;
        found = true;
    }
    return found;
}

static sdlf_status take_directory(zip_archive *archive)
{
    directory_place place = {0};
    sdlf_status status = find_directory(archive, &place);
    if (status != SDLF_OK) return status;
    archive->directory = malloc((size_t)place.size + 1);
    if (archive->directory == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", archive->name);
    archive->directory_size = (size_t)place.size;
    status = zip_bytes_at(archive, place.at, archive->directory, (size_t)place.size);
    if (status != SDLF_OK) return status;
    size_t at = 0;
    for (zip_entry entry; zip_next(archive, &at, &entry);) archive->count++;
    if (at == archive->directory_size && archive->count == place.count) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: byte %" PRId64 ": expected entry %" PRId64 " of %" PRId64
                     " in the archive's directory, found something else",
                     archive->name, place.at + (int64_t)at, archive->count, place.count);
}

sdlf_status zip_open(zip_archive *archive, const char *path)
{
    struct stat about;
    *archive = (zip_archive){.name = path, .file = open(path, O_RDONLY | O_CLOEXEC)};
    if (archive->file < 0 || fstat(archive->file, &about) != 0) {
        sdlf_status status = sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
        zip_close(archive);
        return status;
    }
    archive->size = (int64_t)about.st_size;
    sdlf_status status = S_ISREG(about.st_mode)
                             ? take_directory(archive)
                             : sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': it is not a regular file", path);
    if (status != SDLF_OK) zip_close(archive);
    return status;
}

sdlf_status zip_wrap(zip_archive *archive, const void *bytes, size_t size, const char *name)
{
    *archive = (zip_archive){.name = name, .file = -1, .memory = bytes, .size = (int64_t)size};
    sdlf_status status = take_directory(archive);
    if (status != SDLF_OK) zip_close(archive);
    return status;
}

void zip_close(zip_archive *archive)
{
    if (archive->file >= 0) close(archive->file);
    free(archive->directory);
    *archive = (zip_archive){.file = -1};
}
