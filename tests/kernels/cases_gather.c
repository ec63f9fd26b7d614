/* SPDX-License-Identifier: MIT */
/* Cases of gather_batch, next_batch and shuffle. Their arithmetic is specified operation by operation, so results must
 * match bitwise. */
#include "kernels.h"

enum { M = 11, N = 5 };

static kernel_case gather(sdlf_dtype from, sdlf_dtype to, sdlf_shape row, int64_t rows)
{
    kernel_case made = {.operation = {.kind = SDLF_GATHER_BATCH}};
    made.operation.in[0] = kernel_tensor(from, sdlf_shape_prepend(M, row));
    made.operation.in[1] = kernel_tensor(SDLF_INT32, sdlf_shape(rows));
    made.operation.out[0] = kernel_tensor(to, sdlf_shape_prepend(rows, row));
    made.operation.gather.mean = 33.3f;
    made.operation.gather.scale = 0.0128f;
    if (!sdlf_dtype_is_float(from)) made.in[0] = (kernel_fill){VALUES_INTEGERS, 256};
    made.in[1] = (kernel_fill){VALUES_INTEGERS, M};
    return made;
}

static void augment_by(kernel_case *made, sdlf_augmentation augment)
{
    made->operation.in[2] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    made->in[2] = (kernel_fill){VALUES_INTEGERS, 1000};
    made->operation.gather.augment = augment;
    made->operation.gather.augment.seed = UINT64_C(0x123456789abcdef);
}

static void warped(kernel_sink *sink, sdlf_dtype from, sdlf_dtype t, sdlf_shape row, sdlf_augmentation augment)
{
    kernel_case made = gather(from, t, row, N);
    augment_by(&made, augment);
    kernel_emit(sink, &made,
                "%s from %s shift %g rotate %g scale %g elastic %g crop %d flip %d%s reflect %d resized %g "
                "cutout %d colours %g %g %g %g",
                sdlf_shape_print(row).text, sdlf_dtype_name(from), (double)augment.shift, (double)augment.rotate,
                (double)augment.scale, (double)augment.elastic, augment.crop, augment.flip,
                augment.flip_alternate ? " alternate" : "", augment.reflect, (double)augment.resized_crop,
                augment.cutout, (double)augment.brightness, (double)augment.contrast, (double)augment.saturation,
                (double)augment.hue);
    made.operation.in[3] = kernel_tensor(SDLF_INT32, sdlf_shape(M));
    made.in[3] = (kernel_fill){VALUES_INTEGERS, 60000};
    kernel_emit(sink, &made, "%s from %s of numbered images", sdlf_shape_print(row).text, sdlf_dtype_name(from));
}

static kernel_case shuffled(int64_t count)
{
    kernel_case made = {.operation = {.kind = SDLF_SHUFFLE, .shuffle = {.seed = UINT64_C(77) << 32 | 5}}};
    made.operation.in[0] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    made.in[0] = (kernel_fill){VALUES_INTEGERS, 1000};
    made.operation.out[0] = kernel_tensor(SDLF_INT32, sdlf_shape(count));
    return made;
}

static void shuffle_cases(kernel_sink *sink)
{
    static const int64_t counts[] = {1, 2, 16, 17, 33, 1000, 4097, 60000, 1 << 20};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        kernel_case made = shuffled(counts[i]);
        kernel_emit(sink, &made, "of %lld", (long long)counts[i]);
    }
}

/* A mean and a scale for each channel, with and without augmentation. */
static void channel_cases(kernel_sink *sink, sdlf_dtype t)
{
    const sdlf_shape rows[] = {sdlf_shape(3, 7, 13), sdlf_shape(1, 5, 4), sdlf_shape(SDLF_NORMALIZED_CHANNELS, 2, 3)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int augmented = 0; augmented < 2; augmented++) {
            kernel_case made = gather(SDLF_UINT8, t, rows[i], N);
            sdlf_channel_normalization *channels = &made.operation.gather.channels;
            channels->count = (int)rows[i].dim[0];
            for (int c = 0; c < channels->count; c++) {
                channels->mean[c] = 3.5f + (float)c;
                channels->scale[c] = 1 / (60.0f + (float)(7 * c));
            }
            if (augmented)
                augment_by(&made, (sdlf_augmentation){.flip = true, .crop = 2, .contrast = 0.5f, .saturation = 0.5f});
            kernel_emit(sink, &made, "%s normalised by channel%s", sdlf_shape_print(rows[i]).text,
                        augmented ? ", augmented" : "");
        }
    }
}

/* TrivialAugment and RandAugment, for images of a data set and numbered ones, alone and before other augmentations. */
static void automatic_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sdlf_auto_augment policies[] = {{.trivial = true},
                                                 {.rand_augment = 1, .rand_magnitude = 30},
                                                 {.rand_augment = 2, .rand_magnitude = 9},
                                                 {.rand_augment = 8, .rand_magnitude = 17}};
    const sdlf_shape rows[] = {sdlf_shape(3, 7, 13), sdlf_shape(1, 28, 28), sdlf_shape(1, 1, 1), sdlf_shape(2, 1, 9),
                               sdlf_shape(3, 40, 33)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
            for (int numbered = 0; numbered < 2; numbered++) {
                kernel_case made = gather(SDLF_UINT8, t, rows[i], 3 * M);
                augment_by(&made, numbered ? (sdlf_augmentation){.flip = true, .hue = 0.2f, .shift = 1.5f}
                                           : (sdlf_augmentation){.flip = false});
                made.operation.gather.automatic = policies[p];
                if (numbered) {
                    made.operation.in[3] = kernel_tensor(SDLF_INT32, sdlf_shape(M));
                    made.in[3] = (kernel_fill){VALUES_INTEGERS, 60000};
                }
                kernel_emit(sink, &made, "%s by %s %d of %d%s", sdlf_shape_print(rows[i]).text,
                            policies[p].trivial ? "TrivialAugment" : "RandAugment", policies[p].rand_augment,
                            policies[p].rand_magnitude, numbered ? ", numbered images, and flip, hue and shift" : "");
            }
}

