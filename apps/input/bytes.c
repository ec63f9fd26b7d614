/* SPDX-License-Identifier: MIT */
/* Reading whole files into memory, and standard input in place of a file. */
#include "apps/input/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/system/pipe.h"
#include "apps/system/portable.h"

/* Reads up to `size` bytes; none: end of file. */
static sdlf_status read_some(int file, void *bytes, size_t size, size_t *found, const char *path)
{
    for (;;) {
        if (!pipe_wait_to_read(file)) return sdlf_fail(SDLF_ERROR_INTERRUPTED, "%s was not read to its end", path);
        ssize_t count = read(file, bytes, size);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        *found = count < 0 ? 0 : (size_t)count;
        if (count >= 0) return SDLF_OK;
        return sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", path,
                         errno == EISDIR ? "it is a folder" : strerror(errno));
    }
}

static sdlf_status read_all(int file, unsigned char **bytes, size_t *size, const char *path, size_t limit)
{
    size_t capacity = 0, found = 0;
    do {
        if (*size == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 65536;
            unsigned char *larger = realloc(*bytes, capacity);
            if (larger == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory reading '%s'", path);
            *bytes = larger;
        }
        sdlf_status status = read_some(file, *bytes + *size, capacity - *size, &found, path);
        if (status != SDLF_OK) return status;
        *size += found;
        if (*size > limit)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected at most %zu bytes, found more", path, limit);
    } while (found > 0);
    return SDLF_OK;
}

sdlf_status input_read(unsigned char **bytes, size_t *size, const char *path, size_t limit)
{
    *bytes = NULL;
    *size = 0;
    /* a named pipe is opened without waiting for its writer; the wait is below */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return sdlf_fail(SDLF_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
    sdlf_status status = read_all(file, bytes, size, path, limit);
    close(file);
    if (status == SDLF_OK) return SDLF_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}

#define FILE_NAME "sdlf-standard-input"

/* True if standard input was already read, by the file's name in the system: no state of our own. */
static bool is_taken(void)
{
    return system_is_memory_file(STDIN_FILENO, FILE_NAME);
}

static sdlf_status copy_to(int file)
{
    unsigned char bytes[65536];
    for (size_t found = 1; found > 0;) {
        sdlf_status status = read_some(STDIN_FILENO, bytes, sizeof bytes, &found, INPUT_STANDARD);
        if (status != SDLF_OK) return status;
        for (size_t done = 0; done < found;) {
            ssize_t count = write(file, bytes + done, found - done);
            if (count < 0 && errno != EINTR)
                return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for standard input: %s", strerror(errno));
            if (count > 0) done += (size_t)count;
        }
    }
    return SDLF_OK;
}

sdlf_status input_take_standard(const char **path)
{
    if (is_taken())
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "'-' is given for two inputs, but standard input can be read only once");
    int file = system_memory_file(FILE_NAME);
    if (file < 0) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for standard input: %s", strerror(errno));
    sdlf_status status = copy_to(file);
    if (status == SDLF_OK && dup2(file, STDIN_FILENO) < 0)
        status = sdlf_fail(SDLF_ERROR_IO, "cannot read standard input: %s", strerror(errno));
    close(file);
    if (status == SDLF_OK) *path = INPUT_STANDARD;
    return status;
}
