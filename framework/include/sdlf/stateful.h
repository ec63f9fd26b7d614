/* SPDX-License-Identifier: MIT */
/* A model that is run in steps, each of which continues from the state of the previous one: a decoder with a cache of
 * keys and values (past_key_values.0.key -> present.0.key in ONNX files), or a recurrent network with its state.
 *
 *     sdlf_stateful_create(&decoder, "decoder.onnx", &options);
 *     for (...) {
 *         sdlf_stateful_prepare(decoder, &plan);      gives the plan the sizes of this step
 *         sdlf_plan_write(plan, "input_ids", ...);
 *         sdlf_stateful_run(decoder);
 *         sdlf_plan_read(plan, "logits", ...);
 *     }
 *
 * A state that grows, as output = Concat(input, new) along one axis, is stored in memory for `capacity` positions along
 * that axis. A step appends its new positions; nothing else of the state is moved. There is one plan, which holds the
 * weights once: its steps are the same for every length, and before each run their shapes are set to those of the
 * current length. Inputs of an ONNX file with open dimensions besides the batch, for which no size is given, grow with
 * the states: an attention mask covers the positions of the states and of the step. How these sizes depend on the
 * length is determined when the plan is created, from models for a few lengths. If the relation is not linear, a model
 * without weights is created for each step.
 *
 * Threads: one at a time, as for a plan.
 * Ownership: the calculator and `user` are borrowed until sdlf_stateful_free; everything else is copied.
 * Errors: those of sdlf_model_from_onnx and sdlf_plan_create; SDLF_ERROR_UNSUPPORTED if two lengths need different plan
 * steps, or a calculator is not in the host's memory. */
#ifndef SDLF_STATEFUL_H
#define SDLF_STATEFUL_H

#include <sdlf/formats.h>
#include <sdlf/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_stateful sdlf_stateful;

typedef struct sdlf_stateful_options {
    sdlf_calculator *calculator; /* required; computes in the host's memory */
    sdlf_dtype dtype;            /* as in sdlf_plan_options */
    const sdlf_state *states;    /* required; their capacity is ignored */
    int state_count;
    int64_t capacity; /* positions for which growing states have memory; 0: 1024 */
    /* For an ONNX file: sizes of the dimensions that it leaves open, other than the length of the states and the batch,
     * which is 1; as in sdlf_onnx_options. */
    const sdlf_onnx_dimension *dimensions;
    int dimension_count;
    const sdlf_onnx_shape *shapes;
    int shape_count;
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_stateful_options;

/* Creates it from an ONNX file. Free with sdlf_stateful_free (accepts NULL). */
sdlf_status sdlf_stateful_create(sdlf_stateful **stateful, const char *path, const sdlf_stateful_options *options);
void sdlf_stateful_free(sdlf_stateful *stateful);

/* Creates it from models that the caller's function creates, each for a batch of 1 and for growing states of this
 * length, at least 1. `weights`: the parameters must have their values; otherwise only those of `value` layers are
 * read. The library takes ownership of the model. */
typedef sdlf_status sdlf_stateful_maker(void *user, int64_t length, bool weights, sdlf_model **model);
sdlf_status sdlf_stateful_create_with(sdlf_stateful **stateful, sdlf_stateful_maker *make, void *user,
                                      const sdlf_stateful_options *options);

/* Prepares a step: *plan, the same one each time, has the sizes of the step; write its inputs other than states.
 * Errors: SDLF_ERROR_SHAPE if the capacity does not suffice for the step. */
sdlf_status sdlf_stateful_prepare(sdlf_stateful *stateful, sdlf_plan **plan);

/* Runs the step, after preparing it if that has not been done. Outputs are valid until the next step is prepared. */
sdlf_status sdlf_stateful_run(sdlf_stateful *stateful);

/* The number of positions of the growing states; if no state grows, the number of steps run. */
int64_t sdlf_stateful_length(const sdlf_stateful *stateful);
/* The number of positions that a step adds. */
int64_t sdlf_stateful_step(const sdlf_stateful *stateful);

/* Goes back to that many positions and discards those behind them. 0: starts over; states that do not grow are then
 * zero, as at the beginning. */
sdlf_status sdlf_stateful_rewind(sdlf_stateful *stateful, int64_t length);

#ifdef __cplusplus
}
#endif
#endif