void gather_cases(kernel_sink *sink, sdlf_dtype t)
{
    static const sdlf_augmentation augmentations[] = {
        {.shift = 2},
        {.rotate = 15},
        {.scale = 0.2f},
        {.elastic = 1.5f},
        {.shift = 1.5f, .rotate = 360, .scale = 0.3f, .elastic = 2},
        {.shift = 40},
        {.flip = true},
        {.crop = 4},
        {.flip = true, .crop = 1, .rotate = 10},
        {.flip_alternate = true, .crop = 3, .reflect = true},
        {.shift = 40, .rotate = 30, .reflect = true},
        {.resized_crop = 0.25f, .flip = true},
        {.cutout = 3},
        {.cutout = 40, .shift = 1},
        {.brightness = 0.4f, .contrast = 0.4f, .saturation = 0.4f},
        {.hue = 0.5f},
        {.hue = 0.1f, .brightness = 0.4f, .contrast = 0.4f, .saturation = 0.4f, .flip = true},
        {.saturation = 1, .hue = 0.3f, .rotate = 20, .resized_crop = 0.5f, .cutout = 2, .reflect = true},
    };
    const sdlf_shape rows[] = {sdlf_shape(1, 28, 28), sdlf_shape(3, 7, 13), sdlf_shape(1, 1, 1), sdlf_shape(2, 1, 9)};
    for (int i = 0; i < 4; i++) {
        kernel_case made = gather(SDLF_UINT8, t, rows[i], N);
        kernel_emit(sink, &made, "%s from uint8", sdlf_shape_print(rows[i]).text);
        made = gather(t, t, rows[i], 1);
        kernel_emit(sink, &made, "%s from floating", sdlf_shape_print(rows[i]).text);
        for (size_t a = 0; a < sizeof augmentations / sizeof augmentations[0]; a++) {
            warped(sink, SDLF_UINT8, t, rows[i], augmentations[a]);
        }
        warped(sink, t, t, rows[i], augmentations[4]);
        warped(sink, t, t, rows[i], augmentations[6]);
    }
    channel_cases(sink, t);
    automatic_cases(sink, t);
    kernel_case labels = gather(SDLF_INT32, SDLF_INT32, SDLF_SCALAR, N);
    kernel_emit(sink, &labels, "labels");
    kernel_case bytes = gather(SDLF_UINT8, SDLF_UINT8, sdlf_shape(3, 5), 17);
    kernel_emit(sink, &bytes, "bytes");
    for (int rows_taken = 1; rows_taken <= 300; rows_taken = 3 * rows_taken + 2) {
        kernel_case next = {.operation = {.kind = SDLF_NEXT_BATCH}};
        next.operation.in[0] = kernel_tensor(SDLF_INT32, sdlf_shape(7 * rows_taken + 3));
        next.operation.in[1] = kernel_tensor(t, sdlf_shape(7));
        next.operation.in[2] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
        next.in[0].values = next.in[2].values = VALUES_ANYTHING;
        next.in[2] = (kernel_fill){VALUES_INTEGERS, 1000000};
        next.operation.out[0] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
        next.out[0] = (kernel_fill){VALUES_INTEGERS, 7};
        next.operation.out[1] = kernel_tensor(SDLF_INT32, sdlf_shape(rows_taken));
        next.operation.out[2] = kernel_tensor(t, sdlf_shape(1));
        next.operation.out[3] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
        kernel_emit(sink, &next, "of %d with rates in %s", rows_taken, sdlf_dtype_name(t));
        next.operation.in[3] = kernel_tensor(SDLF_INT32, sdlf_shape(4 * rows_taken));
        next.in[0] = (kernel_fill){VALUES_INTEGERS, 4 * rows_taken}; /* samples that have labels */
        next.in[3].values = VALUES_ANYTHING;
        next.operation.out[4] = next.operation.out[1];
        kernel_emit(sink, &next, "of %d with rates in %s and labels", rows_taken, sdlf_dtype_name(t));
    }
    if (t == SDLF_FLOAT32) shuffle_cases(sink); /* no floating-point operands: once */
    kernel_case flat = gather(SDLF_UINT8, t, SDLF_SCALAR, N);
    kernel_emit(sink, &flat, "one number a row");
}

void gather_bench(kernel_sink *sink, sdlf_dtype t)
{
    kernel_case made = gather(SDLF_UINT8, t, sdlf_shape(1, 28, 28), 1024);
    kernel_emit(sink, &made, "1024 of 1x28x28");
    made.operation.in[2] = kernel_tensor(SDLF_INT64, sdlf_shape(1));
    made.in[2] = (kernel_fill){VALUES_INTEGERS, 1000};
    made.operation.gather.augment =
        (sdlf_augmentation){.shift = 2, .rotate = 10, .scale = 0.1f, .elastic = 1, .seed = 1};
    kernel_emit(sink, &made, "1024 of 1x28x28, augmented");
    kernel_case order = shuffled(60000);
    if (t == SDLF_FLOAT32) kernel_emit(sink, &order, "of 60,000");
}
