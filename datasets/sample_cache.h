/* SPDX-License-Identifier: MIT */
/* A bounded cache of samples that are read when they are needed: those that came first are kept. */
#ifndef SDLF_DATASETS_SAMPLE_CACHE_H
#define SDLF_DATASETS_SAMPLE_CACHE_H

#include <stdatomic.h>

#include <sdlf/tensor.h>

typedef struct sample_cache {
    sdlf_tensor memory;       /* (room, bytes of a sample) uint8; absent: there is no room */
    _Atomic int64_t used;     /* of its places */
    _Atomic(uint8_t *) *kept; /* of each sample: its place; NULL: it has none */
} sample_cache;

/* For `samples` of `size` bytes each, in at most `bytes`. `name` stands for the set in messages. Release also after a failure. Errors:
 * SDLF_ERROR_MEMORY. */
sdlf_status sample_cache_create(sample_cache *cache, const char *name, int64_t samples, int64_t size, int64_t bytes);
void sample_cache_release(sample_cache *cache);

/* Keep a sample, if there is room: any thread may. */
void sample_cache_keep(sample_cache *cache, int64_t sample, const uint8_t *bytes);

/* NULL: it is not kept. */
const uint8_t *sample_cache_find(const sample_cache *cache, int64_t sample);

/* Leave out those of `samples` whose flag is false. */
void sample_cache_close_gaps(sample_cache *cache, const bool *is_read, int64_t samples);

#endif
