/* SPDX-License-Identifier: MIT */
/* A bounded cache of samples that are read on demand. It keeps the first ones; nothing is evicted. */
#ifndef SDLF_DATASETS_SAMPLE_CACHE_H
#define SDLF_DATASETS_SAMPLE_CACHE_H

#include <stdatomic.h>

#include <sdlf/tensor.h>

typedef struct sample_cache {
    sdlf_tensor memory;       /* (slots, bytes of a sample) uint8; absent: no slots */
    _Atomic int64_t used;     /* slots in use */
    _Atomic(uint8_t *) *kept; /* per sample: its slot; NULL: not cached */
} sample_cache;

/* Creates a cache of at most `bytes` for `samples` of `size` bytes each. Messages call the set `name`. Release also after a failure.
 * Errors: SDLF_ERROR_MEMORY. */
sdlf_status sample_cache_create(sample_cache *cache, const char *name, int64_t samples, int64_t size, int64_t bytes);
void sample_cache_release(sample_cache *cache);

/* Keeps a sample if a slot is free. Thread-safe. */
void sample_cache_keep(sample_cache *cache, int64_t sample, const uint8_t *bytes);

/* Returns the cached sample; NULL: not cached. */
const uint8_t *sample_cache_find(const sample_cache *cache, int64_t sample);

/* Removes those of `samples` whose flag is false. */
void sample_cache_close_gaps(sample_cache *cache, const bool *is_read, int64_t samples);

#endif
