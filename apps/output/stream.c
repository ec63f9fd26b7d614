/* SPDX-License-Identifier: MIT */
/* A file that the library writes by name, where the name may be standard output or a pipe. */
#include "apps/output/stream.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/output/file.h"
#include "apps/system/memory.h"
#include "apps/system/pipe.h"

sdlf_status output_stream_check(const char *target)
{
    return output_is_stream(target) ? SDLF_OK : output_file_check(target);
}

sdlf_status output_stream_open(output_stream *s, const char *target)
{
    *s = (output_stream){.path = target, .target = target};
    if (!output_is_stream(target)) return SDLF_OK;
    const char *folder = getenv("TMPDIR");
    s->folder = memory_print("%s/sdlf-XXXXXX", folder && *folder ? folder : "/tmp");
    if (!mkdtemp(s->folder)) {
        sdlf_status status = sdlf_fail(SDLF_ERROR_IO, "cannot make the folder '%s': %s", s->folder, strerror(errno));
        free(s->folder);
        s->folder = NULL;
        return status;
    }
    s->path = s->staged = memory_print("%s/output", s->folder);
    return SDLF_OK;
}

static sdlf_status send(const output_stream *s)
{
    struct stat about;
    void *bytes = MAP_FAILED;
    int file = open(s->staged, O_RDONLY | O_CLOEXEC);
    bool there = file >= 0 && fstat(file, &about) == 0;
    size_t size = there ? (size_t)about.st_size : 0;
    if (size > 0) bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    sdlf_status status = there && (size == 0 || bytes != MAP_FAILED)
                             ? SDLF_OK
                             : sdlf_fail(SDLF_ERROR_IO, "cannot read '%s': %s", s->staged, strerror(errno));
    if (status == SDLF_OK) status = pipe_write(s->target, size > 0 ? bytes : "", size);
    if (bytes != MAP_FAILED) munmap(bytes, size);
    if (file >= 0) close(file);
    return status;
}

/* Also removes files that the library wrote beside it, such as the weights of a large model. */
static void remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0); /* fails for . and .., which are skipped */
    if (entries != NULL) closedir(entries);
    rmdir(folder);
}

sdlf_status output_stream_close(output_stream *s, sdlf_status status)
{
    if (!s->folder) return status;
    fflush(stdout); /* earlier output comes first */
    if (status == SDLF_OK) status = send(s);
    remove_folder(s->folder);
    free(s->staged);
    free(s->folder);
    *s = (output_stream){.path = NULL};
    return status;
}
