/* SPDX-License-Identifier: MIT */
#include "framework/formats/network_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sdlf_status network_fail(const network_text *file, const json_place *place, const char *format, ...)
{
    char message[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s:%d: %s", file->origin, json_locate(file->text, file->length, place),
                     message);
}

/* A short list verbatim, "[5, true]"; a long one as "a list". */
static network_shown show_list(const json_t *list)
{
    network_shown shown = {"a list"};
    char text[80];
    size_t length = json_dumpb(list, text, sizeof text, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    if (length == 0 || length >= sizeof text || length >= sizeof shown.text) return shown;
    memcpy(shown.text, text, length);
    shown.text[length] = 0;
    return shown;
}

network_shown network_show(const json_t *value)
{
    network_shown shown = {"nothing"};
    if (value == NULL) return shown;
    switch (json_typeof(value)) {
    case JSON_OBJECT: return (network_shown){"an object"};
    case JSON_ARRAY: return show_list(value);
    case JSON_STRING:
        snprintf(shown.text, sizeof shown.text, "\"%s\"", text_show(json_string_value(value)).text);
        break;
    case JSON_INTEGER: snprintf(shown.text, sizeof shown.text, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: snprintf(shown.text, sizeof shown.text, "%.9g", json_real_value(value)); break;
    case JSON_TRUE: return (network_shown){"true"};
    case JSON_FALSE: return (network_shown){"false"};
    case JSON_NULL: return (network_shown){"null"};
    }
    return shown;
}

sdlf_status network_check_name(const network_text *file, const json_place *place, const json_t *name, const char *what)
{
    if (!json_is_string(name))
        return network_fail(file, place, "the name of %s must be a string, found %s", what, network_show(name).text);
    size_t length = json_string_length(name);
    if (length >= 1 && length <= NETWORK_MAX_NAME) return SDLF_OK;
    return network_fail(file, place, "the name of %s must have 1 to %d bytes, found %zu", what, NETWORK_MAX_NAME,
                        length);
}
