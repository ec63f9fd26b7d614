/* SPDX-License-Identifier: MIT */
/* Random inputs for the convolution lab. */
#include "apps/bench/conv/fill.h"

static void fill_random(void *numbers, sdlf_dtype dtype, int64_t count, uint64_t state)
{
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(state >> 40) * 0x1p-23 - 1;
        if (dtype == SDLF_FLOAT64) {
            ((double *)numbers)[i] = value;
        } else {
            ((float *)numbers)[i] = (float)value;
        }
    }
}

sdlf_status lab_fill(sdlf_calculator *calculator, sdlf_calculator *host, const sdlf_tensor *input, int64_t images,
                     uint64_t seed, sdlf_tensor *last)
{
    enum { PLACES = 61 };
    int64_t each = sdlf_tensor_count(input) / images, size = (int64_t)sdlf_dtype_size(input->dtype);
    sdlf_status status = sdlf_tensor_create(last, host, input->dtype, sdlf_shape(each + PLACES));
    if (status != SDLF_OK) return status;
    fill_random(last->data, input->dtype, each + PLACES, seed);
    for (int64_t n = 0; n < images && status == SDLF_OK; n++) {
        const char *from = (const char *)last->data + (n + 1 < images ? 1 + n % PLACES : 0) * size;
        status = calculator->type->upload(calculator, (char *)input->data + n * each * size, from, each * size);
    }
    return status == SDLF_OK ? calculator->type->synchronize(calculator) : status;
}
