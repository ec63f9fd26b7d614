/* SPDX-License-Identifier: MIT */
/* See config.h. */
#include "apps/arguments/config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "apps/input/bytes.h"
#include "apps/system/memory.h"

enum { MOST_BYTES = 1 << 20 /* of a file of options */ };

static void add(config_words *w, char *word)
{
    w->word = memory_resize(w->word, (size_t)(w->count + 2) * sizeof *w->word);
    w->owned = memory_resize(w->owned, (size_t)(w->count + 2) * sizeof *w->owned);
    w->word[w->count] = w->owned[w->count] = word;
    w->word[++w->count] = NULL;
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
    return text;
}

static sdlf_status add_line(config_words *w, char *line, const char *path, long number)
{
    char *text = trim(line);
    if (*text == '\0' || *text == '#') return SDLF_OK;
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    char *rest = trim(text + length);
    if (length == 0 || text[0] == '-' || text[0] == '_' || (*rest != '=' && *rest != '\0'))
        return sdlf_fail(SDLF_ERROR_FORMAT,
                         "%s:%ld: expected 'name = value' with an option's name, or the name of a flag, found '%.60s'",
                         path, number, text);
    for (size_t i = 0; i < length; i++) text[i] = text[i] == '_' ? '-' : text[i];
    add(w, memory_print(CONFIG_ORIGIN "%s:%ld", path, number));
    if (*rest == '\0')
        add(w, memory_print("--%.*s", (int)length, text));
    else
        add(w, memory_print("--%.*s=%s", (int)length, text, trim(rest + 1)));
    return SDLF_OK;
}

static sdlf_status add_file(config_words *w, const char *path)
{
    if (strcmp(path, "-") == 0)
        return sdlf_fail(
            SDLF_ERROR_ARGUMENT,
            "--config '-' would be standard input, which cannot be used here (a file of that name is ./-)");
    unsigned char *bytes = NULL;
    size_t size = 0;
    sdlf_status status = input_read(&bytes, &size, path, MOST_BYTES);
    if (status != SDLF_OK) return status;
    char *text = memory_allocate(size + 1);
    if (size > 0) memcpy(text, bytes, size);
    text[size] = '\0';
    free(bytes);
    long number = 1;
    for (char *line = text + (strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0), *end;
         status == SDLF_OK && line < text + size; line = end + 1, number++) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        if (end == NULL) end = text + size;
        *end = '\0';
        if (strlen(line) != (size_t)(end - line))
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s:%ld: expected text, found a byte 0", path, number);
        else
            status = add_line(w, line, path, number);
    }
    free(text);
    return status;
}

sdlf_status config_expand(config_words *w, int count, char *const *words, int from)
{
    static const char option[] = "--config";
    *w = (config_words){.count = 0};
    bool options_over = false;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        const char *word = words[i];
        size_t length = strlen(option);
        options_over = options_over || (i >= from && strcmp(word, "--") == 0);
        if (i < from || options_over)
            add(w, memory_copy_text(word));
        else if (word[0] == '@' && word[1] != '\0')
            status = add_file(w, word + 1);
        else if (strncmp(word, option, length) == 0 && word[length] == '=')
            status = add_file(w, word + length + 1);
        else if (strcmp(word, option) == 0 && i + 1 < count)
            status = add_file(w, words[++i]);
        else if (strcmp(word, option) == 0)
            status = sdlf_fail(SDLF_ERROR_ARGUMENT, "--config needs a value: the name of a file with options");
        else
            add(w, memory_copy_text(word));
    }
    return status;
}

void config_release(config_words *w)
{
    for (int i = 0; i < w->count; i++) free(w->owned[i]);
    free(w->owned);
    free(w->word);
    *w = (config_words){.count = 0};
}
