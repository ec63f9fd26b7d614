/* SPDX-License-Identifier: MIT */
#include "datasets/sample_cache.h"

#include <stdlib.h>
#include <string.h>

#include "framework/formats/budget.h"

sdlf_status sample_cache_create(sample_cache *cache, const char *name, int64_t samples, int64_t size, int64_t bytes)
{
    int64_t room = bytes / size < samples ? bytes / size : samples;
    cache->kept = calloc((size_t)samples, sizeof *cache->kept);
    if (cache->kept == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", name);
    return room > 0 ? read_tensor_create(&cache->memory, SDLF_UINT8, sdlf_shape(room, size), name) : SDLF_OK;
}

void sample_cache_release(sample_cache *cache)
{
    sdlf_tensor_release(&cache->memory, NULL);
    free(cache->kept);
}

void sample_cache_keep(sample_cache *cache, int64_t sample, const uint8_t *bytes)
{
    int64_t room = sdlf_tensor_present(&cache->memory) ? cache->memory.shape.dim[0] : 0;
    if (atomic_load(&cache->used) >= room || atomic_load(&cache->kept[sample]) != NULL) return;
    int64_t place = atomic_fetch_add(&cache->used, 1);
    if (place >= room) return;
    int64_t size = cache->memory.shape.dim[1];
    uint8_t *to = (uint8_t *)cache->memory.data + place * size;
    memcpy(to, bytes, (size_t)size);
    atomic_store(&cache->kept[sample], to);
}

const uint8_t *sample_cache_find(const sample_cache *cache, int64_t sample)
{
    return atomic_load(&cache->kept[sample]);
}

void sample_cache_close_gaps(sample_cache *cache, const bool *is_read, int64_t samples)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < samples; i++)
        if (is_read[i]) atomic_store(&cache->kept[kept++], atomic_load(&cache->kept[i]));
}
