/* SPDX-License-Identifier: MIT */
/* Opens a model whose weights stay in their file until a plan takes them. */
#include <sdlf/formats.h>

#include <stdlib.h>

#include "framework/formats/weights.h"
#include "framework/require.h"

typedef struct weights_left {
    safetensors_file file;
    safetensors_entry *entry; /* of each parameter */
} weights_left;

static sdlf_status read_pieces(void *self, int parameter, int64_t first, int64_t count, float *values)
{
    const weights_left *left = self;
    sdlf_status status =
        safetensors_read_part(&left->file, &left->entry[parameter], (uint64_t)first, (uint64_t)count, values);
    return status == SDLF_OK ? safetensors_check_unchanged(&left->file) : status;
}

static bool reads_pieces(const void *self, int parameter)
{
    (void)self, (void)parameter;
    return true;
}

static void close_file(void *self)
{
    weights_left *left = self;
    if (left->file.path != NULL) safetensors_close(&left->file);
    free(left->entry);
    free(left);
}

/* Performs all checks of loading, and records the location of each value. */
static sdlf_status describe(sdlf_model *model, weights_left *left)
{
    sdlf_status status = model_describe(model);
    if (status != SDLF_OK) return status;
    loaded_weights weights = {.file = &left->file};
    size_t count = (size_t)model->parameter_count + 1;
    weights.parameters = calloc(count, sizeof *weights.parameters);
    left->entry = calloc(count, sizeof *left->entry);
    if (weights.parameters == NULL || left->entry == NULL)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory loading it", left->file.path);
    if (status == SDLF_OK) status = weights_match(&weights, model);
    if (status == SDLF_OK) status = weights_read_metadata(&weights);
    for (int i = 0; i < model->parameter_count && status == SDLF_OK; i++)
        left->entry[i] = *weights.parameters[i].entry[0];
    if (status == SDLF_OK && weights.normalization.known) model->normalization = weights.normalization;
    if (status == SDLF_OK && weights.classes.count > 0) model_take_classes(model, &weights.classes);
    if (status == SDLF_OK) model->loss = weights.loss;
    if (status == SDLF_OK) model->huber_delta = weights.huber_delta;
    if (status == SDLF_OK) model->training_state = weights.training;
    model_release_classes(&weights.classes);
    free(weights.parameters);
    return status;
}

sdlf_status sdlf_model_open_to_take(sdlf_model **model, const char *path)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    sdlf_model *made = NULL;
    weights_left *left = calloc(1, sizeof *left);
    if (left == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    sdlf_status status = safetensors_open(&left->file, path);
    if (status == SDLF_OK) status = weights_open_network(&made, &left->file);
    if (status == SDLF_OK) status = describe(made, left);
    if (status != SDLF_OK) {
        close_file(left);
        sdlf_model_free(made);
        return status;
    }
    model_defer_values(
        made, (model_source){.read = read_pieces, .in_pieces = reads_pieces, .close = close_file, .file = left});
    *model = made;
    return SDLF_OK;
}
