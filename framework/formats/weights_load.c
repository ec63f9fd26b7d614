/* SPDX-License-Identifier: MIT */
/* Loading a model: everything is read and checked in separate memory before the model is modified. */
#include <sdlf/formats.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/text.h"
#include "framework/formats/training_json.h"
#include "framework/formats/weights.h"
#include "framework/require.h"
#include "framework/saved_error.h"

/* ---- reading ---- */

/* Reads into separate memory, or, with `blank` parameters, directly into theirs. */
static sdlf_status read_values(loaded_weights *weights, const sdlf_model *model, bool blank)
{
    for (int i = 0; i < model->parameter_count; i++) {
        for (int slot = 0; slot < WEIGHTS_SLOTS; slot++) {
            const safetensors_entry *entry = weights->parameters[i].entry[slot];
            if (entry == NULL) continue;
            size_t size = (size_t)sdlf_tensor_bytes(&model->parameters[i].value);
            float *values = blank && slot == 0 ? model->parameters[i].value.data : malloc(size > 0 ? size : 1);
            if (values == NULL)
                return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for %zu bytes of tensor '%s'",
                                 weights->file->path, size, text_show(entry->name).text);
            weights->parameters[i].values[slot] = values;
            sdlf_status status = safetensors_read_float32(weights->file, entry, values);
            if (status != SDLF_OK) return status;
        }
    }
    return SDLF_OK;
}

static sdlf_status read_loss(loaded_weights *weights, const char *name)
{
    for (int i = 0; i < SDLF_LOSS_COUNT; i++) {
        if (strcmp(name, sdlf_loss_names[i]) != 0) continue;
        weights->loss = (sdlf_loss)i;
        return SDLF_OK;
    }
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: the loss in its metadata: expected mse, mae, huber or bce_with_logits, found '%s'",
                     weights->file->path, text_show(name).text);
}

static sdlf_status read_huber_delta(loaded_weights *weights, const char *number)
{
    char *end = NULL;
    weights->huber_delta = strtof(number, &end);
    if (end != number && *end == '\0' && weights->huber_delta >= 1e-6f && weights->huber_delta <= 1e6f) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the delta of huber in its metadata: expected 1e-6 to 1e6, found '%s'",
                     weights->file->path, text_show(number).text);
}

sdlf_status weights_read_metadata(loaded_weights *weights)
{
    const safetensors_header *header = &weights->file->header;
    const char *normalization = safetensors_metadata(header, WEIGHTS_NORMALIZATION);
    const char *classes = safetensors_metadata(header, WEIGHTS_CLASSES);
    const char *loss = safetensors_metadata(header, WEIGHTS_LOSS);
    const char *delta = safetensors_metadata(header, WEIGHTS_HUBER_DELTA);
    const char *training = safetensors_metadata(header, WEIGHTS_TRAINING);
    sdlf_status status = SDLF_OK;
    if (normalization != NULL)
        status = normalization_json_read(&weights->normalization, normalization, weights->file->path);
    if (classes != NULL && status == SDLF_OK)
        status = classes_json_read(&weights->classes, classes, weights->file->path);
    if (loss != NULL && status == SDLF_OK) status = read_loss(weights, loss);
    if (delta != NULL && status == SDLF_OK) status = read_huber_delta(weights, delta);
    if (training != NULL && status == SDLF_OK)
        status = training_json_read(&weights->training, training, weights->file->path);
    return status;
}

/* ---- transfer to the model ---- */

static int state_count(const sdlf_model *model)
{
    int count = 0;
    for (int i = 0; i < model->parameter_count; i++)
        for (int state = 0; state < WEIGHTS_STATES; state++)
            if (sdlf_tensor_present(&model->parameters[i].state[state]) && state >= count) count = state + 1;
    return count;
}

/* Creates the states that the file has. Existing ones keep their memory, since plans may use them. */
static sdlf_status make_states(sdlf_model *model, int wanted)
{
    int present = state_count(model);
    if (wanted <= present) return SDLF_OK;
    sdlf_saved_error error;
    sdlf_save_error(&error, sdlf_model_require_states(model, wanted));
    if (error.status != SDLF_OK) (void)sdlf_model_require_states(model, present); /* frees what was created */
    return sdlf_restore_error(&error);
}

static void take_over(sdlf_model *model, loaded_weights *weights)
{
    for (int i = 0; i < model->parameter_count; i++) {
        sdlf_parameter *parameter = &model->parameters[i];
        for (int slot = 0; slot < WEIGHTS_SLOTS; slot++) {
            sdlf_tensor *tensor = slot == 0 ? &parameter->value : &parameter->state[slot - 1];
            const float *values = weights->parameters[i].values[slot];
            if (!sdlf_tensor_present(tensor) || values == tensor->data) continue;
            size_t size = (size_t)sdlf_tensor_bytes(tensor);
            if (values != NULL)
                memcpy(tensor->data, values, size);
            else
                memset(tensor->data, 0, size); /* a state of an earlier training */
        }
    }
    model_note_change(model);
    if (weights->normalization.known) model->normalization = weights->normalization;
    if (weights->classes.count > 0) model_take_classes(model, &weights->classes);
    model->loss = weights->loss;
    model->huber_delta = weights->huber_delta;
    model->training_state = weights->training;
}

