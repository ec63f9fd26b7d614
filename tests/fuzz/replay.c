/* SPDX-License-Identifier: MIT */
/* A main for fuzz targets without libFuzzer: runs every file of the given folders and every given file, and, if the
 * target has its own mutator, some mutations of each. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#if defined SDLF_FUZZ_MUTATOR
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t size_a, const uint8_t *b, size_t size_b, uint8_t *to,
                                 size_t most, unsigned seed);

enum { MORE = 4096 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most)
{
    (void)data;
    (void)most;
    return size;
}

/* Run mutations of the file; they are reproducible. */
static void replay_changes(const uint8_t *data, size_t size)
{
    uint8_t *changed = malloc(size + MORE), *again = malloc(size + MORE);
    if (!changed || !again) abort();
    for (unsigned seed = 1; seed <= 2; seed++) {
        memcpy(changed, data, size);
        memcpy(again, data, size);
        size_t length = LLVMFuzzerCustomMutator(changed, size, size + MORE, seed);
        if (LLVMFuzzerCustomMutator(again, size, size + MORE, seed) != length || memcmp(changed, again, length))
            abort();
        LLVMFuzzerTestOneInput(changed, length);
    }
    size_t length = LLVMFuzzerCustomCrossOver(data, size, changed, size, again, size + MORE, 1);
    if (length > 0) LLVMFuzzerTestOneInput(again, length);
    free(changed);
    free(again);
}
#else
static void replay_changes(const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
}
#endif

/* Returns false, after reporting why, if the file cannot be read. */
static bool replay_file(const char *path)
{
    bool ok = false;
    unsigned char *data = NULL;
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) goto done;
    long size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0) goto done;
    data = malloc(size > 0 ? (size_t)size : 1); /* exactly the size: a read past the end is found by the sanitizer */
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) goto done;
    LLVMFuzzerTestOneInput(data, (size_t)size);
    replay_changes(data, (size_t)size);
    ok = true;
done:
    if (!ok) fprintf(stderr, "%s: %s\n", path, strerror(errno));
    free(data);
    if (file) fclose(file);
    return ok;
}

/* Returns how many files were run, or -1 when one could not be read. */
static int replay_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOTDIR ? (replay_file(path) ? 1 : -1) : 0;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) && count >= 0;) {
        if (entry->d_name[0] == '.') continue;
        char file[4096];
        int length = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        count = length < (int)sizeof file && replay_file(file) ? count + 1 : -1;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay_folder(argv[i]);
        if (count < 0) return 1;
        total += count;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 77;
}
