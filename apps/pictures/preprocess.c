/* SPDX-License-Identifier: MIT */
/* From a file to a sample. See preprocess.h. */
#include "apps/pictures/preprocess.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/image.h>

#include "apps/input/bytes.h"
#include "apps/pictures/picture.h"

const char *const preprocess_kind_names[] = {"auto", "imagenet", "cifar10", "tf", "unit", "none", NULL};
static const char *const fit_names[] = {"auto", "crop", "stretch", "whole", "digit", NULL};
static const char *const layout_names[] = {"auto", "nchw", "nhwc", NULL};
static const char *const order_names[] = {"rgb", "bgr", NULL};

/* For samples from 0 to 1, indexed by preprocess_kind. */
static const double means[][3] = {
    [PREPROCESS_IMAGENET] = {0.485, 0.456, 0.406},
    [PREPROCESS_CIFAR10] = {0.4914, 0.4822, 0.4465},
    [PREPROCESS_TF] = {0.5, 0.5, 0.5},
    [PREPROCESS_UNIT] = {0, 0, 0},
    [PREPROCESS_NONE] = {0, 0, 0},
};
static const double deviations[][3] = {
    [PREPROCESS_IMAGENET] = {0.229, 0.224, 0.225},
    [PREPROCESS_CIFAR10] = {0.2470, 0.2435, 0.2616},
    [PREPROCESS_TF] = {0.5, 0.5, 0.5},
    [PREPROCESS_UNIT] = {1, 1, 1},
    [PREPROCESS_NONE] = {1 / 255.0, 1 / 255.0, 1 / 255.0},
};

const argument preprocess_arguments[] = {
    {.name = "Pictures", .type = ARGUMENT_HEADING},
    {"preprocess", ARGUMENT_CHOICE, offsetof(preprocess_settings, kind), "KIND", .choices = preprocess_kind_names,
     .fallback = "auto",
     .help =
         "how samples are normalised. imagenet: 0 to 1, then by ImageNet's mean and deviation, as torchvision does; "
         "cifar10: the same with CIFAR-10's; tf: -1 to 1; unit: 0 to 1; none: 0 to 255; auto: as in training, by the "
         "model's file"},
    {"mean", ARGUMENT_TEXT, offsetof(preprocess_settings, mean), "R,G,B",
     .help = "another mean, of samples from 0 to 1"},
    {"std", ARGUMENT_TEXT, offsetof(preprocess_settings, std), "R,G,B",
     .help = "another deviation, of samples from 0 to 1"},
    {"fit", ARGUMENT_CHOICE, offsetof(preprocess_settings, fit), "HOW", .choices = fit_names, .fallback = "auto",
     .help = "crop: keep the middle, in the network's proportions; stretch: scale all of it to these; whole: all of "
             "it, padded with black; digit: cut a digit out, scale and centre it; auto: digit if the network takes "
             "grey and the size is not its own, whole if the file says how samples are normalised, else crop"},
    {"crop", ARGUMENT_FLOAT, offsetof(preprocess_settings, crop), "PART", .minimum = 0, .maximum = 1, .above = true,
     .fallback = "0.875", .help = "with --fit crop: the part of the shorter side that is kept (224 of 256)"},
    {"invert", ARGUMENT_CHOICE, offsetof(preprocess_settings, invert), "WHEN", .choices = picture_choice_names,
     .fallback = "auto",
     .help = "swap black and white; auto: if the network takes grey, the border is light, and --fit is auto or digit"},
    {"layout", ARGUMENT_CHOICE, offsetof(preprocess_settings, layout), "ORDER", .choices = layout_names,
     .fallback = "auto", .help = "channels first or last; auto: by where 1 or 3 is in the input's shape"},
    {"channels", ARGUMENT_CHOICE, offsetof(preprocess_settings, order), "ORDER", .choices = order_names,
     .fallback = "rgb", .help = "order of the colours"},
    {0},
};

static sdlf_status read_numbers(double *out, const char *text, const char *option, bool positive)
{
    if (text == NULL) return SDLF_OK;
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        out[i] = strtod(at, &end);
        bool last = i == 2 || (i == 0 && *end == '\0');
        if (end == at || *end != (last ? '\0' : ',') || !isfinite(out[i]) || (positive && !(out[i] > 0)))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s %s: expected one number or three with commas%s", option, text,
                             positive ? ", above 0" : "");
        if (last && i == 0) {
            out[1] = out[2] = out[0];
            break;
        }
        at = end + 1;
    }
    return SDLF_OK;
}

