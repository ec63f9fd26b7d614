/* SPDX-License-Identifier: MIT */
/* The network reader on arbitrary text: an error that names its line, or a network that can be written and reread. */
#include <stdlib.h>
#include <string.h>

#include <sdlf/formats.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sdlf_model *model;
    sdlf_status status = sdlf_network_parse(&model, (const char *)data, size, "input");
    if (status != SDLF_OK) {
        if (model != NULL || (status == SDLF_ERROR_FORMAT && strstr(sdlf_error_message(), "input:") == NULL)) abort();
        return 0;
    }
    char *text, *second;
    sdlf_model *again;
    if (sdlf_network_write(model, &text) != SDLF_OK) abort();
    if (sdlf_network_parse(&again, text, strlen(text), "again") != SDLF_OK) abort();
    if (sdlf_network_write(again, &second) != SDLF_OK || strcmp(text, second) != 0) abort();
    free(text);
    free(second);
    sdlf_model_free(model);
    sdlf_model_free(again);
    return 0;
}
