/* SPDX-License-Identifier: MIT */
/* The rows of the placement experiment. */
#include "apps/bench/placement/experiment.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const convolutions[] = {"conv2d", NULL};
static const char *const poolings[] = {"max_pool2d", "avg_pool2d", "global_avg_pool2d", NULL};
static const char *const fully_connecteds[] = {"fully_connected", NULL};
static const char *const softmaxes[] = {"softmax", "log_softmax", "softmax_cross_entropy", NULL};

static const struct {
    const char *name;
    const char *const *types;
    bool in_every_plan; /* training adds a loss with a softmax in it */
} kinds[] = {
    {"convolution", convolutions, false},
    {"pooling", poolings, false},
    {"fully connected", fully_connecteds, false},
    {"softmax", softmaxes, true},
};

/* An algorithm has one name here, and calculators may use others. */
static const struct {
    const char *name;
    const char *known[4];
} algorithms[] = {
    {"two-step", {"two-step", "im2col"}},
    {"one-step", {"one-step", "direct"}},
    {"shared-memory", {"shared-memory", "tiled"}},
};

static bool is_one_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], name) == 0) return true;
    }
    return false;
}

static bool has_layer(const sdlf_model *model, const char *const *types)
{
    for (int i = 0; i < sdlf_model_layer_count(model); i++) {
        if (is_one_of(types, sdlf_model_layer(model, i)->type->name)) return true;
    }
    return false;
}

/* The calculator's name of this algorithm; NULL: it has none. */
static const char *find_algorithm(const sdlf_calculator *calculator, const char *const *known)
{
    const char *const *names = calculator->type->kernel[SDLF_CONV2D_FORWARD].algorithms;
    for (int i = 0; names && names[i]; i++) {
        if (is_one_of(known, names[i])) return names[i];
    }
    return NULL;
}

/* Adds a row; its name is a printf format. */
static placement_row *add(placement_row *rows, int *count, placement_row row, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(row.name, sizeof row.name, format, values);
    va_end(values);
    rows[*count] = row;
    return &rows[(*count)++];
}

int placement_rows(placement_row *rows, const sdlf_model *model, const placement_machine *m)
{
    int count = 0;
    const char *host = m->host->type->name, *device = m->device->type->name;
    if (m->serial) {
        add(rows, &count, (placement_row){.forward = m->serial, .backward = m->serial}, "all on %s, 1 thread", host);
    }
    add(rows, &count, (placement_row){.forward = m->host, .backward = m->host}, "all on %s", host);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        placement_row *row =
            add(rows, &count,
                (placement_row){.forward = m->host, .backward = m->host, .placed = m->device, .types = kinds[i].types},
                "%s on %s", kinds[i].name, device);
        if (kinds[i].in_every_plan || has_layer(model, kinds[i].types)) continue;
        snprintf(row->missing, sizeof row->missing, "%s has no such layer", sdlf_model_name(model));
    }
    add(rows, &count, (placement_row){.forward = m->device, .backward = m->host}, "forward on %s", device);
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        placement_row *row = add(rows, &count, (placement_row){.forward = m->device, .backward = m->host},
                                 "forward on %s, %s convolution", device, algorithms[i].name);
        const char *name = find_algorithm(m->device, algorithms[i].known);
        if (name) {
            snprintf(row->algorithm, sizeof row->algorithm, "%s:%s", device, name);
        } else {
            snprintf(row->missing, sizeof row->missing, "not in this build: %s has no such algorithm", device);
        }
        if (has_layer(model, convolutions)) continue;
        snprintf(row->missing, sizeof row->missing, "%s has no convolution", sdlf_model_name(model));
    }
    add(rows, &count, (placement_row){.forward = m->device, .backward = m->device}, "all on %s", device);
    return count;
}
