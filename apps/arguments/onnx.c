/* SPDX-License-Identifier: MIT */
/* --dim NAME=SIZE and --batch. */
#include "apps/arguments/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/system/memory.h"

#define DIMENSION_HELP                                                                                                 \
    "size of another dimension that the file leaves open, by its name, or as INPUT:PLACE if it has none; may be "      \
    "repeated"

const argument dimension_arguments[] = {
    {"dim", ARGUMENT_LIST, 0, "NAME=SIZE", .help = DIMENSION_HELP},
    {0},
};

const argument onnx_arguments[] = {
    {"batch", ARGUMENT_INT, offsetof(onnx_settings, batch), "N", .minimum = 1, .maximum = 1000000,
     .help = "size of an input's first dimension where the file leaves it open (default: 1)"},
    {"dim", ARGUMENT_LIST, offsetof(onnx_settings, dimensions), "NAME=SIZE",
     .help = DIMENSION_HELP " (run takes sizes not given here from its .npy files)"},
    {0},
};

sdlf_status onnx_settings_complete(onnx_settings *set, sdlf_onnx_options *options)
{
    *options = (sdlf_onnx_options){.batch = set->batch, .dimensions = set->dimension};
    for (int i = 0; i < set->dimensions.count; i++) {
        free(set->text[i]); /* of an earlier call */
        set->text[i] = memory_copy_text(set->dimensions.item[i]);
        char *equals = strrchr(set->text[i], '='), *end = NULL;
        errno = 0;
        long long size = equals != NULL ? strtoll(equals + 1, &end, 10) : 0;
        options->dimension_count = i + 1;
        if (equals == NULL || equals == set->text[i] || end == equals + 1 || *end != '\0' || errno != 0 || size < 1)
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--dim %s: expected NAME=SIZE, such as height=224",
                             set->dimensions.item[i]);
        *equals = '\0';
        set->dimension[i] = (sdlf_onnx_dimension){set->text[i], size};
    }
    return SDLF_OK;
}

sdlf_status onnx_settings_fit_other(const onnx_settings *set, const char *path)
{
    if (set->dimensions.count == 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_ARGUMENT, "--dim %s: '%s' leaves only the batch open; only ONNX files can leave more",
                     set->dimensions.item[0], path);
}

void onnx_settings_release(onnx_settings *set)
{
    for (int i = 0; i < set->dimensions.count; i++) free(set->text[i]);
}
