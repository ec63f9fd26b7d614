/* SPDX-License-Identifier: MIT */
/* Reading a file in pieces, with every failure reported. See map.h. */
#include "framework/formats/onnx/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

/* Reserves address space: pages that are zero until written, and take no memory until then. */
static sdlf_status reserve(onnx_map *map, const char *path, uint64_t size)
{
    void *memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return sdlf_fail(SDLF_ERROR_MEMORY, "cannot find room for '%s', which has %llu bytes: %s", path,
                         (unsigned long long)size, strerror(errno));
    map->bytes = memory;
    map->size = size;
    map->there = calloc((size_t)((size - 1) / PIECE + 1), 1);
    return map->there != NULL ? SDLF_OK : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
}

sdlf_status onnx_map_open(onnx_map *map, const char *path)
{
    *map = (onnx_map){.descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)}; /* does not block on a pipe */
    if (map->descriptor < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    sdlf_status status = SDLF_OK;
    struct stat about = {.st_size = 0};
    map->path = strdup(path);
    if (map->path == NULL) {
        close(map->descriptor);
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    }
    if (fstat(map->descriptor, &about) != 0)
        status = sdlf_fail(SDLF_ERROR_IO, "cannot inspect '%s': %s", path, strerror(errno));
    else if (!S_ISREG(about.st_mode))
        status = sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': it is %s", path,
                           S_ISDIR(about.st_mode) ? "a folder" : "not a regular file");
    else if (about.st_size > 0)
        status = reserve(map, path, (uint64_t)about.st_size);
    if (status == SDLF_OK) map->stamp = file_stamp_take(&about);
    if (status != SDLF_OK) onnx_map_close(map);
    return status;
}

void onnx_map_close(onnx_map *map)
{
    if (map->bytes != NULL) munmap(map->bytes, (size_t)map->size);
    if (map->path != NULL) close(map->descriptor); /* NULL: it was never opened */
    free(map->there);
    free(map->path);
    *map = (onnx_map){.descriptor = -1};
}

/* Reads all of it, or fails. */
static sdlf_status read_at(onnx_map *map, uint64_t offset, uint64_t size, void *out)
{
    uint64_t done = 0;
    while (done < size) {
        uint64_t rest = size - done, most = 1 << 30; /* some systems read less than 2 GiB at once */
        ssize_t got =
            pread(map->descriptor, (char *)out + done, (size_t)(rest < most ? rest : most), (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            map->error = got < 0 ? errno : 0;
            map->failed = true;
            return onnx_map_check(map);
        }
        done += (uint64_t)got;
    }
    return SDLF_OK;
}

sdlf_status onnx_map_need(onnx_map *map, const void *at, uint64_t size)
{
    if (size == 0) return SDLF_OK;
    uint64_t offset = (uint64_t)((const uint8_t *)at - map->bytes);
    for (uint64_t piece = offset / PIECE; piece <= (offset + size - 1) / PIECE; piece++) {
        if (map->there[piece]) continue;
        uint64_t first = piece * PIECE, length = map->size - first < PIECE ? map->size - first : PIECE;
        sdlf_status status = read_at(map, first, length, map->bytes + first);
        if (status != SDLF_OK) return status;
        map->there[piece] = 1;
    }
    return SDLF_OK;
}

sdlf_status onnx_map_read(onnx_map *map, const void *at, uint64_t size, void *out)
{
    return read_at(map, (uint64_t)((const uint8_t *)at - map->bytes), size, out);
}

void onnx_map_forget(onnx_map *map)
{
    if (map->bytes == NULL || madvise(map->bytes, (size_t)map->size, MADV_DONTNEED) != 0) return;
    memset(map->there, 0, (size_t)((map->size - 1) / PIECE + 1));
}

/* A file that has become shorter is reported when a read fails. */
static bool is_unchanged(const onnx_map *map)
{
    return map->path == NULL || file_stamp_holds(&map->stamp, map->descriptor);
}

sdlf_status onnx_map_check(const onnx_map *map)
{
    if (!map->failed && is_unchanged(map)) return SDLF_OK;
    if (!map->failed)
        return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': it has been changed since it was opened", map->path);
    if (map->error != 0) return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", map->path, strerror(map->error));
    return sdlf_fail(SDLF_ERROR_IO,
                     "cannot read '%s' to its end: it had %llu bytes when it was opened, and has become shorter",
                     map->path, (unsigned long long)map->size);
}
