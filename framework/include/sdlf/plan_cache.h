/* SPDX-License-Identifier: MIT */
/* Plans of one ONNX file for many input sizes: a file may leave height, width or sequence length open. A model and a
 * plan are created for each size that is requested, and the most recently used plans are kept.
 *
 * Each plan has its own weights, read from the file when it is created: `most` plans need `most` times their memory.
 *
 * Threads: one at a time, as for a plan.
 * Ownership: the options' calculators are borrowed until sdlf_plan_cache_free; everything else is copied.
 * Errors: those of sdlf_model_from_onnx and sdlf_plan_create, when a size is first requested; the other plans remain
 * valid. */
#ifndef SDLF_PLAN_CACHE_H
#define SDLF_PLAN_CACHE_H

#include <sdlf/formats.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_plan_cache sdlf_plan_cache;

typedef struct sdlf_plan_cache_options {
    sdlf_calculator *calculator; /* required */
    sdlf_dtype dtype;            /* as in sdlf_plan_options */
    int most;                    /* the largest number of plans to keep; 0: 8 */
    void *reserved[4];           /* zero; reserved for new members */
} sdlf_plan_cache_options;

/* The file is read whenever a plan is created, and must not change. */
sdlf_status sdlf_plan_cache_create(sdlf_plan_cache **plans, const char *path, const sdlf_plan_cache_options *options);
void sdlf_plan_cache_free(sdlf_plan_cache *plans);

/* Returns in *plan the plan for inputs of these shapes, batch included: one that was kept, or a new one, which replaces
 * the least recently used if there are `most`. It is an inference plan, with a batch of 1 if the file fixes its first
 * dimensions. Borrowed until the next call. */
sdlf_status sdlf_plan_cache_get(sdlf_plan_cache *plans, const sdlf_onnx_shape *shapes, int count, sdlf_plan **plan);

/* The number of plans created so far. */
int64_t sdlf_plan_cache_made(const sdlf_plan_cache *plans);

#ifdef __cplusplus
}
#endif
#endif
