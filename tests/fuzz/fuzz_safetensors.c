/* SPDX-License-Identifier: MIT */
/* The reader of weights files on arbitrary bytes: an error that changes nothing, or a model that can be saved. */
#include <stdlib.h>
#include <unistd.h>

#include <sdlf/formats.h>
#include <sdlf/layers.h>

#include "framework/formats/safetensors.h"
#include "tests/fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An accepted file must be consistent: every tensor is within the file. */
static void check_entries(const char *path, size_t size)
{
    safetensors_file file;
    if (safetensors_open(&file, path) != SDLF_OK) return;
    for (size_t i = 0; i < file.header.count; i++) {
        const safetensors_entry *entry = &file.header.entries[i];
        if (entry->begin > entry->end || file.data_start + entry->end > size || entry->name == NULL) abort();
    }
    safetensors_close(&file);
}

/* Open the file's own network: loading it once more changes nothing, and it can be saved. */
static void open_own_network(const char *path)
{
    sdlf_model *model;
    if (sdlf_model_open(&model, path) != SDLF_OK) {
        if (model != NULL) abort();
        return;
    }
    uint32_t hash = sdlf_model_hash(model);
    if (sdlf_model_load(model, path) != SDLF_OK || sdlf_model_hash(model) != hash) abort();
    if (sdlf_model_save_checkpoint(model, "/dev/null") != SDLF_OK) abort();
    sdlf_model_free(model);
}

/* Load into a fixed network; a failure leaves it unchanged. */
static void load_into_ours(const char *path)
{
    sdlf_model *model = sdlf_model_create("ours");
    sdlf_node x = sdlf_input(model, "x", SDLF_FLOAT32, sdlf_shape(3));
    sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = "fc", .units = 2});
    if (sdlf_model_build(model, 1) != SDLF_OK) abort();
    uint32_t hash = sdlf_model_hash(model);
    if (sdlf_model_load(model, path) != SDLF_OK && sdlf_model_hash(model) != hash) abort();
    sdlf_model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int file = memory_file(path, data, size);
    check_entries(path, size);
    open_own_network(path);
    load_into_ours(path);
    close(file);
    return 0;
}
