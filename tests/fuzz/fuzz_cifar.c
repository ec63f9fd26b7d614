/* SPDX-License-Identifier: MIT */
/* CIFAR folders with binary files of arbitrary bytes: an error that names the folder, or samples whose labels are
 * classes. The first byte selects the set, and whether its records or its class names follow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/dataset.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SETS = 2, RECORD = 3074 }; /* bytes of the longer of the two records */

static const struct {
    const char *name, *records, *names;
} set_of[SETS] = {{"cifar10", "test_batch.bin", "batches.meta.txt"}, {"cifar100", "test.bin", "fine_label_names.txt"}};

static char folder[] = "/tmp/sdlf-fuzz-XXXXXX", path[sizeof folder + 32];

static const char *path_of(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_files(void)
{
    for (int i = 0; i < SETS; i++) {
        unlink(path_of(set_of[i].records));
        unlink(path_of(set_of[i].names));
    }
    rmdir(folder);
}

static void write_file(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path_of(name), "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t records[2 * RECORD];
    static bool made;
    char specification[sizeof folder + 16];
    if (size == 0) return 0;
    if (!made && mkdtemp(folder) == NULL) abort();
    if (!made) atexit(remove_files);
    made = true;
    int set = data[0] & 1, names = data[0] >> 1 & 1;
    if (names) write_file(set_of[set].records, records, set == 0 ? RECORD - 1 : RECORD);
    if (!names) unlink(path_of(set_of[set].names));
    write_file(names ? set_of[set].names : set_of[set].records, data + 1, size - 1);

    sdlf_dataset *read;
    snprintf(specification, sizeof specification, "%s:%s", set_of[set].name, folder);
    if (sdlf_dataset_open(&read, specification, SDLF_SPLIT_TEST) != SDLF_OK) {
        if (read != NULL || strstr(sdlf_error_message(), folder) == NULL) abort();
        return 0;
    }
    const int32_t *label = read->labels.data;
    for (int64_t i = 0; i < read->labels.shape.dim[0]; i++)
        if (label[i] < 0 || label[i] >= read->class_count) abort();
    for (int i = 0; read->class_names != NULL && i < read->class_count; i++)
        if (read->class_names[i] == NULL) abort();
    sdlf_dataset_free(read);
    return 0;
}
