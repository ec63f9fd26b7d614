/* SPDX-License-Identifier: MIT */
/* Mean and deviation of each channel over all samples. Sums over bytes are integers; sums over floats are doubles,
 * added in the samples' order. Both are reproducible. */
#include "datasets/datasets_internal.h"

#include <math.h>

/* A channel of constant value is not scaled. */
static void normalise(sdlf_channel_normalization *made, int channel, double mean, double variance, double least)
{
    made->mean[channel] = (float)mean;
    made->scale[channel] = variance > least ? (float)(1 / sqrt(variance)) : 1;
}

/* ---- bytes ---- */

void sdlf_dataset_add_sums(dataset_sums *sums, const uint8_t *sample, int channels, int64_t area)
{
    for (int c = 0; c < channels; c++) {
        uint64_t sum = 0, squares = 0;
        for (int64_t i = 0; i < area; i++) {
            uint64_t x = sample[c * area + i];
            sum += x;
            squares += x * x;
        }
        sums->sum[c] += sum;
        sums->squares[c] += squares;
    }
    sums->count += area;
    sums->channels = channels;
}

void sdlf_dataset_join_sums(dataset_sums *sums, const dataset_sums *more)
{
    for (int c = 0; c < more->channels; c++) {
        sums->sum[c] += more->sum[c];
        sums->squares[c] += more->squares[c];
    }
    sums->count += more->count;
    if (more->channels > 0) sums->channels = more->channels;
}

void sdlf_dataset_measure_sums(sdlf_dataset *dataset, const dataset_sums *sums)
{
    for (int c = 0; c < sums->channels; c++) {
        double mean = (double)sums->sum[c] / (double)sums->count;
        normalise(&dataset->channels, c, mean, (double)sums->squares[c] / (double)sums->count - mean * mean, 1e-6);
    }
    dataset->channels.count = sums->channels;
    dataset->mean = 0;
    dataset->scale = 1;
}

/* ---- floats ---- */

static void measure_floats(sdlf_dataset *dataset, int channels, int64_t size)
{
    int64_t samples = dataset->samples.shape.dim[0], area = size / channels;
    for (int c = 0; c < channels; c++) {
        const float *first = (const float *)dataset->samples.data + c * area;
        double sum = 0, squares = 0, count = (double)(samples * area);
        for (int64_t n = 0; n < samples; n++)
            for (int64_t i = 0; i < area; i++) sum += (double)first[n * size + i];
        double mean = sum / count;
        for (int64_t n = 0; n < samples; n++)
            for (int64_t i = 0; i < area; i++) {
                double away = (double)first[n * size + i] - mean;
                squares += away * away;
            }
        normalise(&dataset->channels, c, mean, squares / count, 1e-12 * mean * mean + 1e-30);
    }
    dataset->channels.count = channels;
    dataset->mean = 0;
    dataset->scale = 1;
}

void sdlf_dataset_measure(sdlf_dataset *dataset)
{
    sdlf_shape shape = dataset->samples.shape;
    bool single = shape.rank == 3 || shape.dim[1] > SDLF_NORMALIZED_CHANNELS;
    int channels = single ? 1 : (int)shape.dim[1];
    int64_t size = sdlf_shape_span(shape, 1, shape.rank);
    if (dataset->samples.dtype == SDLF_UINT8) {
        dataset_sums sums = {.count = 0};
        for (int64_t n = 0; n < shape.dim[0]; n++)
            sdlf_dataset_add_sums(&sums, (const uint8_t *)dataset->samples.data + n * size, channels, size / channels);
        sdlf_dataset_measure_sums(dataset, &sums);
    } else {
        measure_floats(dataset, channels, size);
    }
    if (!single) return;
    dataset->mean = dataset->channels.mean[0];
    dataset->scale = dataset->channels.scale[0];
    dataset->channels.count = 0;
}