static void release(loaded_weights *weights, const sdlf_model *model, bool blank)
{
    for (int i = 0; i < model->parameter_count; i++)
        for (int slot = blank ? 1 : 0; slot < WEIGHTS_SLOTS; slot++) free(weights->parameters[i].values[slot]);
    model_release_classes(&weights->classes);
    free(weights->parameters);
}

/* Leaves the optimizer states in the file. */
static void drop_states(loaded_weights *weights, const sdlf_model *model)
{
    for (int i = 0; i < model->parameter_count; i++)
        for (int slot = 1; slot < WEIGHTS_SLOTS; slot++) weights->parameters[i].entry[slot] = NULL;
    weights->state_count = 0;
}

/* Loads into parameters that have values, or, with `blank`, into ones that are only described: these are allocated once
 * the file is known to fill them, and are lost after a failure. */
static sdlf_status load(sdlf_model *model, const safetensors_file *file, bool blank, bool with_states)
{
    loaded_weights weights = {.file = file};
    weights.parameters = calloc((size_t)model->parameter_count + 1, sizeof *weights.parameters);
    if (weights.parameters == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory loading it", file->path);
    sdlf_status status = weights_match(&weights, model);
    if (status == SDLF_OK && !with_states) drop_states(&weights, model);
    if (status == SDLF_OK) status = weights_read_metadata(&weights);
    if (status == SDLF_OK && blank) status = model_allocate(model, NULL);
    if (status == SDLF_OK) status = read_values(&weights, model, blank);
    if (status == SDLF_OK) status = make_states(model, weights.state_count);
    if (status == SDLF_OK) take_over(model, &weights);
    release(&weights, model, blank);
    return status;
}

/* Loads into a model that is built now if necessary; after a failure it is unchanged. If some parameters have values
 * already, all are allocated first, and keep their values until the file is known to be good. */
static sdlf_status build_and_load(sdlf_model *model, const safetensors_file *file, bool with_states)
{
    if (model->built) return load(model, file, false, with_states);
    int valued = model_valued_count(model);
    sdlf_status status = model_describe(model);
    if (status == SDLF_OK && valued > 0) status = model_allocate(model, NULL);
    if (status == SDLF_OK) status = load(model, file, valued == 0, with_states);
    if (status != SDLF_OK) model_truncate_parameters(model, valued);
    return status;
}

sdlf_status sdlf_model_load(sdlf_model *model, const char *path)
{
    if (model == NULL) return sdlf_model_status(NULL);
    SDLF_REQUIRE(path);
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    safetensors_file file;
    status = safetensors_open(&file, path);
    if (status != SDLF_OK) return status;
    status = build_and_load(model, &file, true);
    safetensors_close(&file);
    return status;
}

sdlf_status weights_open_network(sdlf_model **model, const safetensors_file *file)
{
    const char *network = safetensors_metadata(&file->header, WEIGHTS_NETWORK);
    if (network == NULL)
        return sdlf_fail(
            SDLF_ERROR_FORMAT,
            "%s: the file does not describe its network (there is no '%s' in its metadata): name the network too, or "
            "load it into an existing one",
            file->path, WEIGHTS_NETWORK);
    char origin[512];
    snprintf(origin, sizeof origin, "%s (its network)", file->path);
    return sdlf_network_parse(model, network, strlen(network), origin);
}

/* Creates the model of an open file, and closes the file. */
static sdlf_status make_model(sdlf_model **model, safetensors_file *file, bool with_states)
{
    sdlf_model *made = NULL;
    sdlf_status status = weights_open_network(&made, file);
    if (status == SDLF_OK) status = build_and_load(made, file, with_states);
    safetensors_close(file);
    if (status == SDLF_OK)
        *model = made;
    else
        sdlf_model_free(made);
    return status;
}

static sdlf_status open_file(sdlf_model **model, const char *path, bool with_states)
{
    safetensors_file file;
    sdlf_status status = safetensors_open(&file, path);
    return status == SDLF_OK ? make_model(model, &file, with_states) : status;
}

sdlf_status weights_open_memory(sdlf_model **model, const void *bytes, size_t size, const char *name)
{
    safetensors_file file;
    sdlf_status status = safetensors_open_memory(&file, bytes, size, name);
    return status == SDLF_OK ? make_model(model, &file, true) : status;
}

sdlf_status sdlf_model_open(sdlf_model **model, const char *path)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    return open_file(model, path, true);
}

sdlf_status sdlf_model_open_to_run(sdlf_model **model, const char *path)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    return open_file(model, path, false);
}
