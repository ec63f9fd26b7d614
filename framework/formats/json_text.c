#include "framework/formats/json_text.h"

#include <stdlib.h>

sdlf_status json_text_parse(json_t **json, const char *text, size_t length, json_error_t *error)
{
    /* When memory runs out inside jansson it either leaves no text or calls a good token bad. The second case shows by
     * trying again: bad text stays bad. */
    for (int attempt = 0; attempt < 2; attempt++) {
        *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
        if (*json != NULL) return SDLF_OK;
        if (error->text[0] == '\0' || json_error_code(error) == json_error_out_of_memory) return SDLF_ERROR_MEMORY;
    }
    return SDLF_ERROR_FORMAT;
}

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
