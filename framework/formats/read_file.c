/* SPDX-License-Identifier: MIT */
#include "framework/formats/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends the rest of the file to `bytes`, which grows; on failure the caller still frees it. */
static sdlf_status read_rest(int descriptor, char **bytes, size_t *count, const char *path, size_t limit)
{
    size_t capacity = 0;
    for (;;) {
        if (*count + 1 >= capacity) {
            capacity = capacity > 0 ? 2 * capacity : 16384;
            char *larger = realloc(*bytes, capacity);
            if (larger == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory reading '%s'", path);
            *bytes = larger;
        }
        ssize_t done = read(descriptor, *bytes + *count, capacity - 1 - *count);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", path,
                             errno == EISDIR ? "it is a folder" : strerror(errno));
        (*bytes)[*count + (size_t)done] = '\0';
        if (done == 0) return SDLF_OK;
        *count += (size_t)done;
        if (*count > limit)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file has more than the %zu bytes that are read", path, limit);
    }
}

sdlf_status read_file(char **bytes, size_t *count, const char *path, size_t limit)
{
    *bytes = NULL;
    *count = 0;
    if (path == NULL) return sdlf_fail(SDLF_ERROR_ARGUMENT, "the path of a file to read is missing");
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    sdlf_status status = read_rest(descriptor, bytes, count, path, limit);
    close(descriptor);
    if (status == SDLF_OK) return SDLF_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}
