/* SPDX-License-Identifier: MIT */
#include "framework/formats/network_names.h"

#include <stdio.h>

static sdlf_status out_of_memory(void)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "out of memory for the names of a network's layers");
}

sdlf_status network_names_init(network_names *names)
{
    *names = (network_names){.positions = json_object(), .counts = json_object()};
    if (names->positions != NULL && names->counts != NULL) return SDLF_OK;
    network_names_release(names);
    return out_of_memory();
}

void network_names_release(network_names *names)
{
    json_decref(names->positions);
    json_decref(names->counts);
    *names = (network_names){0};
}

sdlf_status network_names_add(network_names *names, const char *name, int position)
{
    return json_object_set_new(names->positions, name, json_integer(position)) == 0 ? SDLF_OK : out_of_memory();
}

int network_names_find(const network_names *names, const char *name)
{
    const json_t *position = json_object_get(names->positions, name);
    return position != NULL ? (int)json_integer_value(position) : -1;
}

sdlf_status network_names_choose(network_names *names, const char **name, const char *type, int position)
{
    char chosen[96];
    int number = (int)json_integer_value(json_object_get(names->counts, type));
    do {
        number++;
        if (number == 1)
            snprintf(chosen, sizeof chosen, "%.64s", type);
        else
            snprintf(chosen, sizeof chosen, "%.64s_%d", type, number);
    } while (network_names_find(names, chosen) >= 0);
    if (json_object_set_new(names->counts, type, json_integer(number)) != 0) return out_of_memory();
    sdlf_status status = network_names_add(names, chosen, position);
    if (status == SDLF_OK) *name = json_object_iter_key(json_object_iter_at(names->positions, chosen));
    return status;
}
