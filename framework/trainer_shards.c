/* SPDX-License-Identifier: MIT */
/* Gathers optimizer states that are distributed over ranks for a checkpoint, which does not depend on ranks. */
#include <stdlib.h>
#include <string.h>

#include "framework/model_internal.h"
#include "framework/trainer_internal.h"

enum { STATES = 3 };

/* The number of elements of the largest part of `count` that a rank has. */
static int64_t largest_part(int ranks, int64_t count)
{
    int64_t most = 1;
    for (int r = 0; r < ranks; r++) {
        int64_t part = sdlf_communicator_shard(r + 1, ranks, count) - sdlf_communicator_shard(r, ranks, count);
        if (part > most) most = part;
    }
    return most;
}

/* On rank 0, allocates whole states in place of the parts, which are kept aside. */
static sdlf_status allocate_states(sdlf_trainer *trainer)
{
    sdlf_model *model = trainer->model;
    trainer->parts = calloc((size_t)model->parameter_count * STATES + 1, sizeof *trainer->parts);
    if (trainer->parts == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory for a list of states");
    for (int i = 0; i < model->parameter_count; i++) {
        for (int s = 0; s < STATES; s++) {
            sdlf_tensor *state = &model->parameters[i].state[s], whole;
            if (!sdlf_tensor_present(state)) continue;
            sdlf_status status = sdlf_tensor_create(&whole, NULL, SDLF_FLOAT32, model->parameters[i].spec.shape);
            if (status != SDLF_OK)
                return sdlf_fail_context(status, "a checkpoint's state of %s", model->parameters[i].name);
            trainer->parts[i * STATES + s] = *state;
            *state = whole;
        }
    }
    return SDLF_OK;
}

void sdlf_trainer_part_states(sdlf_trainer *trainer)
{
    sdlf_model *model = trainer->model;
    for (int i = 0; i < model->parameter_count * STATES && trainer->parts != NULL; i++) {
        sdlf_tensor *state = &model->parameters[i / STATES].state[i % STATES];
        if (!sdlf_tensor_present(&trainer->parts[i])) continue;
        sdlf_tensor_release(state, NULL);
        *state = trainer->parts[i];
    }
    free(trainer->parts);
    trainer->parts = NULL;
}

/* Gathers one state: every rank's part, padded to the largest, side by side in `all`. */
static sdlf_status gather_state(sdlf_trainer *trainer, int parameter, int state, float *mine, float *all)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    sdlf_model *model = trainer->model;
    const sdlf_tensor *whole = &model->parameters[parameter].state[state];
    const sdlf_tensor *part = trainer->parts != NULL ? &trainer->parts[parameter * STATES + state] : whole;
    int64_t count = sdlf_shape_count(model->parameters[parameter].spec.shape);
    int64_t most = largest_part(ranks->rank_count, count);
    memset(mine, 0, (size_t)most * sizeof *mine);
    memcpy(mine, part->data, (size_t)model_state_count(model, parameter) * sizeof *mine);
    sdlf_status status = ranks->type->gather(ranks, mine, most * (int64_t)sizeof *mine, all);
    for (int r = 0; r < ranks->rank_count && status == SDLF_OK && trainer->parts != NULL; r++) {
        int64_t first = sdlf_communicator_shard(r, ranks->rank_count, count);
        int64_t next = sdlf_communicator_shard(r + 1, ranks->rank_count, count);
        memcpy((float *)whole->data + first, all + r * most, (size_t)(next - first) * sizeof *all);
    }
    return status;
}

sdlf_status sdlf_trainer_gather_states(sdlf_trainer *trainer)
{
    sdlf_communicator *ranks = trainer->options.communicator;
    sdlf_model *model = trainer->model;
    int64_t most = 1;
    if (!trainer->options.shard_states || ranks == NULL) return SDLF_OK;
    for (int i = 0; i < model->parameter_count; i++) {
        int64_t part = largest_part(ranks->rank_count, sdlf_shape_count(model->parameters[i].spec.shape));
        if (part > most) most = part;
    }
    float *mine = malloc((size_t)most * sizeof *mine), *all = malloc((size_t)(most * ranks->rank_count) * sizeof *all);
    sdlf_status status = ranks->rank == 0 ? allocate_states(trainer) : SDLF_OK;
    if (status == SDLF_OK && (mine == NULL || all == NULL))
        status = sdlf_fail(SDLF_ERROR_MEMORY, "trainer: no memory to put optimizer states together for a checkpoint");
    status = sdlf_communicator_agree(ranks, status);
    for (int i = 0; i < model->parameter_count && status == SDLF_OK; i++)
        for (int s = 0; s < STATES && status == SDLF_OK; s++)
            if (sdlf_tensor_present(&model->parameters[i].state[s])) status = gather_state(trainer, i, s, mine, all);
    free(mine);
    free(all);
    if (status != SDLF_OK) sdlf_trainer_part_states(trainer);
    return status;
}
