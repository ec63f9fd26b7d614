/* SPDX-License-Identifier: MIT */
/* The network as JSON: one line per input or layer, without defaults, for reading and editing by people. */
#include <sdlf/formats.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/formats/network_options.h"
#include "framework/formats/text.h"
#include "framework/input_layer.h"
#include "framework/model_internal.h"
#include "framework/require.h"

/* A growing text. */
typedef struct text_buffer {
    char *text;
    size_t length, capacity;
} text_buffer;

static sdlf_status out_of_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory writing a network");
}

static sdlf_status append(text_buffer *buffer, const char *text)
{
    size_t length = strlen(text);
    if (buffer->length + length + 1 > buffer->capacity) {
        size_t capacity = 2 * (buffer->length + length) + 1024;
        char *larger = realloc(buffer->text, capacity);
        if (larger == NULL) return out_of_memory();
        buffer->text = larger;
        buffer->capacity = capacity;
    }
    memcpy(buffer->text + buffer->length, text, length + 1);
    buffer->length += length;
    return SDLF_OK;
}

/* "BEFORE VALUE", VALUE on one line; takes the reference to `value`, which may be NULL when out of memory. */
static sdlf_status append_json(text_buffer *buffer, const char *before, json_t *value)
{
    char *text = value != NULL ? json_text_print(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9), NULL) : NULL;
    json_decref(value);
    if (text == NULL) return out_of_memory();
    sdlf_status status = append(buffer, before);
    if (status == SDLF_OK) status = append(buffer, text);
    free(text);
    return status;
}

static bool is_input(const sdlf_model *model, int position)
{
    return sdlf_model_layer(model, position)->type == &sdlf_input_layer_class;
}

/* "NAME", or "NAME:OUTPUT" for an output other than the first. */
static json_t *reference_json(const sdlf_model *model, sdlf_node node)
{
    const char *name = sdlf_model_layer(model, node.layer)->name;
    return node.output == 0 ? json_string(name) : json_sprintf("%s:%d", name, node.output);
}

/* True if the layer's input is the default, so that "inputs" can be omitted. */
static bool takes_the_one_before(const sdlf_model *model, int position, int leading)
{
    if (sdlf_model_layer_input_count(model, position) != 1) return false;
    sdlf_node node = sdlf_model_layer_input(model, position, 0);
    return node.output == 0 && node.layer == (position == leading ? 0 : position - 1);
}

static bool add_inputs(json_t *object, const sdlf_model *model, int position)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int i = 0; i < sdlf_model_layer_input_count(model, position) && ok; i++)
        ok = json_array_append_new(list, reference_json(model, sdlf_model_layer_input(model, position, i))) == 0;
    return json_object_set_new(object, "inputs", list) == 0 && ok;
}

/* " weight bias " as a list. */
static bool add_frozen(json_t *object, const char *names)
{
    json_t *list = NULL;
    bool ok = true;
    for (const char *at = names; ok && at != NULL && at[1] != '\0'; at = strchr(at + 1, ' ')) {
        if (list == NULL) list = json_array();
        ok = json_array_append_new(list, json_stringn(at + 1, strcspn(at + 1, " "))) == 0;
    }
    if (list == NULL && ok) return true;
    return json_object_set_new(object, "frozen", list) == 0 && ok;
}

/* One input or layer; the first `leading` of the model are inputs outside the list of layers. */
static json_t *item_json(const sdlf_model *model, int position, int leading)
{
    const sdlf_layer *layer = sdlf_model_layer(model, position);
    json_t *object = json_object();
    bool ok = object != NULL;
    if (position >= leading) ok = ok && json_object_set_new(object, "type", json_string(layer->type->name)) == 0;
    ok = ok && json_object_set_new(object, "name", json_string(layer->name)) == 0;
    if (!is_input(model, position) && !takes_the_one_before(model, position, leading))
        ok = ok && add_inputs(object, model, position);
    ok = ok && network_write_options(object, layer->type, layer->options);
    if (ok) ok = add_frozen(object, model->layers[position].frozen);
    if (ok) return object;
    json_decref(object);
    return NULL;
}

