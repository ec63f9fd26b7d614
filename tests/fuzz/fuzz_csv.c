/* SPDX-License-Identifier: MIT */
/* A table on any bytes: an error with a message, or as many numbers and labels as it has rows. */
#include <stdlib.h>
#include <string.h>

#include "datasets/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int all = 0; all < 2; all++) {
        char *text = malloc(size + 1);
        sdlf_dataset *made = calloc(1, sizeof *made);
        if (text == NULL || made == NULL) abort();
        if (size > 0) memcpy(text, data, size);
        text[size] = '\0';
        const csv_options options = {.all = all == 1, .sample = SDLF_SCALAR};
        if (csv_take(made, text, size, "input", &options, SDLF_SPLIT_TRAIN) == SDLF_OK) {
            const int32_t *label = made->labels.data;
            for (int64_t i = 0; i < made->labels.shape.dim[0]; i++)
                if (label[i] < 0 || label[i] >= made->class_count) abort();
            const float *x = made->samples.data;
            for (int64_t i = 0; i < sdlf_tensor_count(&made->samples); i++)
                if (x[i] - x[i] != 0) abort();
        } else if (sdlf_error_message()[0] == '\0') {
            abort();
        }
        sdlf_dataset_free(made);
        free(text);
    }
    return 0;
}
