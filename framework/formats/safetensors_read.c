/* SPDX-License-Identifier: MIT */
#include "framework/formats/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/formats/little_endian.h"

/* Files are read, not mapped: one that is truncated while being read gives an error instead of a signal. */
static sdlf_status read_at(const safetensors_file *file, void *bytes, size_t count, uint64_t offset)
{
    char *at = bytes;
    if (file->bytes != NULL) { /* read_header has checked the range */
        if (count > 0) memcpy(at, file->bytes + offset, count);
        return SDLF_OK;
    }
    while (count > 0) {
        ssize_t done = pread(file->descriptor, at, count, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", file->path, strerror(errno));
        if (done == 0)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file ended at byte %" PRIu64 " while it was read", file->path,
                             offset);
        at += done;
        count -= (size_t)done;
        offset += (uint64_t)done;
    }
    return SDLF_OK;
}

/* The file's size, and its header's length after checking it against that. */
static sdlf_status read_lengths(safetensors_file *file, uint64_t *size, uint64_t *header_length)
{
    struct stat information;
    if (file->bytes == NULL && fstat(file->descriptor, &information) != 0)
        return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", file->path, strerror(errno));
    if (file->bytes == NULL && !S_ISREG(information.st_mode))
        return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': it is %s", file->path,
                         S_ISDIR(information.st_mode) ? "a folder" : "not a regular file");
    if (file->bytes == NULL) file->stamp = file_stamp_take(&information);
    *size = file->bytes != NULL ? file->size : (uint64_t)information.st_size;
    if (*size < 10)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: a safetensors file has at least 10 bytes, this one has %" PRIu64,
                         file->path, *size);
    unsigned char bytes[8];
    sdlf_status status = read_at(file, bytes, sizeof bytes, 0);
    if (status != SDLF_OK) return status;
    *header_length = load_little_endian_64(bytes);
    if (*header_length > *size - 8 && bytes[0] == '{')
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: not a safetensors file: it begins as JSON does; a network file is for sdlf_network_read",
                         file->path);
    if (*header_length > *size - 8)
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s: not a safetensors file, or cut short: its first 8 bytes announce a header of %" PRIu64
                         " bytes, the file has %" PRIu64,
                         file->path, *header_length, *size);
    if (*header_length > SAFETENSORS_MAX_HEADER)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the header has %" PRIu64 " bytes; at most %d are read", file->path,
                         *header_length, SAFETENSORS_MAX_HEADER);
    return SDLF_OK;
}

static sdlf_status read_header(safetensors_file *file)
{
    uint64_t size = 0, length = 0;
    sdlf_status status = read_lengths(file, &size, &length);
    if (status != SDLF_OK) return status;
    char *text = malloc(length > 0 ? length : 1);
    if (text == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for a header of %" PRIu64 " bytes", file->path, length);
    status = read_at(file, text, length, 8);
    file->data_start = 8 + length;
    if (status == SDLF_OK)
        status = safetensors_header_parse(&file->header, text, length, size - file->data_start, file->path);
    free(text);
    return status;
}

sdlf_status safetensors_open(safetensors_file *file, const char *path)
{
    *file = (safetensors_file){.descriptor = -1};
    if (path == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "the path of a weights file is missing");
    file->path = strdup(path);
    if (file->path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for a path");
    /* without O_NONBLOCK, opening a pipe would wait for its writer */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    sdlf_status status = file->descriptor >= 0
                             ? read_header(file)
                             : sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    if (status != SDLF_OK) safetensors_close(file);
    return status;
}

sdlf_status safetensors_open_memory(safetensors_file *file, const void *bytes, size_t size, const char *name)
{
    *file = (safetensors_file){.descriptor = -1, .bytes = bytes, .size = size, .path = strdup(name)};
    if (file->path == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for a name");
    sdlf_status status = read_header(file);
    if (status != SDLF_OK) safetensors_close(file);
    return status;
}

void safetensors_close(safetensors_file *file)
{
    safetensors_header_release(&file->header);
    if (file->descriptor >= 0) close(file->descriptor);
    free(file->path);
    *file = (safetensors_file){.descriptor = -1};
}

sdlf_status safetensors_check_unchanged(const safetensors_file *file)
{
    if (file_stamp_holds(&file->stamp, file->descriptor)) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': it has been changed since it was opened", file->path);
}

sdlf_status safetensors_read_float32(const safetensors_file *file, const safetensors_entry *entry, float *values)
{
    return safetensors_read_part(file, entry, 0, (entry->end - entry->begin) / sdlf_dtype_size(entry->dtype), values);
}

sdlf_status safetensors_read_part(const safetensors_file *file, const safetensors_entry *entry, uint64_t first,
                                  uint64_t left, float *values)
{
    assert(sdlf_dtype_is_float(entry->dtype));
    size_t element = sdlf_dtype_size(entry->dtype);
    uint64_t offset = file->data_start + entry->begin + first * element;
    assert(first + left <= (entry->end - entry->begin) / element);
    if (entry->dtype == SDLF_FLOAT32 && host_is_little_endian())
        return read_at(file, values, (size_t)(left * element), offset);
    unsigned char buffer[32768];
    while (left > 0) {
        size_t count = left < sizeof buffer / element ? (size_t)left : sizeof buffer / element;
        sdlf_status status = read_at(file, buffer, count * element, offset);
        if (status != SDLF_OK) return status;
        if (!host_is_little_endian()) reverse_elements(buffer, element, count);
        sdlf_convert(SDLF_FLOAT32, values, entry->dtype, buffer, (int64_t)count);
        values += count;
        offset += count * element;
        left -= count;
    }
    return SDLF_OK;
}
