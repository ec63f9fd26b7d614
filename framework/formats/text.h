/* SPDX-License-Identifier: MIT */
/* Text from outside: UTF-8 validation, and display in messages. */
#ifndef SDLF_FORMATS_TEXT_H
#define SDLF_FORMATS_TEXT_H

#include <stdbool.h>

/* True for well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). */
bool text_is_utf8(const char *text);

/* A name fit for one line of a message: control characters become '?', and a long one is truncated with "...". */
typedef struct text_shown {
    char text[84];
} text_shown;
text_shown text_show(const char *text);

/* True if the word is in the list, in which each word is surrounded by spaces: " Abs Acos ". */
bool text_is_in(const char *list, const char *word);

#endif
