/* SPDX-License-Identifier: MIT */
/* Text from outside: is it UTF-8, and how does it look in a message? */
#ifndef SDLF_FORMATS_TEXT_H
#define SDLF_FORMATS_TEXT_H

#include <stdbool.h>

/* Well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF)? */
bool text_is_utf8(const char *text);

/* A name fit for one line of a message: control characters become '?', and a long one is cut with "...". */
typedef struct text_shown {
    char text[84];
} text_shown;
text_shown text_show(const char *text);

/* Is the word one of a list, in which a space stands before and behind each: " Abs Acos "? */
bool text_is_in(const char *list, const char *word);

#endif
