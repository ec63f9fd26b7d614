/* From a file to a sample. See photo.h. */
#include "apps/pictures/photo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/pictures/image.h"
#include "apps/pictures/resample.h"
#include "apps/system/memory.h"

static const char *const fit_names[] = {"crop", "stretch", "auto", NULL};
static const char *const layout_names[] = {"auto", "nchw", "nhwc", NULL};
static const char *const order_names[] = {"rgb", "bgr", NULL};
static const char *const normalize_names[] = {"imagenet", "unit", "signed", "none", "auto", NULL};
enum { NORMALIZE_IMAGENET = 0, NORMALIZE_AUTO = 4 };

/* Of samples from 0 to 1, as the names above. */
static const double means[][3] = {{0.485, 0.456, 0.406}, {0, 0, 0}, {0.5, 0.5, 0.5}, {0, 0, 0}};
static const double deviations[][3] = {
    {0.229, 0.224, 0.225}, {1, 1, 1}, {0.5, 0.5, 0.5}, {1 / 255.0, 1 / 255.0, 1 / 255.0}};

const argument photo_arguments[] = {
    {.name = "Pictures", .type = ARGUMENT_HEADING},
    {"fit", ARGUMENT_CHOICE, offsetof(photo_settings, fit), "HOW", .choices = fit_names, .fallback = "auto",
     .help = "crop: scale to cover, keep the middle; stretch: the whole picture, in the network's proportions; auto: "
             "stretch where the file says how its samples were normalized, else crop"},
    {"crop", ARGUMENT_FLOAT, offsetof(photo_settings, crop), "PART", .minimum = 0, .maximum = 1, .above = true,
     .fallback = "0.875", .help = "with --fit crop: the part of the shorter side that is kept (224 of 256)"},
    {"normalize", ARGUMENT_CHOICE, offsetof(photo_settings, normalize), "HOW", .choices = normalize_names,
     .fallback = "auto",
     .help = "imagenet: by its mean and deviation; unit: 0 to 1; signed: -1 to 1; none: 0 to 255; auto: as in training "
             "where the file says how that was, else imagenet"},
    {"mean", ARGUMENT_TEXT, offsetof(photo_settings, mean), "R,G,B", .help = "another mean, of samples from 0 to 1"},
    {"std", ARGUMENT_TEXT, offsetof(photo_settings, std), "R,G,B", .help = "another deviation, of samples from 0 to 1"},
    {"layout", ARGUMENT_CHOICE, offsetof(photo_settings, layout), "ORDER", .choices = layout_names, .fallback = "auto",
     .help = "channels first or last; auto: where 1 or 3 stands in the input's shape"},
    {"channels", ARGUMENT_CHOICE, offsetof(photo_settings, order), "ORDER", .choices = order_names, .fallback = "rgb",
     .help = "order of the colours"},
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

sdlf_status photo_complete(photo_settings *s, const sdlf_normalization *own)
{
    bool known = own != NULL && own->known && own->scale != 0;
    if (s->fit == PHOTO_FIT_AUTO) s->fit = known ? PHOTO_STRETCH : PHOTO_CROP;
    int named = s->normalize == NORMALIZE_AUTO ? NORMALIZE_IMAGENET : s->normalize;
    memcpy(s->mean_of, means[named], sizeof s->mean_of);
    memcpy(s->std_of, deviations[named], sizeof s->std_of);
    for (int i = 0; i < 3 && known && s->normalize == NORMALIZE_AUTO; i++) { /* theirs is of samples from 0 to 255 */
        s->mean_of[i] = (double)own->mean / 255;
        s->std_of[i] = 1 / (255 * (double)own->scale);
    }
    sdlf_status status = read_numbers(s->mean_of, s->mean, "mean", false);
    return status == SDLF_OK ? read_numbers(s->std_of, s->std, "std", true) : status;
}

static bool is_channels(int64_t dim)
{
    return dim == 1 || dim == 3;
}

sdlf_status photo_read(float *sample, sdlf_shape shape, const char *path, const photo_settings *s)
{
    bool first = s->layout == PHOTO_NCHW || (s->layout == PHOTO_AUTO && shape.rank == 3 && is_channels(shape.dim[0]));
    int64_t channels = first ? shape.dim[0] : shape.dim[2];
    int64_t rows = first ? shape.dim[1] : shape.dim[0], columns = first ? shape.dim[2] : shape.dim[1];
    if (shape.rank != 3 || !is_channels(channels) || rows > 65536 || columns > 65536)
        return sdlf_fail(SDLF_ERROR_SHAPE, "%s: the input takes samples of %s, and a picture has (C,H,W) or (H,W,C)",
                         path, sdlf_shape_print(shape).text);
    image picture = {0};
    sdlf_status status = image_read(&picture, path, 0);
    if (status != SDLF_OK) return status;
    double height = picture.height, width = picture.width;
    if (s->fit == PHOTO_CROP) { /* the largest part of the network's proportions, and of it the middle */
        double scale =
            height / (double)rows < width / (double)columns ? height / (double)rows : width / (double)columns;
        height = scale * (double)rows * s->crop;
        width = scale * (double)columns * s->crop;
    }
    float *pixels = memory_allocate((size_t)(rows * columns * channels) * sizeof *pixels);
    resample(pixels, (int)rows, (int)columns, (int)channels, &picture, (picture.height - height) / 2,
             (picture.width - width) / 2, height, width);
    for (int64_t i = 0; i < rows * columns; i++)
        for (int64_t c = 0; c < channels; c++) {
            int64_t colour = s->order == 1 ? channels - 1 - c : c;
            double value = ((double)pixels[colour * rows * columns + i] / 255 - s->mean_of[colour]) / s->std_of[colour];
            sample[first ? c * rows * columns + i : i * channels + c] = (float)value;
        }
    free(pixels);
    image_release(&picture);
    return SDLF_OK;
}
