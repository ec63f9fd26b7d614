/* SPDX-License-Identifier: MIT */
/* The input elements and weights of an output element of resample, the same on every calculator: `count` elements from
 * `first` on, with their weights. The contract is at sdlf_resample_options in <sdlf/operations/indexing.h>.
 *
 *     sdlf_resample_taps taps = sdlf_resample_at(&options, length, outputs, j);
 *     for each k < taps.count: y += sdlf_resample_weight(&options, &taps, length, k) x[sdlf_resample_index(&taps,
 *     length, k)] */
#ifndef SDLF_OPERATIONS_RESAMPLE_TAPS_H
#define SDLF_OPERATIONS_RESAMPLE_TAPS_H

#include <sdlf/operation.h>
#include <sdlf/random.h>

#include <math.h>

typedef struct sdlf_resample_taps {
    int64_t first, count;
    double ratio;   /* distance of the coordinate from the element at or below it */
    int64_t before; /* number of elements from `first` to that one */
    double stretch; /* factor of distances: 1, or the scale */
    double total;   /* sum of the unnormalised weights */
    bool outside;   /* the output is options.outside, without weights */
} sdlf_resample_taps;

/* Rounds one step of a coordinate. For `nearest` every step is rounded to float32, as in PyTorch and onnxruntime: if a
 * coordinate is almost an integer, the rounding decides which element is nearest. */
SDLF_INLINE double sdlf_resample_step(const sdlf_resample_options *options, double value)
{
    return options->mode == SDLF_RESAMPLE_NEAREST ? (double)(float)value : value;
}

/* The position of element j in the input. */
SDLF_INLINE double sdlf_resample_coordinate(const sdlf_resample_options *options, int64_t length, int64_t outputs,
                                            int64_t j)
{
    double s = sdlf_resample_step(options, options->scale), size = s * (double)length;
    double start = (double)options->start, end = (double)options->end, last = (double)(length - 1);
    double middle = sdlf_resample_step(options, sdlf_resample_step(options, (double)j + 0.5) / s) - 0.5;
    switch (options->coordinates) {
    case SDLF_COORDINATES_ALIGN_CORNERS:
        if (outputs == 1) return 0;
        return sdlf_resample_step(options, sdlf_resample_step(options, (double)j * last) / (double)(outputs - 1));
    case SDLF_COORDINATES_ASYMMETRIC: return sdlf_resample_step(options, (double)j / s);
    case SDLF_COORDINATES_PYTORCH_HALF_PIXEL: return outputs == 1 ? 0 : middle;
    case SDLF_COORDINATES_HALF_PIXEL_SYMMETRIC: return middle + (double)length / 2 * (1 - (double)outputs / size);
    case SDLF_COORDINATES_CROP:
        if (outputs == 1) return (start + end) / 2 * last;
        return start * last + (double)j * (end - start) * last / (double)(outputs - 1);
    default: return middle;
    }
}

SDLF_INLINE int64_t sdlf_resample_nearest(sdlf_resample_rounding rounding, double u)
{
    switch (rounding) {
    case SDLF_ROUND_HALF_UP: return (int64_t)floor(u + 0.5);
    case SDLF_ROUND_DOWN: return (int64_t)floor(u);
    case SDLF_ROUND_UP: return (int64_t)ceil(u);
    default: return (int64_t)ceil(u - 0.5);
    }
}

/* Element i of an axis that is extended beyond its ends. */
SDLF_INLINE int64_t sdlf_resample_beyond(sdlf_resample_mode mode, int64_t i, int64_t length)
{
    int64_t period = mode == SDLF_RESAMPLE_REFLECT ? 2 * (length - 1) : length;
    if (mode == SDLF_RESAMPLE_REFLECT || mode == SDLF_RESAMPLE_WRAP) {
        if (period == 0) return 0;
        i %= period;
        if (i < 0) i += period;
        return i < length ? i : period - i;
    }
    return i < 0 ? 0 : i >= length ? length - 1 : i;
}

/* The unnormalised weight of tap k: the filter at its distance from the coordinate. */
SDLF_INLINE double sdlf_resample_filter(const sdlf_resample_options *options, const sdlf_resample_taps *taps,
                                        int64_t length, int64_t k)
{
    double a = (double)options->cubic, d = fabs(((double)(k - taps->before) - taps->ratio) * taps->stretch);
    int64_t at = taps->first + k;
    if (options->mode != SDLF_RESAMPLE_LINEAR && options->mode != SDLF_RESAMPLE_CUBIC) return 1;
    if (options->exclude_outside && (at < 0 || at >= length)) return 0;
    if (options->mode == SDLF_RESAMPLE_LINEAR) return d < 1 ? 1 - d : 0;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

SDLF_INLINE sdlf_resample_taps sdlf_resample_at(const sdlf_resample_options *options, int64_t length, int64_t outputs,
                                                int64_t j)
{
    sdlf_resample_taps taps = {0, 1, 0, 0, 1, 1, false};
    if (options->mode > SDLF_RESAMPLE_CUBIC) {
        taps.first = sdlf_resample_beyond(options->mode, j - options->before, length);
        return taps;
    }
    double u = sdlf_resample_coordinate(options, length, outputs, j), limit = 4 * (double)length;
    double slack = 1e-9 * (double)length; /* tolerance for the rounding of a coordinate */
    taps.outside = options->extrapolates && (u < -slack || u > (double)(length - 1) + slack);
    /* clamp far outside values, so that they fit in an int64; a crop stretched by 1 / L may give a NaN */
    u = u < -limit ? -limit : u > limit ? limit : u == u ? u : 0;
    if (options->mode == SDLF_RESAMPLE_NEAREST) {
        taps.first = sdlf_resample_beyond(SDLF_RESAMPLE_EDGE, sdlf_resample_nearest(options->rounding, u), length);
        return taps;
    }
    double reach = options->mode == SDLF_RESAMPLE_LINEAR ? 1 : 2;
    if (options->antialias && options->scale < 1) taps.stretch = options->scale;
    taps.before = (int64_t)ceil(reach / taps.stretch) - 1;
    taps.count = 2 * taps.before + 2;
    taps.ratio = u - floor(u);
    taps.first = (int64_t)floor(u) - taps.before;
    taps.total = 0;
    for (int64_t k = 0; k < taps.count; k++) taps.total += sdlf_resample_filter(options, &taps, length, k);
    return taps;
}

SDLF_INLINE double sdlf_resample_weight(const sdlf_resample_options *options, const sdlf_resample_taps *taps,
                                        int64_t length, int64_t k)
{
    return sdlf_resample_filter(options, taps, length, k) / taps->total;
}

SDLF_INLINE int64_t sdlf_resample_index(const sdlf_resample_taps *taps, int64_t length, int64_t k)
{
    int64_t at = taps->first + k;
    return at < 0 ? 0 : at >= length ? length - 1 : at;
}

#endif
