/* SPDX-License-Identifier: MIT */
/* A text data set of arbitrary bytes: an error that names the file, or tokens that are its characters. The first byte
 * selects the half and the length of samples. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const sdlf_dataset *read)
{
    const int32_t *label = read->labels.data;
    if (read->class_count < 2 || read->class_names == NULL) abort();
    for (int64_t i = 0; i < sdlf_tensor_count(&read->labels); i++)
        if (label[i] < 0 || label[i] >= read->class_count) abort();
    for (int i = 0; i < read->class_count; i++)
        if (read->class_names[i][0] == '\0') abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH], specification[MEMORY_FILE_PATH + 32];
    if (size == 0) return 0;
    int file = memory_file(path, data + 1, size - 1);
    snprintf(specification, sizeof specification, "text:%s,length=%d", path, data[0] / 2 + 1);
    sdlf_dataset *read;
    sdlf_status status = sdlf_dataset_open(&read, specification, data[0] % 2 == 0 ? SDLF_SPLIT_TRAIN : SDLF_SPLIT_TEST);
    if (status == SDLF_OK) check(read);
    if (status != SDLF_OK && (read != NULL || strstr(sdlf_error_message(), path) == NULL)) abort();
    sdlf_dataset_free(read);
    close(file);
    return 0;
}
