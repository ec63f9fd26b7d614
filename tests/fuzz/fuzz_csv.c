/* SPDX-License-Identifier: MIT */
/* A CSV table of arbitrary bytes: an error with a message, or one sample and label per row, where labels are classes,
 * float targets or absent. */
#include <stdlib.h>
#include <string.h>

#include "datasets/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const csv_options ways[] = {
    {.sample = {0}},
    {.all = true, .sample = {0}},
    {.all = true, .targets = true, .sample = {0}},
    {.all = true, .targets = true, .label = "1..2", .sample = {0}},
    {.unlabelled = true, .sample = {1, {2}}},
};

static void check(const sdlf_dataset *made, const csv_options *way)
{
    const int32_t *label = made->labels.data;
    bool classes = !way->targets && !way->unlabelled;
    for (int64_t i = 0; classes && i < made->labels.shape.dim[0]; i++)
        if (label[i] < 0 || label[i] >= made->class_count) abort();
    const float *x = made->samples.data;
    for (int64_t i = 0; i < sdlf_tensor_count(&made->samples); i++)
        if (x[i] - x[i] != 0) abort();
    if (way->unlabelled && made->class_count != 1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char *text = malloc(size + 1);
        sdlf_dataset *made = calloc(1, sizeof *made);
        if (text == NULL || made == NULL) abort();
        if (size > 0) memcpy(text, data, size);
        text[size] = '\0';
        if (csv_take(made, text, size, "input", &ways[i], SDLF_SPLIT_TRAIN) == SDLF_OK)
            check(made, &ways[i]);
        else if (sdlf_error_message()[0] == '\0')
            abort();
        sdlf_dataset_free(made);
        free(text);
    }
    return 0;
}
