/* SPDX-License-Identifier: MIT */
/* The file that a long run writes at its end. */
#include "apps/output/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <sdlf/formats.h>

#include "apps/output/number.h"
#include "apps/system/memory.h"
#include "apps/system/pipe.h"

/* The folder of a path; the caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return memory_copy_text(".");
    if (slash == path) return memory_copy_text("/");
    char *folder = memory_copy_text(path);
    folder[slash - path] = '\0';
    return folder;
}

/* The folder in which a file of that name is written: a link is followed, and its target replaced or created. */
static char *folder_behind(const char *path)
{
    enum { LINKS_MOST = 40 /* the limit of Linux */ };
    char *at = memory_copy_text(path);
    char target[4096];
    for (int links = 0; links < LINKS_MOST; links++) {
        ssize_t length = readlink(at, target, sizeof target - 1);
        if (length <= 0) break;
        target[length] = '\0';
        char *folder = folder_of(at);
        char *next = target[0] == '/' ? memory_copy_text(target) : memory_print("%s/%s", folder, target);
        free(folder);
        free(at);
        at = next;
    }
    char *folder = folder_of(at);
    free(at);
    return folder;
}

bool output_is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool output_is_stream(const char *path)
{
    struct stat at;
    return output_is_standard(path) || (stat(path, &at) == 0 && S_ISFIFO(at.st_mode));
}

sdlf_status output_file_check(const char *path)
{
    struct stat at;
    size_t length = strlen(path);
    if (output_is_stream(path))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: expected a file that can be replaced as a whole, found %s", path,
                         output_is_standard(path) ? "standard output (a file of that name is ./-)" : "a pipe");
    if (length == 0 || path[length - 1] == '/' || (stat(path, &at) == 0 && S_ISDIR(at.st_mode)))
        return sdlf_fail(SDLF_ERROR_IO, "%s: expected the name of a file, found a folder", path);
    return sdlf_can_write_file(path);
}

sdlf_status output_file_check_weights(const char *path)
{
    static const char *const others[] = {".onnx", ".json", ".c"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t end = strlen(others[i]);
        if (length <= end || strcmp(path + length - end, others[i]) != 0) continue;
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "'%s' does not look like weights, but a safetensors file would be written; 'sdlf export' "
                         "converts one to ONNX or C",
                         path);
    }
    return output_file_check(path);
}

sdlf_status output_file_write(const char *path, bool (*print)(FILE *file, const void *subject), const void *subject)
{
    memory_text text;
    bool opened = memory_text_open(&text), printed = opened && print(text.file, subject);
    bool whole = opened && memory_text_close(&text) && printed;
    sdlf_status status = SDLF_OK;
    fflush(stdout); /* earlier output comes first */
    if (!whole)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for what it will hold", path);
    else
        status = output_is_stream(path) ? pipe_write(path, text.text, text.length)
                                        : sdlf_write_file(path, text.text, text.length);
    free(text.text);
    return status;
}

sdlf_status output_file_check_space(const char *path, int64_t bytes)
{
    char *folder = folder_behind(path);
    struct statvfs at;
    int known = statvfs(folder, &at);
    free(folder);
    if (known != 0) return SDLF_OK;
    double free_bytes = (double)at.f_bavail * (double)at.f_frsize;
    if (free_bytes >= (double)bytes) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "%s: %s will be written, but %s are free there", path, number_bytes(bytes).text,
                     number_scaled(free_bytes, "B").text);
}

int64_t output_file_size(const char *path)
{
    struct stat at;
    return stat(path, &at) == 0 ? (int64_t)at.st_size : 0;
}
