/* SPDX-License-Identifier: MIT */
/* Images of samples as a network receives them. See augmented_samples.h. */
#include "apps/pictures/augmented_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/pictures/sheet.h"
#include "apps/system/memory.h"

enum { LARGE_SAMPLES = 16, LARGE = 64 /* pixels */ };

int augmented_count(const sdlf_dataset *data, int wanted)
{
    sdlf_shape sample = sdlf_shape_without(data->samples.shape, 0);
    if (!sheet_shows(sample)) return 0;
    int most = sample.dim[1] > LARGE || sample.dim[2] > LARGE ? LARGE_SAMPLES : wanted;
    if (wanted < most) most = wanted;
    return data->samples.shape.dim[0] < most ? (int)data->samples.shape.dim[0] : most;
}

/* Undoes the normalisation of `count` samples. */
static void undo(float *values, const sdlf_dataset *data, sdlf_shape sample, int count)
{
    int64_t plane = sample.dim[1] * sample.dim[2];
    bool own = data->channels.count > 0;
    for (int64_t i = 0; i < count * sample.dim[0] * plane; i++) {
        int64_t channel = i / plane % sample.dim[0];
        values[i] = values[i] / (own ? data->channels.scale[channel] : data->scale) +
                    (own ? data->channels.mean[channel] : data->mean);
    }
}

static void to_bytes(unsigned char *pixels, const float *values, int64_t count, bool bytes)
{
    float least = 0, most = 255;
    for (int64_t i = 0; i < count && !bytes; i++) {
        least = i == 0 ? values[i] : fminf(least, values[i]);
        most = i == 0 ? values[i] : fmaxf(most, values[i]);
    }
    float factor = most > least ? 255 / (most - least) : 0;
    for (int64_t i = 0; i < count; i++)
        pixels[i] = (unsigned char)roundf(fminf(fmaxf((values[i] - least) * factor, 0), 255));
}

sdlf_status augmented_sheet(png_picture *picture, const sdlf_dataset *data, sdlf_loader_options options, int64_t epoch,
                            int count)
{
    sdlf_loader *loader = NULL;
    sdlf_batch batch = {.count = 0};
    sdlf_shape sample = sdlf_shape_without(data->samples.shape, 0);
    options.batch = count;
    options.no_prefetch = true;
    sdlf_status status = sdlf_loader_create(&loader, data, &options);
    if (status == SDLF_OK) status = sdlf_loader_seek(loader, epoch, 0);
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    if (status == SDLF_OK) {
        int64_t values = count * sdlf_shape_count(sample);
        unsigned char *pixels = memory_allocate((size_t)values);
        undo(batch.samples.data, data, sample, count);
        to_bytes(pixels, batch.samples.data, values, data->samples.dtype == SDLF_UINT8);
        status = sheet_write(picture, pixels, sample, count);
        free(pixels);
    }
    sdlf_loader_free(loader);
    return status;
}

sdlf_status augmented_read(float *values, unsigned char *pixels, const sdlf_dataset *data, int64_t index)
{
    sdlf_loader *loader = NULL;
    sdlf_batch batch = {.count = 0};
    sdlf_shape sample = sdlf_shape_without(data->samples.shape, 0);
    int64_t count = sdlf_shape_count(sample);
    sdlf_status status = sdlf_loader_create(&loader, data, &(sdlf_loader_options){.batch = 1, .no_prefetch = true});
    if (status == SDLF_OK) status = sdlf_loader_seek(loader, 0, index);
    if (status == SDLF_OK) status = sdlf_loader_next(loader, &batch);
    if (status == SDLF_OK) {
        memcpy(values, batch.samples.data, (size_t)count * sizeof *values);
        if (sample.rank == 3) undo(batch.samples.data, data, sample, 1);
        to_bytes(pixels, batch.samples.data, count, data->samples.dtype == SDLF_UINT8);
    }
    sdlf_loader_free(loader);
    return status;
}
