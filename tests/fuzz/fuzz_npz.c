/* SPDX-License-Identifier: MIT */
/* An archive of arrays of arbitrary bytes: an error with a message, or samples and labels that are fully readable. */
#include <stdlib.h>
#include <string.h>

#include "datasets/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zip_archive archive;
    if (zip_wrap(&archive, data, size, "input") != SDLF_OK) return sdlf_error_message()[0] == '\0' ? abort(), 0 : 0;
    for (int half = 0; half < 4; half++) {
        sdlf_dataset *made = calloc(1, sizeof *made);
        if (made == NULL) abort();
        sdlf_status status = npz_take(made, &archive, NULL, NULL, half % 2 == 0 ? SDLF_SPLIT_TRAIN : SDLF_SPLIT_TEST,
                                      &(sdlf_dataset_options){.targets = half >= 2});
        if (status == SDLF_OK) {
            int64_t count = sdlf_tensor_bytes(&made->samples), sum = 0;
            const int32_t *label = made->labels.data;
            for (int64_t i = 0; i < count; i++) sum += ((const unsigned char *)made->samples.data)[i];
            if (count < 1 || sum > 255 * count) abort();
            for (int64_t i = 0; half < 2 && i < made->samples.shape.dim[0]; i++)
                if (label[i] < 0 || label[i] >= made->class_count) abort();
        } else if (sdlf_error_message()[0] == '\0') {
            abort();
        }
        sdlf_dataset_free(made);
    }
    zip_close(&archive);
    return 0;
}
