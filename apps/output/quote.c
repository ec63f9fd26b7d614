/* SPDX-License-Identifier: MIT */
/* Shell quoting. */
#include "apps/output/quote.h"

#include <stdbool.h>
#include <string.h>

#include "apps/system/memory.h"

/* True for letters, digits, and all of UTF-8 beyond ASCII: characters without special meaning in a shell. */
static bool is_plain(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || ((unsigned char)c & 0x80) || (c && strchr("_-./,:=+@%", c));
}

char *quote_word(const char *word)
{
    size_t plain = 0, length = strlen(word);
    while (is_plain(word[plain])) plain++;
    if (plain == length && length > 0) return memory_copy_text(word);
    char *quoted = memory_allocate(4 * length + 3), *to = quoted;
    *to++ = '\'';
    for (const char *at = word; *at; at++) {
        if (*at == '\'') {
            memcpy(to, "'\\''", 4); /* close the quotes, an escaped quote, reopen them */
            to += 4;
        } else {
            *to++ = *at;
        }
    }
    *to++ = '\'';
    *to = '\0';
    return quoted;
}
