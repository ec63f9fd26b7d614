/* SPDX-License-Identifier: MIT */
/* Training on samples that are read one by one: that of samples in memory. */
#include <string.h>

#include "framework/watched_training.h"

static sdlf_status read_one(void *context, int64_t index, void *to)
{
    const sdlf_dataset *data = context;
    size_t size = (size_t)(sdlf_tensor_bytes(&data->samples) / data->samples.shape.dim[0]);
    memcpy(to, (const char *)data->samples.data + (size_t)index * size, size);
    return SDLF_OK;
}

/* On the host and on a device, where batches are brought instead of drawn. */
static void training_is_that_from_memory(void)
{
    const char *const calculators[] = {"reference", "guarded"};
    sdlf_dataset memory = synthetic_dataset(50, 1);
    sdlf_dataset data = memory;
    data.samples.data = NULL;
    data.read = read_one;
    data.read_context = &memory;
    data.readers = 3;
    uint32_t first = 0;
    for (int i = 0; i < 3; i++) {
        watcher seen = {.calls = 0};
        sdlf_model *model = synthetic_model();
        sdlf_trainer_options options = options_on(calculators[i / 2], 8, &seen);
        CHECK_OK(train(model, i == 0 ? &memory : &data, &options));
        if (i == 0) first = sdlf_model_hash(model);
        CHECK_EQUAL(sdlf_model_hash(model), first);
        sdlf_model_free(model);
    }
    synthetic_release(&memory);
}

int main(void)
{
    RUN(training_is_that_from_memory);
    return test_summary();
}
