/* SPDX-License-Identifier: MIT */
/* Network files in JSON; docs/guides/network-files.md describes the format. */
#include <sdlf/formats.h>

#include <stdlib.h>
#include <string.h>

#include "framework/formats/json_text.h"
#include "framework/formats/network_graph.h"
#include "framework/formats/read_file.h"
#include "framework/model_internal.h"
#include "framework/require.h"

/* Longer files are rejected. */
enum { MAX_TEXT = 16 << 20 };

static sdlf_status parse_json(json_t **root, const network_text *file)
{
    json_text_error error;
    sdlf_status status = json_text_check(file->text, file->length);
    if (status != SDLF_OK) return sdlf_fail_context(status, "%s", file->origin);
    status = json_text_parse(root, file->text, file->length, &error);
    if (status == SDLF_ERROR_MEMORY) return sdlf_fail(status, "%s: out of memory parsing it", file->origin);
    if (status != SDLF_OK)
        return sdlf_fail(status, "%s:%d: not JSON: %s (column %d)", file->origin, error.line,
                         text_show(error.text).text, error.column);
    if (json_is_object(*root)) return SDLF_OK;
    return network_fail(file, NULL, "a network must be an object, found %s", network_show(*root).text);
}

static sdlf_status check_fields(const network_text *file, const json_t *root)
{
    static const char *const known[] = {"name", "input", "inputs", "layers", "outputs"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) found = found || strcmp(key, known[i]) == 0;
        if (!found)
            return network_fail(file, &(json_place){.key = key},
                                "unknown field '%s'; a network has name, input or inputs, layers, outputs",
                                text_show(key).text);
    }
    const json_t *name = json_object_get(root, "name");
    return name != NULL ? network_check_name(file, &(json_place){.key = "name"}, name, "a network") : SDLF_OK;
}

static sdlf_status read_graph(sdlf_model *model, const network_text *file, const json_t *root)
{
    network_graph graph = {.file = file, .model = model};
    sdlf_status status = network_graph_collect(&graph, root);
    for (int i = 0; i < graph.count && status == SDLF_OK; i++) status = network_graph_add_item(&graph, i);
    sdlf_model_set_origin(model, NULL);
    if (status == SDLF_OK) status = network_graph_add_outputs(&graph, json_object_get(root, "outputs"));
    if (status == SDLF_OK) status = model_infer(model);
    network_graph_release(&graph);
    return status;
}

sdlf_status sdlf_network_parse(sdlf_model **model, const char *text, size_t length, const char *origin)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(text);
    bool marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* a byte order mark, as some editors write */
    const network_text file = {.origin = origin != NULL ? origin : "network",
                               .text = marked ? text + 3 : text,
                               .length = marked ? length - 3 : length};
    if (length > MAX_TEXT)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the file has more than the %d bytes that are read", file.origin,
                         MAX_TEXT);
    json_t *root = NULL;
    sdlf_status status = parse_json(&root, &file);
    if (status == SDLF_OK) status = check_fields(&file, root);
    if (status == SDLF_OK) {
        sdlf_model *made = sdlf_model_create(json_string_value(json_object_get(root, "name")));
        status = made != NULL ? read_graph(made, &file, root)
                              : sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for a network", file.origin);
        if (status == SDLF_OK)
            *model = made;
        else
            sdlf_model_free(made);
    }
    json_decref(root);
    return status;
}

sdlf_status sdlf_network_read(sdlf_model **model, const char *path)
{
    SDLF_REQUIRE(model);
    *model = NULL;
    SDLF_REQUIRE(path);
    char *text;
    size_t length;
    sdlf_status status = read_file(&text, &length, path, MAX_TEXT);
    if (status != SDLF_OK) return status;
    status = sdlf_network_parse(model, text, length, path);
    free(text);
    return status;
}