sdlf_status preprocess_check(const preprocess_settings *s)
{
    double unused[3];
    sdlf_status status = read_numbers(unused, s->mean, "mean", false);
    return status == SDLF_OK ? read_numbers(unused, s->std, "std", true) : status;
}

sdlf_status preprocess_refuse(const arguments *given, const char *path)
{
    for (const argument *row = preprocess_arguments; row->name != NULL; row++)
        if (row->type != ARGUMENT_HEADING && arguments_given(given, row->name))
            return sdlf_fail(SDLF_ERROR_ARGUMENT, "--%s is for pictures, but %s is not one", row->name, path);
    return SDLF_OK;
}

sdlf_status preprocess_normalization(sdlf_channel_normalization *channels, preprocess_kind kind, int64_t count)
{
    bool same = means[kind][0] == means[kind][1] && deviations[kind][0] == deviations[kind][1];
    if (count < 1 || count > SDLF_NORMALIZED_CHANNELS || (count != 3 && !same))
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s has a mean for each of 3 channels, but samples have %lld",
                         preprocess_kind_names[kind], (long long)count);
    channels->count = (int)count;
    for (int i = 0; i < channels->count; i++) {
        int c = i < 3 ? i : 0;
        channels->mean[i] = (float)(255 * means[kind][c]);
        channels->scale[i] = (float)(1 / (255 * deviations[kind][c]));
    }
    return SDLF_OK;
}

sdlf_status preprocess_complete(preprocess_settings *s, const sdlf_normalization *own, const char *path)
{
    const sdlf_channel_normalization *channels = &own->channels;
    bool known = own->known && (channels->count > 0 || own->scale != 0);
    if (!known && s->kind == PREPROCESS_AUTO && (s->mean == NULL || s->std == NULL))
        return sdlf_fail(SDLF_ERROR_ARGUMENT,
                         "%s: the file does not say how its pictures are preprocessed: expected --preprocess imagenet, "
                         "tf, unit or none, or --mean and --std",
                         path);
    s->as_in_training = known && s->kind == PREPROCESS_AUTO;
    for (int i = 0; i < 3; i++) { /* the file's are for samples from 0 to 255 */
        int c = i < channels->count ? i : 0;
        double mean = (double)(channels->count > 0 ? channels->mean[c] : own->mean);
        double scale = (double)(channels->count > 0 ? channels->scale[c] : own->scale);
        s->mean_of[i] = s->as_in_training ? mean / 255 : means[s->kind][i];
        s->std_of[i] = s->as_in_training ? 1 / (255 * scale) : deviations[s->kind][i];
    }
    if (s->as_in_training && s->fit == PREPROCESS_FIT_AUTO && own->fit != SDLF_FIT_WHOLE) {
        s->fit = own->fit == SDLF_FIT_CROP ? PREPROCESS_CROP : PREPROCESS_STRETCH;
        s->crop = 1; /* as data sets do */
    }
    sdlf_status status = read_numbers(s->mean_of, s->mean, "mean", false);
    return status == SDLF_OK ? read_numbers(s->std_of, s->std, "std", true) : status;
}

static bool is_channels(int64_t dim)
{
    return dim == 1 || dim == 3;
}

sdlf_status preprocess_frame_of(preprocess_frame *frame, sdlf_shape shape, const preprocess_settings *s)
{
    enum { LONGEST = 65536 };
    bool picture = shape.rank == 3;
    bool first =
        s->layout == PREPROCESS_NCHW || (s->layout == PREPROCESS_LAYOUT_AUTO && picture && is_channels(shape.dim[0]));
    int64_t channels = picture ? shape.dim[first ? 0 : 2] : 0;
    int64_t rows = shape.dim[first ? 1 : 0], columns = shape.dim[first ? 2 : 1];
    if (!picture || !is_channels(channels) || rows > LONGEST || columns > LONGEST)
        return sdlf_fail(SDLF_ERROR_SHAPE, "the network takes samples of %s; pictures are 1xHxW, 3xHxW, HxWx1 or HxWx3",
                         sdlf_shape_print(shape).text);
    if (channels == 3 && s->fit == PREPROCESS_DIGIT)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "--fit digit: digits are cut out in grey, but the network expects %s",
                         sdlf_shape_print(shape).text);
    *frame = (preprocess_frame){(int)channels, (int)rows, (int)columns, first};
    return SDLF_OK;
}

