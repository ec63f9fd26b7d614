/* SPDX-License-Identifier: MIT */
#include "framework/formats/json_reader.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/formats/text.h"

enum { NUMBER_MOST = 500 };

/* ---- failing ---- */

void *json_refuse(json_reader *r, const char *format, ...)
{
    json_text_error *error = r->error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->position = (size_t)(r->at - r->start);
    error->line = error->column = 1;
    for (const char *at = r->start; at < r->at; at++) {
        error->column = *at == '\n' ? 1 : error->column + 1;
        error->line += *at == '\n';
    }
    r->status = SDLF_ERROR_FORMAT;
    return NULL;
}

void *json_expected(json_reader *r, const char *what)
{
    if (r->at == r->end) return json_refuse(r, "expected %s, found the end", what);
    if ((unsigned char)*r->at <= ' ' || (unsigned char)*r->at >= 127)
        return json_refuse(r, "expected %s, found byte 0x%02x", what, (unsigned char)*r->at);
    return json_refuse(r, "expected %s, found '%c'", what, *r->at);
}

json_t *json_made(json_reader *r, json_t *value)
{
    if (value == NULL) r->status = SDLF_ERROR_MEMORY;
    return value;
}

/* ---- strings ---- */

void json_skip_space(json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

bool json_take(json_reader *r, char character)
{
    json_skip_space(r);
    if (r->at == r->end || *r->at != character) return false;
    r->at++;
    return true;
}

/* The value of four hexadecimal digits at `at`; -1: there are none. */
static int32_t hexadecimal(const json_reader *r, const char *at)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = r->end - at > i && at[i] != '\0' ? strchr(digits, at[i]) : NULL;
        if (digit == NULL) return -1;
        value = value << 4 | (int32_t)((digit - digits) & 15);
    }
    return value;
}

static char *put_utf8(char *to, uint32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)((0xF00 >> (more + 1) & 0xFF) | code >> (6 * more));
    while (more-- > 0) *to++ = (char)(0x80 | (code >> (6 * more) & 0x3F));
    return to;
}

/* Decodes an escape sequence at the backslash r->at. NULL: rejected. */
static char *read_escape(json_reader *r, char *to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = r->end - r->at > 1 ? r->at[1] : '\0';
    const char *known = name != '\0' ? strchr(names, name) : NULL;
    if (known != NULL) {
        r->at += 2;
        *to = values[known - names];
        return to + 1;
    }
    int32_t code = name == 'u' ? hexadecimal(r, r->at + 2) : -1, low = -1;
    if (code >= 0xD800 && code < 0xDC00 && r->end - r->at > 7 && r->at[6] == '\\' && r->at[7] == 'u')
        low = hexadecimal(r, r->at + 8);
    bool pair = low >= 0xDC00 && low < 0xE000;
    if (pair) code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    if (code <= 0 || (code >= 0xD800 && code < 0xE000)) {
        json_refuse(r, "a string has an invalid escape");
        return NULL;
    }
    r->at += pair ? 12 : 6;
    return put_utf8(to, (uint32_t)code);
}

char *json_read_string(json_reader *r, const char *what)
{
    const char *end = r->at + 1;
    if (r->at == r->end || *r->at != '"') return json_expected(r, what);
    const char *begin = r->at;
    while (end < r->end && *end != '"') end += *end == '\\' && r->end - end > 1 ? 2 : 1;
    char *text = malloc((size_t)(end - r->at)), *to = text; /* an escape is longer than its character */
    if (text == NULL) r->status = SDLF_ERROR_MEMORY;
    for (r->at++; to != NULL && r->at < end;) {
        if (*r->at == '\\')
            to = read_escape(r, to);
        else if ((unsigned char)*r->at < ' ')
            to = json_refuse(r, "a string has the control character 0x%02x", (unsigned char)*r->at);
        else
            *to++ = *r->at++;
    }
    if (to != NULL && r->at >= r->end) to = json_refuse(r, "a string does not end");
    if (to != NULL) {
        *to = '\0';
        r->at++;
        if (text_is_utf8(text)) return text;
        r->at = begin;
        json_refuse(r, "a string is not UTF-8");
    }
    free(text);
    return NULL;
}

/* ---- numbers ---- */

static const char *skip_digits(const json_reader *r, const char *at)
{
    while (at < r->end && *at >= '0' && *at <= '9') at++;
    return at;
}

/* The end of the number that begins here, and the start of its fraction and exponent, or NULL. NULL: there is
 * none. */
static const char *number_end(const json_reader *r, const char **fraction, const char **exponent)
{
    const char *at = r->at + (*r->at == '-'), *digits = at;
    *fraction = *exponent = NULL;
    at = skip_digits(r, at);
    if (at == digits || (*digits == '0' && at - digits > 1)) return NULL;
    if (at < r->end && *at == '.') {
        *fraction = at;
        at = skip_digits(r, at + 1);
        if (at == *fraction + 1) return NULL;
    }
    if (at < r->end && (*at == 'e' || *at == 'E')) {
        *exponent = at++;
        if (at < r->end && (*at == '+' || *at == '-')) at++;
        digits = at;
        at = skip_digits(r, at);
        if (at == digits) return NULL;
    }
    return at;
}

json_t *json_read_number(json_reader *r)
{
    char text[NUMBER_MOST + 1];
    const char *fraction, *exponent, *end = number_end(r, &fraction, &exponent);
    if (end == NULL) return json_refuse(r, "a number is malformed");
    if (end - r->at > NUMBER_MOST) return json_refuse(r, "a number has more than %d characters", NUMBER_MOST);
    size_t length = (size_t)(end - r->at);
    memcpy(text, r->at, length);
    text[length] = '\0';
    errno = 0;
    if (fraction == NULL && exponent == NULL) {
        long long integer = strtoll(text, NULL, 10);
        if (errno == ERANGE) return json_refuse(r, "an integer has more than 64 bits");
        r->at = end;
        return json_made(r, json_integer(integer));
    }
    if (fraction != NULL) text[fraction - r->at] = *localeconv()->decimal_point; /* as strtod requires */
    double real = strtod(text, NULL);
    if (!isfinite(real)) return json_refuse(r, "a number is too large");
    r->at = end;
    return json_made(r, json_real(real));
}
