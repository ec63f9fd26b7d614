/* SPDX-License-Identifier: MIT */
/* The C exporter on names of arbitrary bytes: they are rejected, or give a file in which no name ends a comment or injects code. The
 * bytes are the names of the model, its input, its layers and its output, one per line. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sdlf/sdlf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 6, LONGEST = 300, TEXT = 1 << 15 /* less than a pipe holds */ };

/* The lines of the input, each with a byte 0 at its end. */
static void take_names(char name[NAMES][LONGEST], const uint8_t *data, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < NAMES; i++) {
        size_t length = 0;
        for (; at < size && data[at] != '\n'; at++)
            if (length + 1 < LONGEST && data[at] != 0) name[i][length++] = (char)data[at];
        name[i][length] = '\0';
        at++;
    }
}

static sdlf_model *named_model(char name[NAMES][LONGEST])
{
    sdlf_model *model = sdlf_model_create(name[0]);
    sdlf_node x = sdlf_input(model, name[1], SDLF_FLOAT32, sdlf_shape(2));
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = name[2], .units = 2});
    x = sdlf_relu(model, x);
    x = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = name[3], .units = 1});
    sdlf_node y = sdlf_fully_connected(model, x, &(sdlf_fully_connected_options){.name = name[4], .units = 1});
    sdlf_output(model, name[5], y);
    if (sdlf_model_build(model, 1) == SDLF_OK) return model;
    sdlf_model_free(model);
    return NULL;
}

/* True if comments and characters are valid C, with nothing outside comments but the exporter's own code, of constant length: *code
 * counts the characters that are not part of a name. */
static bool is_sound(const char *text, size_t *code)
{
    bool comment = false;
    for (*code = 0; *text != '\0'; text++) {
        if (*text == '\\' || (text[0] == '?' && text[1] == '?')) return false;
        if (strchr("`$@\"'", *text) != NULL || (unsigned char)*text >= 128) {
            if (!comment) return false;
        } else if (!comment && text[0] == '/' && text[1] == '*') {
            comment = true;
            text++;
        } else if (comment && text[0] == '*' && text[1] == '/') {
            comment = false;
            text++;
        } else if (comment ? text[0] == '/' && text[1] == '*' : text[0] == '/' && text[1] == '/') {
            return false;
        } else if (!comment && ispunct((unsigned char)*text) && *text != '_') {
            ++*code;
        }
    }
    return !comment;
}

/* The exporter's output, through a pipe, to which it writes directly. */
static const char *exported(const sdlf_model *model)
{
    static char text[TEXT], path[32];
    static int ends[2];
    if (path[0] == '\0') {
        if (pipe(ends) != 0) abort();
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    }
    if (sdlf_model_to_c(model, path, NULL, NULL) != SDLF_OK) abort();
    ssize_t length = read(ends[0], text, TEXT - 1);
    if (length <= 0 || length == TEXT - 1) abort();
    text[length] = '\0';
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char names[NAMES][LONGEST];
    static size_t usual;
    take_names(names, data, size);
    sdlf_model *model = named_model(names);
    if (model == NULL) return 0;
    size_t code;
    if (!is_sound(exported(model), &code)) abort();
    if (usual == 0) usual = code;
    if (code != usual) abort();
    sdlf_model_free(model);
    return 0;
}