static sdlf_status append_inputs(text_buffer *buffer, const sdlf_model *model, int leading)
{
    if (leading == 1) {
        sdlf_status status = append_json(buffer, ",\n  \"input\": ", item_json(model, 0, leading));
        return status == SDLF_OK ? append(buffer, ",\n") : status;
    }
    sdlf_status status = append(buffer, ",\n  \"inputs\": [\n");
    for (int i = 0; i < leading && status == SDLF_OK; i++)
        status = append_json(buffer, i > 0 ? ",\n    " : "    ", item_json(model, i, leading));
    return status == SDLF_OK ? append(buffer, "\n  ],\n") : status;
}

/* True if the outputs are the default: one, named "output", from the last layer. */
static bool has_default_output(const sdlf_model *model)
{
    if (sdlf_model_output_count(model) != 1 || strcmp(sdlf_model_output_name(model, 0), "output") != 0) return false;
    sdlf_node node = sdlf_model_output(model, 0);
    return node.layer == sdlf_model_layer_count(model) - 1 && node.output == 0;
}

static sdlf_status append_outputs(text_buffer *buffer, const sdlf_model *model)
{
    if (has_default_output(model)) return SDLF_OK;
    json_t *outputs = json_object();
    bool ok = outputs != NULL;
    for (int i = 0; i < sdlf_model_output_count(model) && ok; i++)
        ok = json_object_set_new(outputs, sdlf_model_output_name(model, i),
                                 reference_json(model, sdlf_model_output(model, i))) == 0;
    if (ok) return append_json(buffer, ",\n  \"outputs\": ", outputs);
    json_decref(outputs);
    return out_of_memory();
}

static sdlf_status check_name(const char *name)
{
    if (name[0] == '\0' || strlen(name) > NETWORK_MAX_NAME || !text_is_utf8(name))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "the name '%s' does not fit in a network file: expected 1 to %d bytes of UTF-8",
                         text_show(name).text, NETWORK_MAX_NAME);
    return SDLF_OK;
}

/* Checks that all names can be written, and that the file format can express the model. */
static sdlf_status check_model(const sdlf_model *model, int leading)
{
    sdlf_status status = sdlf_model_status(model);
    if (status != SDLF_OK) return status;
    if (leading == 0 || leading == sdlf_model_layer_count(model))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "network '%s': only one that has an input first, and layers, can be written",
                         sdlf_model_name(model));
    status = check_name(sdlf_model_name(model));
    for (int i = 0; i < sdlf_model_layer_count(model) && status == SDLF_OK; i++)
        status = check_name(sdlf_model_layer(model, i)->name);
    for (int i = 0; i < sdlf_model_output_count(model) && status == SDLF_OK; i++) {
        status = check_name(sdlf_model_output_name(model, i));
        if (status == SDLF_OK && sdlf_model_output_is_length(model, i))
            status = sdlf_fail(SDLF_ERROR_UNSUPPORTED,
                               "output '%s' is the length of another one, which network files cannot hold",
                               text_show(sdlf_model_output_name(model, i)).text);
    }
    return status;
}

sdlf_status sdlf_network_write(const sdlf_model *model, char **text)
{
    SDLF_REQUIRE(text);
    *text = NULL;
    if (model == NULL) return sdlf_model_status(NULL);
    int leading = 0, count = model != NULL ? sdlf_model_layer_count(model) : 0;
    while (leading < count && is_input(model, leading)) leading++;
    sdlf_status status = check_model(model, leading);
    if (status != SDLF_OK) return status;
    text_buffer buffer = {0};
    status = append_json(&buffer, "{\n  \"name\": ", json_string(sdlf_model_name(model)));
    if (status == SDLF_OK) status = append_inputs(&buffer, model, leading);
    if (status == SDLF_OK) status = append(&buffer, "  \"layers\": [\n");
    for (int i = leading; i < count && status == SDLF_OK; i++)
        status = append_json(&buffer, i > leading ? ",\n    " : "    ", item_json(model, i, leading));
    if (status == SDLF_OK) status = append(&buffer, "\n  ]");
    if (status == SDLF_OK) status = append_outputs(&buffer, model);
    if (status == SDLF_OK) status = append(&buffer, "\n}\n");
    if (status == SDLF_OK)
        *text = buffer.text;
    else
        free(buffer.text);
    return status;
}
