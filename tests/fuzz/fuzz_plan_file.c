/* SPDX-License-Identifier: MIT */
/* The plan file reader on arbitrary text: an error that names its line, or choices. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_choices *choices = sdlf_choices_create();
    if (choices == NULL) return 0;
    sdlf_status status = sdlf_choices_parse(choices, (const char *)data, size, "input");
    bool named = strncmp(sdlf_error_message(), "input:", 6) == 0;
    if (status == SDLF_ERROR_FORMAT && (!named || sdlf_choices_count(choices) != 0)) abort();
    if (status != SDLF_OK && status != SDLF_ERROR_FORMAT && status != SDLF_ERROR_MEMORY) abort();
    if (sdlf_choices_changed(choices)) abort();
    sdlf_choices_free(choices);
    return 0;
}
