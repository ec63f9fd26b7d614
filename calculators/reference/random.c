/* SPDX-License-Identifier: MIT */
/* random_uniform, random_normal: element e uses word e % 4 of group e / 4 of Philox(seed, ., stream, 0). */
#include "calculators/reference/reference.h"
#include "framework/operations/draws.h"

static sdlf_philox group_of(const sdlf_operation *operation, int64_t e)
{
    return sdlf_philox4x32(operation->random.seed, (uint64_t)e / 4, operation->random.stream, 0);
}

static void *element(const sdlf_tensor *y, int64_t e)
{
    return (char *)y->data + e * (int64_t)sdlf_dtype_size(y->dtype);
}

/* y[e] = low + (high - low) u(e), in float32, then converted */
sdlf_status random_uniform_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        uint32_t word = group_of(operation, e).word[e % 4];
        float value = sdlf_random_uniform_value(word, operation->random.a, operation->random.b);
        sdlf_convert(y->dtype, element(y, e), SDLF_FLOAT32, &value, 1);
    }
    return SDLF_OK;
}

/* y[e] = mean + deviation sqrt(-2 ln u1) (cos or sin)(2 pi u2): the cosine for even e, the sine for odd */
sdlf_status random_normal_reference(sdlf_calculator *calculator, const sdlf_operation *operation)
{
    (void)calculator;
    const sdlf_tensor *y = &operation->out[0];
    int64_t count = sdlf_tensor_count(y);
    for (int64_t e = 0; e < count; e++) {
        sdlf_philox group = group_of(operation, e);
        int64_t pair = e % 4 / 2 * 2;
        double value[2];
        sdlf_random_normal_pair(group.word[pair], group.word[pair + 1], (double)operation->random.a,
                                (double)operation->random.b, value);
        sdlf_convert(y->dtype, element(y, e), SDLF_FLOAT64, &value[e % 2], 1);
    }
    return SDLF_OK;
}
