/* SPDX-License-Identifier: MIT */
#include "framework/formats/json_locate.h"

#include <stdbool.h>
#include <string.h>

#include "framework/formats/json_text.h"

typedef struct cursor {
    const char *at, *end;
    int line;
} cursor;

static bool starts_with(const cursor *text, char character)
{
    return text->at < text->end && *text->at == character;
}

static void skip_space(cursor *text)
{
    for (; text->at < text->end && strchr(" \t\r\n", *text->at) != NULL && *text->at != '\0'; text->at++)
        text->line += *text->at == '\n';
}

static void skip_string(cursor *text)
{
    for (text->at++; text->at < text->end && *text->at != '"'; text->at++)
        if (*text->at == '\\' && text->at + 1 < text->end) text->at++;
    if (text->at < text->end) text->at++;
}

/* Skips one value, without recursion, by counting brackets. */
static void skip_value(cursor *text)
{
    int depth = 0;
    do {
        skip_space(text);
        if (text->at >= text->end) return;
        if (*text->at == '"') {
            skip_string(text);
        } else if (strchr("[{", *text->at) != NULL) {
            depth++;
            text->at++;
        } else if (strchr("]}", *text->at) != NULL) {
            depth--;
            text->at++;
        } else if (strchr(",:", *text->at) != NULL) {
            text->at++;
        } else {
            while (text->at < text->end && strchr(",:]}[{\" \t\r\n", *text->at) == NULL) text->at++;
        }
    } while (depth > 0);
}

/* After an element or a member: skips the comma; false at the end of the array or object. */
static bool next(cursor *text)
{
    skip_space(text);
    if (!starts_with(text, ',')) return false;
    text->at++;
    skip_space(text);
    return true;
}

/* True if the string token that starts here spells `key`. */
static bool is_key(const cursor *text, const char *key)
{
    cursor end = *text;
    skip_string(&end);
    size_t length = (size_t)(end.at - text->at);
    if (memchr(text->at, '\\', length) == NULL)
        return length == strlen(key) + 2 && memcmp(text->at + 1, key, length - 2) == 0;
    json_text_error error;
    json_t *string = NULL;
    bool same = json_text_parse(&string, text->at, length, &error) == SDLF_OK && json_is_string(string) &&
                strcmp(json_string_value(string), key) == 0;
    json_decref(string);
    return same;
}

/* Moves from an object to the value of a member; `line` becomes its key's. */
static bool enter_member(cursor *text, const char *key, int *line)
{
    if (!starts_with(text, '{')) return false;
    text->at++;
    skip_space(text);
    do {
        if (!starts_with(text, '"')) return false;
        bool found = is_key(text, key);
        int key_line = text->line;
        skip_string(text);
        skip_space(text);
        if (!starts_with(text, ':')) return false;
        text->at++;
        skip_space(text);
        if (found) {
            *line = key_line;
            return true;
        }
        skip_value(text);
    } while (next(text));
    return false;
}

/* Moves from an array to an element. */
static bool enter_element(cursor *text, size_t index, int *line)
{
    if (!starts_with(text, '[')) return false;
    text->at++;
    skip_space(text);
    for (; index > 0; index--) {
        skip_value(text);
        if (!next(text)) return false;
    }
    if (text->at >= text->end || *text->at == ']') return false;
    *line = text->line;
    return true;
}

/* Moves to a place. `line` becomes that of the place, or of its nearest existing ancestor. */
static bool enter(cursor *text, const json_place *place, int *line)
{
    if (place == NULL) {
        skip_space(text);
        *line = text->line;
        return true;
    }
    if (!enter(text, place->parent, line)) return false;
    return place->key != NULL ? enter_member(text, place->key, line) : enter_element(text, place->index, line);
}

int json_locate(const char *text, size_t length, const json_place *place)
{
    cursor at = {.at = text, .end = text + length, .line = 1};
    int line = 1;
    enter(&at, place, &line);
    return line;
}

void json_locate_elements(const char *text, size_t length, const json_place *place, int *lines, size_t count)
{
    cursor at = {.at = text, .end = text + length, .line = 1};
    int line = 1;
    bool inside = enter(&at, place, &line) && starts_with(&at, '[');
    int own = line;
    if (inside) {
        at.at++;
        skip_space(&at);
        inside = !starts_with(&at, ']');
    }
    for (size_t i = 0; i < count; i++) {
        lines[i] = inside ? at.line : own;
        if (!inside) continue;
        skip_value(&at);
        inside = next(&at);
    }
}