/* Crops the image to the part that fills the frame. */
static sdlf_status cut(float *pixels, preprocess_frame frame, const sdlf_image *picture, const preprocess_settings *s)
{
    double height = picture->height, width = picture->width;
    if (s->fit != PREPROCESS_STRETCH) { /* the largest part of the network's proportions, then its centre */
        double scale = fmin(height / frame.rows, width / frame.columns);
        height = scale * frame.rows * s->crop;
        width = scale * frame.columns * s->crop;
    }
    sdlf_status status = sdlf_image_resize(pixels, frame.rows, frame.columns, frame.channels, picture,
                                           (picture->height - height) / 2, (picture->width - width) / 2, height, width);
    size_t count = (size_t)frame.channels * (size_t)frame.rows * (size_t)frame.columns;
    for (size_t i = 0; s->invert == PICTURE_YES && i < count; i++) pixels[i] = 255 - pixels[i];
    return status;
}

static sdlf_status fit(float *pixels, preprocess_frame frame, const sdlf_image *picture, const preprocess_settings *s)
{
    bool automatic = s->fit == PREPROCESS_FIT_AUTO;
    bool grey = frame.channels == 1;
    if (s->fit == PREPROCESS_CROP || s->fit == PREPROCESS_STRETCH || (automatic && !grey && !s->as_in_training))
        return cut(pixels, frame, picture, s);
    bool digit = s->fit == PREPROCESS_DIGIT;
    picture_options options = {.invert = (picture_choice)s->invert,
                               .fit = automatic && grey ? PICTURE_AUTO
                                      : digit           ? PICTURE_YES
                                                        : PICTURE_NO};
    if (s->fit == PREPROCESS_WHOLE && s->invert == PICTURE_AUTO) options.invert = PICTURE_NO;
    return picture_prepare(pixels, sdlf_shape(frame.channels, frame.rows, frame.columns), picture, &options);
}

static void normalize(float *sample, const float *pixels, preprocess_frame frame, const preprocess_settings *s)
{
    size_t plane = (size_t)frame.rows * (size_t)frame.columns, channels = (size_t)frame.channels;
    for (size_t c = 0; c < channels; c++) {
        size_t colour = s->order == PREPROCESS_BGR ? channels - 1 - c : c;
        for (size_t i = 0; i < plane; i++) {
            double value = ((double)pixels[colour * plane + i] / 255 - s->mean_of[colour]) / s->std_of[colour];
            sample[frame.first ? c * plane + i : i * channels + c] = (float)value;
        }
    }
}

/* Decodes the image of a file, or of a pipe, where a signal ends the wait. */
static sdlf_status read_picture(sdlf_image *picture, const char *path, int64_t index)
{
    enum { MAX_FILE = 1 << 29 };
    unsigned char *bytes = NULL;
    size_t size = 0;
    sdlf_status status = input_read(&bytes, &size, path, MAX_FILE);
    if (status == SDLF_OK) status = sdlf_image_decode(picture, bytes, size, path, index);
    free(bytes);
    return status;
}

sdlf_status preprocess_image(float *sample, float *pixels, preprocess_frame frame, const sdlf_image *picture,
                             const preprocess_settings *s)
{
    sdlf_status status = fit(pixels, frame, picture, s);
    if (status == SDLF_OK) normalize(sample, pixels, frame, s);
    return status;
}

sdlf_status preprocess_read(float *sample, float *pixels, preprocess_frame frame, const char *path, int64_t index,
                            const preprocess_settings *s)
{
    sdlf_image picture = {0};
    sdlf_status status = read_picture(&picture, path, index);
    if (status == SDLF_OK) status = preprocess_image(sample, pixels, frame, &picture, s);
    sdlf_image_release(&picture);
    return status;
}
