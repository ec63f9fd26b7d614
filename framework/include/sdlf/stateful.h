/* SPDX-License-Identifier: MIT */
/* A model that is run step after step, each of which goes on from what the one before has left: a decoder with a cache
 * of keys and values (past_key_values.0.key -> present.0.key in ONNX files), or a recurrent network with its state.
 *
 *     sdlf_stateful_create(&decoder, "decoder.onnx", &options);
 *     for (...) {
 *         sdlf_stateful_prepare(decoder, &plan);      its sizes are this step's
 *         sdlf_plan_write(plan, "input_ids", ...);
 *         sdlf_stateful_run(decoder);
 *         sdlf_plan_read(plan, "logits", ...);
 *     }
 *
 * A state that grows, as output = Concat(input, new) along one axis, lies in memory that has room for `capacity` along
 * it. A step writes what is new behind what is there; nothing else of it is moved. There is one plan, which holds the
 * weights once: its steps are the same for every length, and before each run their shapes become those of the length at
 * hand. Inputs of an ONNX file that are open behind the batch, and for which no size is given, grow with the states: a mask
 * of attention covers the states' positions and the step's. How these sizes depend on the length is found when the plan
 * is made, from models for a few lengths. Where the relation is not linear, a model is made for each step, without its
 * weights.
 *
 * Threads: one at a time, as a plan.
 * Ownership: the calculator is borrowed until it is freed, and so is `user`; all else is copied.
 * Errors: those of sdlf_model_from_onnx and sdlf_plan_create; SDLF_ERROR_UNSUPPORTED where the steps of two lengths are
 * not the same ones, or a calculator is not in the host's memory. */
#ifndef SDLF_STATEFUL_H
#define SDLF_STATEFUL_H

#include <sdlf/formats.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_stateful sdlf_stateful;

typedef struct sdlf_stateful_options {
    sdlf_calculator *calculator; /* required; in the host's memory */
    sdlf_dtype dtype;            /* as of a plan */
    const sdlf_state *states;    /* required; their capacity is not looked at */
    int state_count;
    int64_t capacity; /* positions that states which grow have room for; 0: 1024 */
    /* Of an ONNX file: sizes of what it leaves open beside the length of the states and the batch, which is 1, as in
     * sdlf_onnx_options. */
    const sdlf_onnx_dimension *dimensions;
    int dimension_count;
    const sdlf_onnx_shape *shapes;
    int shape_count;
    void *reserved[4]; /* zero: room for members to come */
} sdlf_stateful_options;

/* From an ONNX file. Free with sdlf_stateful_free (accepts NULL). */
sdlf_status sdlf_stateful_create(sdlf_stateful **stateful, const char *path, const sdlf_stateful_options *options);
void sdlf_stateful_free(sdlf_stateful *stateful);

/* From models that the caller makes, each for a batch of 1 and for growing states of this length, at least 1. `weights`:
 * the parameters must have their values; otherwise only those of layers `value` are read. The model becomes the
 * library's. */
typedef sdlf_status sdlf_stateful_maker(void *user, int64_t length, bool weights, sdlf_model **model);
sdlf_status sdlf_stateful_create_with(sdlf_stateful **stateful, sdlf_stateful_maker *make, void *user,
                                      const sdlf_stateful_options *options);

/* Get ready for a step: *plan, always the same one, has its sizes; write its inputs that are no states. Errors:
 * SDLF_ERROR_SHAPE where there is no room for the step. */
sdlf_status sdlf_stateful_prepare(sdlf_stateful *stateful, sdlf_plan **plan);

/* Run it (and prepare it first, if nobody has). Outputs are there until the next step is prepared. */
sdlf_status sdlf_stateful_run(sdlf_stateful *stateful);

/* How many positions the states that grow have; of others, how many steps have been run. */
int64_t sdlf_stateful_length(const sdlf_stateful *stateful);
/* How many positions a step adds. */
int64_t sdlf_stateful_step(const sdlf_stateful *stateful);

/* Go back to that many positions: what came behind them is forgotten. 0: begin anew; states that do not grow are zeros
 * then, as at the beginning. */
sdlf_status sdlf_stateful_rewind(sdlf_stateful *stateful, int64_t length);

#ifdef __cplusplus
}
#endif
#endif
