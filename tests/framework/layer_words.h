/* SPDX-License-Identifier: MIT */
/* The vocabulary of network files. */
#ifndef SDLF_TESTS_FRAMEWORK_LAYER_WORDS_H
#define SDLF_TESTS_FRAMEWORK_LAYER_WORDS_H

#include <stdbool.h>
#include <string.h>

#include <sdlf/sdlf.h>

/* True for the name of a layer, of one of its fields, or of a choice of a field. */
static inline bool is_of_a_layer(const char *word)
{
    const sdlf_layer_class *type;
    for (int i = 0; (type = sdlf_layer_class_at(i)) != NULL; i++) {
        if (strcmp(type->name, word) == 0) return true;
        for (const sdlf_field *field = type->fields; field != NULL && field->name != NULL; field++) {
            if (strcmp(field->name, word) == 0) return true;
            for (int j = 0; field->type == SDLF_FIELD_CHOICE && field->choices[j] != NULL; j++)
                if (strcmp(field->choices[j], word) == 0) return true;
        }
    }
    return false;
}

#endif
