/* SPDX-License-Identifier: MIT */
/* See whitening.h. */
#include "framework/whitening.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/layers/windows.h>

#include "framework/eigen.h"
#include "framework/input_layer.h"
#include "framework/model_internal.h"

enum { SAMPLES = 5000, BATCH = 100, LANES = 8, LARGEST_PATCH = 1024 };
static const double MOST_PRODUCTS = 4e9; /* of two elements: takes seconds */
static const double LEAST = 5e-4;        /* added to eigenvalues */

static const sdlf_conv2d_options *whitening_of(const model_layer *entry)
{
    if (entry->layer.type != sdlf_layer_class_find("conv2d")) return NULL;
    const sdlf_conv2d_options *options = entry->layer.options;
    return options->initializer == SDLF_INIT_WHITENING ? options : NULL;
}

bool sdlf_is_whitened(const sdlf_model *model)
{
    for (int i = 0; i < model->layer_count; i++)
        if (whitening_of(&model->layers[i]) != NULL) return true;
    return false;
}

/* Accumulated products over patches: element (i, j), i <= j, of x x'. */
typedef struct patches {
    int height, width, size;         /* of a patch; number of its elements */
    int64_t channels, rows, columns; /* of a sample */
    double *sum;                     /* size x size */
    int64_t count;                   /* patches */
} patches;

/* The address of element i of a sample's first patch. */
static const float *element_of(const patches *p, const float *sample, int i)
{
    int area = p->height * p->width, channel = i / area, r = i % area / p->width, s = i % p->width;
    return sample + (channel * p->rows + r) * p->columns + s;
}

/* The sum of a b over the positions where both are elements of a patch, in separate lanes, so that the order of
 * summation is the same everywhere. */
static double product_of(const patches *p, const float *a, const float *b)
{
    float lane[LANES] = {0};
    double sum = 0;
    int64_t down = p->rows - p->height + 1, across = p->columns - p->width + 1, whole = across / LANES * LANES;
    for (int64_t row = 0; row < down; row++, a += p->columns, b += p->columns) {
        for (int64_t q = 0; q < whole; q += LANES)
            for (int l = 0; l < LANES; l++) lane[l] += a[q + l] * b[q + l];
        for (int64_t q = whole; q < across; q++) lane[q - whole] += a[q] * b[q];
    }
    for (int l = 0; l < LANES; l++) sum += (double)lane[l];
    return sum;
}

static void add_sample(patches *p, const float *sample)
{
    for (int i = 0; i < p->size; i++)
        for (int j = i; j < p->size; j++)
            p->sum[i * p->size + j] += product_of(p, element_of(p, sample, i), element_of(p, sample, j));
    p->count += (p->rows - p->height + 1) * (p->columns - p->width + 1);
}

/* The number of samples to use. */
static int64_t samples_of(const patches *p, int64_t all)
{
    double each = (double)p->size * (p->size + 1) / 2 * (double)(p->rows * p->columns);
    int64_t most = MOST_PRODUCTS / each < 1         ? 1
                   : MOST_PRODUCTS / each < SAMPLES ? (int64_t)(MOST_PRODUCTS / each)
                                                    : SAMPLES;
    return most < all ? most : all;
}

static sdlf_status add_samples(patches *p, const sdlf_dataset *dataset)
{
    int64_t left = samples_of(p, dataset->samples.shape.dim[0]), size = p->channels * p->rows * p->columns;
    int64_t batch = left < BATCH ? left : BATCH;
    sdlf_loader *loader = NULL;
    sdlf_status status =
        sdlf_loader_create(&loader, dataset, &(sdlf_loader_options){.batch = batch, .no_prefetch = true});
    while (status == SDLF_OK && left > 0) {
        sdlf_batch read;
        status = sdlf_loader_next(loader, &read);
        for (int64_t i = 0; i < read.count && i < left && status == SDLF_OK; i++)
            add_sample(p, (const float *)read.samples.data + i * size);
        left -= status == SDLF_OK ? read.count : left;
    }
    sdlf_loader_free(loader);
    return status;
}

static void set_filters(sdlf_tensor *weight, const double *value, const double *vector, int size)
{
    int filters = (int)weight->shape.dim[0], half = (filters + 1) / 2;
    float *to = weight->data;
    for (int k = 0; k < filters; k++) {
        int which = k < half ? k : k - half;
        double scale = (k < half ? 1 : -1) / sqrt(fmax(value[which], 0) + LEAST);
        for (int i = 0; i < size; i++) to[k * size + i] = (float)(vector[which * size + i] * scale);
    }
}

static sdlf_status measure(patches *p, const sdlf_dataset *dataset, sdlf_tensor *weight)
{
    size_t n = (size_t)p->size;
    double *room = calloc(2 * n * n + n, sizeof *room), *vector = room + n * n, *value = vector + n * n;
    if (room == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "no memory for patches of %d elements", p->size);
    p->sum = room;
    sdlf_status status = add_samples(p, dataset);
    for (int i = 0; i < p->size && status == SDLF_OK; i++)
        for (int j = i; j < p->size; j++) {
            double mean = p->sum[i * p->size + j] / (double)p->count;
            room[i * p->size + j] = room[j * p->size + i] = mean;
        }
    if (status == SDLF_OK) {
        eigen_of_symmetric(room, p->size, value, vector);
        set_filters(weight, value, vector, p->size);
    }
    free(room);
    return status;
}

/* Whitens one convolution of the network's input. */
static sdlf_status whiten(sdlf_model *model, int layer, const sdlf_dataset *dataset)
{
    const model_layer *entry = &model->layers[layer];
    sdlf_tensor *weight = &model->parameters[entry->first_parameter].value;
    sdlf_shape filter = weight->shape, samples = dataset->samples.shape;
    bool first = model->layers[entry->inputs[0].layer].layer.type == &sdlf_input_layer_class;
    bool fits = samples.rank == 4 && samples.dim[1] == filter.dim[1] && samples.dim[2] >= filter.dim[2] &&
                samples.dim[3] >= filter.dim[3];
    int64_t size = sdlf_shape_span(filter, 1, 4);
    if (!first || !fits || size > LARGEST_PATCH)
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "layer '%s': initializer whitening: expected the network's samples as its input, and patches "
                         "of at most %d elements, found patches %s of samples %s, from layer '%s'",
                         entry->layer.name, LARGEST_PATCH, sdlf_shape_print(sdlf_shape_without(filter, 0)).text,
                         sdlf_shape_print(sdlf_shape_without(samples, 0)).text,
                         model->layers[entry->inputs[0].layer].layer.name);
    patches p = {.height = (int)filter.dim[2],
                 .width = (int)filter.dim[3],
                 .size = (int)size,
                 .channels = samples.dim[1],
                 .rows = samples.dim[2],
                 .columns = samples.dim[3]};
    sdlf_status status = measure(&p, dataset, weight);
    return sdlf_fail_context(status, "layer '%s': initializer whitening", entry->layer.name);
}

sdlf_status sdlf_whiten(sdlf_model *model, const sdlf_dataset *dataset)
{
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < model->layer_count && status == SDLF_OK; i++)
        if (whitening_of(&model->layers[i]) != NULL) status = whiten(model, i, dataset);
    model_note_change(model);
    return status;
}
