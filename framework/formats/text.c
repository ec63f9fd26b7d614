/* SPDX-License-Identifier: MIT */
#include "framework/formats/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The length of the well-formed sequence that starts at `at`, 0 if there is none. */
static size_t sequence_length(const unsigned char *at)
{
    if (at[0] < 0x80) return 1;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4) return 0;
    uint32_t code = at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80) return 0; /* the terminating 0 stops it too */
        code = code << 6 | (at[i] & 0x3Fu);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xD800 && code <= 0xDFFF))) return 0;
    if (length == 4 && (code < 0x10000 || code > 0x10FFFF)) return 0;
    return length;
}

bool text_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != 0) {
        size_t length = sequence_length(at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

text_shown text_show(const char *text)
{
    static const char dots[] = "...";
    text_shown shown;
    size_t room = sizeof shown.text - sizeof dots, length = 0;
    const unsigned char *at = (const unsigned char *)text;
    while (*at != 0) {
        size_t sequence = sequence_length(at);
        bool plain = sequence > 1 ? !(at[0] == 0xC2 && at[1] < 0xA0) : sequence == 1 && at[0] >= 0x20 && at[0] != 0x7F;
        size_t take = plain ? sequence : 1;
        if (length + take > room) {
            memcpy(shown.text + length, dots, sizeof dots);
            return shown;
        }
        if (plain)
            memcpy(shown.text + length, at, take);
        else
            shown.text[length] = '?';
        length += take;
        at += plain ? sequence : sequence > 0 ? sequence : 1;
    }
    shown.text[length] = '\0';
    return shown;
}

bool text_is_in(const char *list, const char *word)
{
    char spaced[64];
    int length = snprintf(spaced, sizeof spaced, " %s ", word);
    return length < (int)sizeof spaced && strstr(list, spaced) != NULL;
}
