/* SPDX-License-Identifier: MIT */
/* The test harness: temporary files, and the location of real data sets. */
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROTATION = 8, PATH_SIZE = 4096 };

static char directory[PATH_SIZE / 2];
static pid_t directory_owner;

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *position)
{
    (void)info, (void)type, (void)position;
    return remove(path);
}

static void remove_directory(void)
{
    if (getpid() != directory_owner) return; /* a forked child */
    nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/sdlf-test-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(directory)) {
        printf("cannot make %s: %s\n", directory, strerror(errno));
        exit(1);
    }
    directory_owner = getpid();
    atexit(remove_directory);
}

static char *join(const char *folder, const char *name)
{
    static char path[ROTATION][PATH_SIZE];
    static int next;
    char *result = path[next++ % ROTATION];
    snprintf(result, PATH_SIZE, "%s/%s", folder, name);
    return result;
}

const char *test_path(const char *name)
{
    if (!*directory) make_directory();
    return join(directory, name);
}

void test_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    bool ok = file && fwrite(bytes, 1, count, file) == count;
    if (file && fclose(file) != 0) ok = false;
    if (!ok) printf("cannot write %s: %s\n", path, strerror(errno));
    test_check(ok, __FILE__, __LINE__, path);
}

void test_change_file(const char *path)
{
    FILE *file = fopen(path, "r+b");
    struct stat at;
    bool ok = file && fseek(file, -1, SEEK_END) == 0 && fputc('x', file) == 'x' && fflush(file) == 0 &&
              fstat(fileno(file), &at) == 0;
    if (ok) at.st_mtim.tv_sec += 5;
    ok = ok && futimens(fileno(file), (const struct timespec[2]){at.st_atim, at.st_mtim}) == 0;
    if (file && fclose(file) != 0) ok = false;
    test_check(ok, __FILE__, __LINE__, path);
}

const char *test_data(const char *name)
{
    const char *folder = getenv("SDLF_DATA");
    if (!folder || !*folder) return NULL;
    const char *path = join(folder, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

int test_count_files(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    for (struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) count += entry->d_name[0] != '.';
    if (list != NULL) closedir(list);
    return count;
}
