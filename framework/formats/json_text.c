#include "framework/formats/json_text.h"

#include <stdint.h>
#include <stdlib.h>

#include "framework/formats/budget.h"
#include "framework/machine/size.h"

/* What jansson allocates for each sign that begins something or stands between two, malloc's own share included. */
static int64_t cost_of(char sign)
{
    switch (sign) {
    case '{': return 256; /* a table of eight */
    case '[': return 144; /* room for eight */
    case ':': return 112; /* a key */
    case ',': return 64;  /* a place, and a number in it */
    case '"': return 48;  /* half of a text */
    default: return 1;    /* its bytes */
    }
}

sdlf_status json_text_check(const char *text, size_t length)
{
    read_budget budget;
    int64_t bytes = 0;
    for (size_t i = 0; i < length; i++) bytes += cost_of(text[i]);
    sdlf_status status = read_budget_make(&budget, (int64_t)length, 0);
    if (status != SDLF_OK || read_budget_take(&budget, bytes)) return status;
    return sdlf_fail_context(read_budget_fail(&budget), "its JSON becomes %s", size_show(bytes).text);
}

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
