/* SPDX-License-Identifier: MIT */
/* See portable.h. */
#include "apps/system/portable.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>

const char *system_c_library_version(void)
{
    return gnu_get_libc_version();
}
#else
const char *system_c_library_version(void)
{
    return NULL;
}
#endif

#ifdef __linux__
#include <sys/mman.h>

FILE *system_open_writer(void *user, system_write *write)
{
    return fopencookie(user, "w", (cookie_io_functions_t){.write = write});
}

int system_memory_file(const char *name)
{
    return memfd_create(name, MFD_CLOEXEC);
}

bool system_is_memory_file(int file, const char *name)
{
    static const char begin[] = "/memfd:";
    char link[64], found[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length < (ssize_t)sizeof begin) return false;
    found[length] = '\0';
    return strncmp(found, begin, sizeof begin - 1) == 0 && strncmp(found + sizeof begin - 1, name, strlen(name)) == 0;
}

void system_execute_self(char *const *words)
{
    execv("/proc/self/exe", words);
}
#else
#include <mach-o/dyld.h>
#include <stdint.h>

typedef struct writer {
    void *user;
    system_write *write;
} writer;

static int write_some(void *cookie, const char *bytes, int count)
{
    const writer *w = cookie;
    return (int)w->write(w->user, bytes, (size_t)count);
}

static int close_writer(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *system_open_writer(void *user, system_write *write)
{
    writer *w = malloc(sizeof *w);
    if (!w) return NULL;
    *w = (writer){user, write};
    FILE *file = funopen(w, NULL, write_some, NULL, close_writer);
    if (!file) free(w);
    return file;
}

int system_memory_file(const char *name)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s-XXXXXX", folder ? folder : "/tmp", name);
    int file = mkstemp(path);
    if (file < 0) return -1;
    (void)unlink(path);
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    return file;
}

bool system_is_memory_file(int file, const char *name)
{
    char path[PATH_MAX];
    return fcntl(file, F_GETPATH, path) == 0 && strstr(path, name);
}

void system_execute_self(char *const *words)
{
    char path[PATH_MAX];
    uint32_t size = sizeof path;
    if (_NSGetExecutablePath(path, &size) == 0) execv(path, words);
}
#endif
