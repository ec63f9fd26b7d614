/* SPDX-License-Identifier: MIT */
/* The words that network files are written in. */
#ifndef SDLF_TESTS_FRAMEWORK_LAYER_WORDS_H
#define SDLF_TESTS_FRAMEWORK_LAYER_WORDS_H

#include <stdbool.h>
#include <string.h>

#include <sdlf/sdlf.h>

/* Is it the name of a layer, of a field of one, or of a choice that it has? */
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
