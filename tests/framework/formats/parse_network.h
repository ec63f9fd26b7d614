/* SPDX-License-Identifier: MIT */
/* Network files as text, for the tests of valid and of rejected files. */
#ifndef SDLF_TESTS_FRAMEWORK_FORMATS_PARSE_NETWORK_H
#define SDLF_TESTS_FRAMEWORK_FORMATS_PARSE_NETWORK_H

#include <string.h>

#include <sdlf/formats.h>

#define INPUT "\"input\": {\"name\": \"image\", \"shape\": [1, 28, 28]}"

#define LAYERS(list) "{" INPUT ",\n\"layers\": [\n" list "\n]}"

static inline sdlf_status parse(sdlf_model **model, const char *text)
{
    return sdlf_network_parse(model, text, strlen(text), "net.json");
}

#endif
