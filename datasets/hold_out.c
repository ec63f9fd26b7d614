/* SPDX-License-Identifier: MIT */
/* Holding out a fifth of the samples for testing, for arrays without a split of their own. */
#include "datasets/datasets_internal.h"

#include <string.h>

static bool is_in(int64_t sample, sdlf_split split)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)sample >> 8 * i);
    return sdlf_dataset_is_for_test((const char *)bytes, sizeof bytes) == (split == SDLF_SPLIT_TEST);
}

/* Move the rows of the half to the front; returns their number. */
static int64_t keep(sdlf_tensor *tensor, sdlf_split split)
{
    int64_t kept = 0, count = tensor->shape.dim[0];
    size_t row = (size_t)(sdlf_tensor_bytes(tensor) / count);
    char *data = tensor->data;
    for (int64_t i = 0; i < count; i++) {
        if (!is_in(i, split)) continue;
        if (data != NULL && kept < i) memcpy(data + (size_t)kept * row, data + (size_t)i * row, row);
        kept++;
    }
    sdlf_shape shape = tensor->shape;
    shape.dim[0] = kept;
    *tensor = sdlf_tensor_view(tensor->dtype, shape, data);
    return kept;
}

sdlf_status sdlf_dataset_hold_out(sdlf_dataset *dataset, sdlf_split split)
{
    int64_t count = dataset->samples.shape.dim[0];
    dataset->held_out = true;
    keep(&dataset->labels, split);
    if (keep(&dataset->samples, split) > 0) return SDLF_OK;
    return sdlf_fail(
        SDLF_ERROR_FORMAT,
        "%s: too few samples, %lld, to hold some out for testing; append ',all' to use all for both halves",
        dataset->name, (long long)count);
}

bool sdlf_dataset_takes_all(char *argument)
{
    char *comma = argument != NULL ? strrchr(argument, ',') : NULL;
    if (comma == NULL || strcmp(comma, ",all") != 0) return false;
    *comma = '\0';
    return true;
}
