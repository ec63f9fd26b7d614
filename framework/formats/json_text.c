/* SPDX-License-Identifier: MIT */
#include "framework/formats/json_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/budget.h"
#include "framework/formats/json_reader.h"
#include "framework/formats/text.h"
#include "framework/json_cost.h"
#include "framework/machine/size.h"

sdlf_status json_text_check(const char *text, size_t length)
{
    read_budget budget;
    int64_t bytes = 0;
    for (size_t i = 0; i < length; i++) bytes += json_cost(text[i]);
    sdlf_status status = read_budget_make(&budget, (int64_t)length, 0);
    if (status != SDLF_OK || read_budget_take(&budget, bytes)) return status;
    return sdlf_fail_context(read_budget_fail(&budget), "its JSON becomes %s", size_show(bytes).text);
}

enum { DEPTH_MOST = 500 };

/* ---- words, lists and objects ---- */

static json_t *read_string_value(json_reader *r)
{
    char *text = json_read_string(r, "a string");
    json_t *value = text != NULL ? json_made(r, json_string_nocheck(text)) : NULL;
    free(text);
    return value;
}

static json_t *read_word(json_reader *r)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(r->end - r->at) < length || memcmp(r->at, words[i], length) != 0) continue;
        r->at += length;
        return i == 0 ? json_true() : i == 1 ? json_false() : json_null();
    }
    return json_expected(r, "a value");
}

static json_t *read_value(json_reader *r);

static void read_elements(json_reader *r, json_t *list)
{
    if (json_take(r, ']')) return;
    do {
        json_t *value = read_value(r);
        if (value == NULL) return;
        if (json_array_append_new(list, value) != 0) {
            r->status = SDLF_ERROR_MEMORY;
            return;
        }
    } while (json_take(r, ','));
    if (!json_take(r, ']')) json_expected(r, "',' or ']'");
}

static void read_member(json_reader *r, json_t *object)
{
    json_skip_space(r);
    const char *begin = r->at;
    char *key = json_read_string(r, "a key in quotes");
    if (key != NULL && json_object_get(object, key) != NULL) {
        r->at = begin;
        json_refuse(r, "the key '%s' occurs twice in an object", text_show(key).text);
    }
    if (r->status == SDLF_OK && !json_take(r, ':')) json_expected(r, "':'");
    json_t *value = r->status == SDLF_OK ? read_value(r) : NULL;
    if (value != NULL && json_object_set_new_nocheck(object, key, value) != 0) r->status = SDLF_ERROR_MEMORY;
    free(key);
}

static void read_members(json_reader *r, json_t *object)
{
    if (json_take(r, '}')) return;
    do {
        read_member(r, object);
    } while (r->status == SDLF_OK && json_take(r, ','));
    if (r->status == SDLF_OK && !json_take(r, '}')) json_expected(r, "',' or '}'");
}

static json_t *read_inside(json_reader *r)
{
    bool object = *r->at == '{';
    if (r->depth == DEPTH_MOST) return json_refuse(r, "lists and objects are nested more than %d deep", DEPTH_MOST);
    json_t *value = json_made(r, object ? json_object() : json_array());
    if (value == NULL) return NULL;
    r->at++;
    r->depth++;
    (object ? read_members : read_elements)(r, value);
    r->depth--;
    if (r->status == SDLF_OK) return value;
    json_decref(value);
    return NULL;
}

/* NULL after a failure, which r->status records. */
static json_t *read_value(json_reader *r)
{
    json_skip_space(r);
    char first = r->at < r->end ? *r->at : '\0';
    if (first == '{' || first == '[') return read_inside(r);
    if (first == '"') return read_string_value(r);
    if (first == '-' || (first >= '0' && first <= '9')) return json_read_number(r);
    return read_word(r);
}

sdlf_status json_text_parse(json_t **json, const char *text, size_t length, json_text_error *error)
{
    json_reader r = {.start = text, .at = text, .end = text + length, .status = SDLF_OK, .error = error};
    *json = read_value(&r);
    json_skip_space(&r);
    if (r.status == SDLF_OK && r.at < r.end) json_expected(&r, "the end");
    if (r.status == SDLF_OK) return SDLF_OK;
    json_decref(*json);
    *json = NULL;
    return r.status;
}

/* ---- printing ---- */

char *json_text_print(const json_t *json, size_t flags, size_t *length)
{
    size_t size = json_dumpb(json, NULL, 0, flags);
    char *text = size > 0 ? malloc(size + 1) : NULL;
    if (text == NULL) return NULL;
    if (json_dumpb(json, text, size, flags) != size) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    if (length != NULL) *length = size;
    return text;
}
