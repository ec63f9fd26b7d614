/* Rows of channels that TMA cannot read, because they are no multiple of 8: a copy of them with zeros behind each row. */
#ifndef SDLF_CALCULATORS_CUDA_ENGINE_PACK_H
#define SDLF_CALCULATORS_CUDA_ENGINE_PACK_H

#include "calculators/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The next multiple of 8. */
static inline int64_t engine_packed_channels(int64_t channels)
{
    return (channels + 7) / 8 * 8;
}

/* Bytes of the copy of `rows` rows of 16-bit elements, a multiple of 64; 0: none is needed. */
static inline int64_t engine_pack_bytes(int64_t channels, int64_t rows)
{
    return channels % 8 == 0 ? 0 : (rows * engine_packed_channels(channels) * 2 + 63) / 64 * 64;
}

/* Where a copy is needed, make it at `to` and let *rows_data point to it. */
sdlf_status engine_pack(const cuda_calculator *calculator, void **data, void *to, int64_t channels, int64_t rows);

#ifdef __cplusplus
}
#endif
#endif
