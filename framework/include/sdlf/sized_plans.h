/* SPDX-License-Identifier: MIT */
/* Plans of one ONNX file for many sizes: a file that leaves height, width or the length of a sequence open is made a
 * model and a plan for the sizes that come, and those made last are kept.
 *
 * Each plan has weights of its own, taken from the file when it is made: `most` plans take `most` times their memory.
 *
 * Threads: one at a time, as a plan.
 * Ownership: the options' calculators are borrowed until it is freed; all else is copied.
 * Errors: those of sdlf_model_from_onnx and sdlf_plan_create, when a size comes for the first time; the other plans
 * stay good. */
#ifndef SDLF_SIZED_PLANS_H
#define SDLF_SIZED_PLANS_H

#include <sdlf/formats.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_sized_plans sdlf_sized_plans;

typedef struct sdlf_sized_plans_options {
    sdlf_calculator *calculator; /* required */
    sdlf_dtype dtype;            /* as of a plan */
    int most;                    /* plans that are kept; 0: 8 */
    void *reserved[4];           /* zero: room for members to come */
} sdlf_sized_plans_options;

/* The file is read when a plan is made; it is to stay what it is. */
sdlf_status sdlf_sized_plans_create(sdlf_sized_plans **plans, const char *path,
                                    const sdlf_sized_plans_options *options);
void sdlf_sized_plans_free(sdlf_sized_plans *plans);

/* *plan: for inputs of these shapes, batch and all, one that was kept or a new one, in the place of the least recently
 * used one where there are `most`. It is inference with a batch of 1 where the file fixes its first dimensions.
 * Borrowed until the next call. */
sdlf_status sdlf_sized_plans_get(sdlf_sized_plans *plans, const sdlf_onnx_shape *shapes, int count, sdlf_plan **plan);

/* How many plans have been made. */
int64_t sdlf_sized_plans_made(const sdlf_sized_plans *plans);

#ifdef __cplusplus
}
#endif
#endif
