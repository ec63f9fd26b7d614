/* SPDX-License-Identifier: MIT */
/* Weights and checkpoints: saved values are restored bitwise, even if a save is interrupted. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/formats/weights_network.h"

/* ---- what comes back ---- */

static void parameters_come_back(void)
{
    const char *path = test_path("weights.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2);
    CHECK(sdlf_model_hash(saved) != sdlf_model_hash(loaded));
    CHECK_OK(sdlf_model_save(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK_EQUAL(sdlf_model_hash(loaded), sdlf_model_hash(saved));
    CHECK(sdlf_model_normalization(loaded)->known);
    CHECK(sdlf_model_normalization(loaded)->mean == 0.1307f);
    CHECK(!sdlf_model_training_state(loaded)->present);
    CHECK(!sdlf_tensor_present(&sdlf_model_parameter(loaded, 0)->state[0]));
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
}

static void checkpoint_comes_back_bit_for_bit(void)
{
    const char *path = test_path("checkpoint.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2), *unbuilt = make_network("small", 3), *opened = NULL;
    CHECK_OK(sdlf_model_save_checkpoint(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK(same(saved, loaded));
    CHECK_OK(sdlf_model_load(unbuilt, path));
    CHECK(same(saved, unbuilt));
    CHECK_OK(sdlf_model_open(&opened, path));
    CHECK(opened != NULL && same(saved, opened));
    if (opened != NULL) {
        CHECK_TEXT(sdlf_model_name(opened), "small");
        CHECK_TEXT(sdlf_model_output_name(opened, 0), "class");
    }
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
    sdlf_model_free(unbuilt);
    sdlf_model_free(opened);
}

/* The parameters and the training metadata, without the state that only further training needs. */
static void a_model_to_run_leaves_the_states(void)
{
    const char *path = test_path("run.safetensors");
    sdlf_model *saved = make_trained(1), *opened = NULL;
    CHECK_OK(sdlf_model_save_checkpoint(saved, path));
    if (CHECK_OK(sdlf_model_open_to_run(&opened, path))) {
        CHECK_EQUAL(sdlf_model_hash(opened), sdlf_model_hash(saved));
        CHECK(sdlf_model_training_state(opened)->present);
        for (int i = 0; i < sdlf_model_parameter_count(opened); i++) {
            CHECK(!sdlf_tensor_present(&sdlf_model_parameter(opened, i)->state[0]));
        }
    }
    sdlf_model_free(saved);
    sdlf_model_free(opened);
}

/* Loading changes values where they are: plans point to them. States of an earlier training become zero. */
static void memory_stays_in_place(void)
{
    const char *path = test_path("in_place.safetensors");
    sdlf_model *model = make_trained(1), *other = make_built(2);
    const sdlf_parameter *parameter = sdlf_model_parameter(model, 0);
    const void *value = parameter->value.data, *state = parameter->state[1].data;
    CHECK_OK(sdlf_model_save(other, path));
    CHECK_OK(sdlf_model_load(model, path));
    CHECK(parameter->value.data == value && parameter->state[1].data == state);
    CHECK_EQUAL(((const float *)state)[0] == 0, 1);
    CHECK_EQUAL(sdlf_model_hash(model), sdlf_model_hash(other));
    CHECK(sdlf_model_normalization(model)->known); /* the file has none, so it stays */
    sdlf_model_free(model);
    sdlf_model_free(other);
}

static void odd_numbers_come_back(void)
{
    const char *path = test_path("odd.safetensors");
    sdlf_model *saved = make_trained(1), *loaded = make_built(2);
    float *values = sdlf_model_parameter(saved, 0)->value.data;
    values[0] = NAN, values[1] = -INFINITY, values[2] = -0.0f, values[3] = 1e-42f;
    sdlf_training_state *state = sdlf_model_training_state(saved);
    state->loss_sum = INFINITY;
    snprintf(state->data, sizeof state->data, "mnist (/d\xff)");
    CHECK_OK(sdlf_model_save_checkpoint(saved, path));
    CHECK_OK(sdlf_model_load(loaded, path));
    CHECK(same_tensor(&sdlf_model_parameter(saved, 0)->value, &sdlf_model_parameter(loaded, 0)->value));
    CHECK(isnan(sdlf_model_training_state(loaded)->loss_sum));
    CHECK_TEXT(sdlf_model_training_state(loaded)->data, "mnist (/d?)");
    sdlf_model_free(saved);
    sdlf_model_free(loaded);
}

/* ---- refusals to save ---- */

static void refuses_to_save(void)
{
    sdlf_model *model = make_network("small", 3), *broken = make_network("broken", -1);
    CHECK_FAILS(sdlf_model_save(model, test_path("x")), SDLF_ERROR_ARGUMENT,
                "model 'small' has no parameters to save yet");
    CHECK_FAILS(sdlf_model_save(broken, test_path("x")), SDLF_ERROR_ARGUMENT, "units");
    CHECK_FAILS(sdlf_model_load(broken, test_path("x")), SDLF_ERROR_ARGUMENT, "units");
    CHECK_FAILS(sdlf_model_save(NULL, test_path("x")), SDLF_ERROR_MEMORY, "");
    CHECK_OK(sdlf_model_build(model, 1));
    CHECK_FAILS(sdlf_model_save(model, "/dev/full"), SDLF_ERROR_IO, "No space left on device");
    CHECK_FAILS(sdlf_model_save(model, test_path("none/x")), SDLF_ERROR_IO, "No such file or directory");
    *sdlf_model_normalization(model) = (sdlf_normalization){.scale = INFINITY, .known = true};
    CHECK_FAILS(sdlf_model_save(model, test_path("x")), SDLF_ERROR_NUMERIC, "the normalisation must be finite");
    CHECK(access(test_path("x"), F_OK) != 0);
    sdlf_model_free(model);
    sdlf_model_free(broken);
}

/* Save checkpoints of two training runs alternately, for ever. */
static void save_for_ever(const char *path)
{
    sdlf_model *models[2] = {make_trained(1), make_trained(2)};
    for (int turn = 0;; turn ^= 1)
        if (sdlf_model_save_checkpoint(models[turn], path) != SDLF_OK) _exit(1);
}

static void killed_while_saving(void)
{
    const char *path = test_path("killed.safetensors");
    sdlf_model *first = make_trained(1), *second = make_trained(2), *loaded = make_built(3);
    CHECK_OK(sdlf_model_save_checkpoint(first, path));
    uint32_t random = 99;
    for (int round = 0; round < 30; round++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) save_for_ever(path);
        random = random * 1664525 + 1013904223;
        nanosleep(&(struct timespec){.tv_nsec = 2000000 + random % 8000000}, NULL);
        CHECK(child > 0 && kill(child, SIGKILL) == 0);
        int result = 0;
        CHECK(waitpid(child, &result, 0) == child && WIFSIGNALED(result));
        CHECK_OK(sdlf_model_load(loaded, path));
        CHECK(same(loaded, first) || same(loaded, second));
    }
    sdlf_model_free(first);
    sdlf_model_free(second);
    sdlf_model_free(loaded);
}

/* ---- memory: the framework's allocations; jansson's stay, since its parser loses bytes of a long string, or aborts,
 * when its buffer cannot grow ---- */

static sdlf_status save_and_open(void *model)
{
    const char *path = test_path("allocations.safetensors");
    sdlf_status status = sdlf_model_save_checkpoint(model, path);
    sdlf_model *opened = NULL;
    if (status == SDLF_OK) status = sdlf_model_open(&opened, path);
    sdlf_model_free(opened);
    return status;
}

/* A failed load leaves the model unchanged, whichever allocation fails. */
static void load_unchanged(const char *path)
{
    sdlf_model *model = make_built(1), *before = make_built(1);
    for (int64_t n = 1;; n++) {
        test_fail_allocation(n);
        sdlf_status status = sdlf_model_load(model, path);
        bool failed = test_allocation_failed();
        test_fail_allocation(0);
        if (status == SDLF_OK) {
            sdlf_model_free(model);
            if (!failed) break;
            model = make_built(1); /* the failure was survived: start afresh */
        } else {
            CHECK(same(model, before));
        }
    }
    sdlf_model_free(before);
}

static void every_allocation(void)
{
    sdlf_model *model = make_trained(1);
    test_every_allocation("save and open", save_and_open, model);
    const char *path = test_path("unchanged.safetensors");
    CHECK_OK(sdlf_model_save_checkpoint(model, path));
    load_unchanged(path);
    sdlf_model_free(model);
}

int main(void)
{
    RUN(parameters_come_back);
    RUN(checkpoint_comes_back_bit_for_bit);
    RUN(a_model_to_run_leaves_the_states);
    RUN(memory_stays_in_place);
    RUN(odd_numbers_come_back);
    RUN(refuses_to_save);
    RUN(killed_while_saving);
    RUN(every_allocation);
    return test_summary();
}
