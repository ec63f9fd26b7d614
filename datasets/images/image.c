/* SPDX-License-Identifier: MIT */
#include <sdlf/image.h>

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sdlf/dataset.h>

#include "datasets/images/decode.h"
#include "datasets/images/exif.h"
#include "datasets/images/orientation.h"
#include "framework/formats/budget.h"
#include "framework/formats/read_file.h"
#include "framework/require.h"

/* No image of at most SDLF_IMAGE_MAX_PIXELS has a larger file. */
enum { MAX_FILE = 1 << 29 };

static sdlf_status check_budget(int64_t width, int64_t height, int channels, size_t stored, const char *path)
{
    enum { SMALL = 16 << 20 }; /* do not query the machine for each small image */
    int64_t bytes = width * height * channels;
    read_budget budget;
    if (bytes <= SMALL && getenv("SDLF_READ_MEMORY") == NULL) return SDLF_OK;
    sdlf_status status = read_budget_make(&budget, (int64_t)stored, 0);
    if (status != SDLF_OK || read_budget_take(&budget, bytes)) return status;
    status = read_budget_fail(&budget);
    if (bytes > budget.most) status = SDLF_ERROR_FORMAT; /* the file is to blame, not the machine: folders skip it */
    return sdlf_fail_context(status, "%s: a picture of %" PRId64 "x%" PRId64, path, width, height);
}

sdlf_status image_check_size(int64_t width, int64_t height, int channels, size_t stored, const char *path)
{
    if (width >= 1 && height >= 1 && width <= SDLF_IMAGE_MAX_PIXELS && height <= SDLF_IMAGE_MAX_PIXELS / width)
        return check_budget(width, height, channels, stored, path);
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: the picture is %" PRId64 "x%" PRId64 "; it may have 1 to %" PRId64 " pixels", path, width,
                     height, (int64_t)SDLF_IMAGE_MAX_PIXELS);
}

sdlf_status image_allocate(sdlf_image *picture, int64_t width, int64_t height, int channels, size_t stored,
                           const char *path)
{
    sdlf_status status = image_check_size(width, height, channels, stored, path);
    if (status != SDLF_OK) return status;
    picture->pixels = malloc((size_t)(width * height) * (size_t)channels);
    if (picture->pixels == NULL)
        return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for a picture of %" PRId64 "x%" PRId64, path, width,
                         height);
    picture->width = (int)width;
    picture->height = (int)height;
    picture->channels = channels;
    return SDLF_OK;
}

/* Reads image `index` of (N,H,W) or (N,C,H,W) with 1 or 3 channels, or the only one of (H,W). */
static sdlf_status read_idx(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path,
                            int64_t index)
{
    sdlf_tensor tensor;
    sdlf_status status = sdlf_idx_parse(&tensor, bytes, size, path);
    if (status != SDLF_OK) return status;
    int rank = tensor.shape.rank;
    int64_t count = rank > 2 ? tensor.shape.dim[0] : 1, channels = rank == 4 ? tensor.shape.dim[1] : 1;
    if (rank < 2 || rank > 4 || (channels != 1 && channels != 3)) {
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the IDX file holds %s, expected pictures NxHxW%s", path,
                           sdlf_shape_print(tensor.shape).text, rank == 1 ? " (these may be labels)" : "");
    } else if (index < 0 || index >= count) {
        status = sdlf_fail(SDLF_ERROR_ARGUMENT,
                           "%s: there is no picture %" PRId64 ": the file has %" PRId64 ", counted from 0", path, index,
                           count);
    } else {
        int64_t height = tensor.shape.dim[rank - 2], width = tensor.shape.dim[rank - 1], plane = height * width;
        status = image_allocate(picture, width, height, (int)channels, size, path);
        const uint8_t *from = (const uint8_t *)tensor.data + index * channels * plane;
        for (int64_t i = 0; status == SDLF_OK && i < channels * plane; i++)
            picture->pixels[i % plane * channels + i / plane] = from[i]; /* planes become pixels */
    }
    sdlf_tensor_release(&tensor, NULL);
    return status;
}

static bool begins(const unsigned char *bytes, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(bytes, magic, length) == 0;
}

/* Turns a decoded image upright, as its Exif orientation says. */
static sdlf_status upright(sdlf_image *picture, sdlf_status decoded, int orientation, const char *path)
{
    return decoded == SDLF_OK ? sdlf_fail_context(image_orient(picture, orientation), "%s", path) : decoded;
}

static sdlf_status decode(sdlf_image *picture, const unsigned char *bytes, size_t size, const char *path, int64_t index,
                          bool indices)
{
    /* IDX: 0, 0, unsigned bytes, rank; or gzip, which only IDX files may use */
    if (begins(bytes, size, "\0\0\x08", 3) || begins(bytes, size, "\x1f\x8b", 2))
        return read_idx(picture, bytes, size, path, index);
    if (index != 0)
        return sdlf_fail(SDLF_ERROR_ARGUMENT, "%s: there is no picture %" PRId64 ": only IDX files hold several", path,
                         index);
    if (begins(bytes, size, "\x89PNG", 4))
        return upright(picture, image_decode_png(picture, bytes, size, path, indices), exif_in_png(bytes, size), path);
    if (begins(bytes, size, "\xff\xd8", 2))
        return upright(picture, image_decode_jpeg(picture, bytes, size, path), exif_in_jpeg(bytes, size), path);
    if (begins(bytes, size, "BM", 2)) return image_decode_bmp(picture, bytes, size, path);
    if (size >= 2 && bytes[0] == 'P' && strchr("2356", bytes[1]) != NULL && bytes[1] != '\0')
        return image_decode_pnm(picture, bytes, size, path);
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: %s: expected PNG, JPEG, BMP, PGM, PPM or IDX", path,
                     size == 0 ? "the file is empty" : "not a picture that can be read");
}

static sdlf_status decode_or_release(sdlf_image *image, const void *bytes, size_t size, const char *name, int64_t index,
                                     bool indices)
{
    errno = 0; /* the libraries do not tell a damaged image from lack of memory */
    sdlf_status status = decode(image, bytes, size, name, index, indices);
    if (status == SDLF_ERROR_FORMAT && errno == ENOMEM)
        status = sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for its decoder", name);
    if (status != SDLF_OK) sdlf_image_release(image);
    return status;
}

sdlf_status sdlf_image_decode(sdlf_image *image, const void *bytes, size_t size, const char *name, int64_t index)
{
    SDLF_REQUIRE(image);
    *image = (sdlf_image){0};
    SDLF_REQUIRE(bytes);
    SDLF_REQUIRE(name);
    return decode_or_release(image, bytes, size, name, index, false);
}

static sdlf_status read_image(sdlf_image *image, const char *path, int64_t index, bool indices)
{
    char *bytes = NULL;
    size_t size = 0;
    *image = (sdlf_image){0};
    sdlf_status status = read_file(&bytes, &size, path, MAX_FILE);
    if (status == SDLF_OK) status = decode_or_release(image, bytes, size, path, index, indices);
    free(bytes);
    return status;
}

sdlf_status sdlf_image_read(sdlf_image *image, const char *path, int64_t index)
{
    SDLF_REQUIRE(image);
    *image = (sdlf_image){0};
    SDLF_REQUIRE(path);
    return read_image(image, path, index, false);
}

sdlf_status image_read_indices(sdlf_image *picture, const char *path)
{
    return read_image(picture, path, 0, true);
}

void sdlf_image_release(sdlf_image *image)
{
    if (image == NULL) return;
    free(image->pixels);
    *image = (sdlf_image){0};
}

#if defined SDLF_HAVE_PNG
#define PNG_FORMATS "PNG, "
#else
#define PNG_FORMATS ""
#endif
#if defined SDLF_HAVE_TURBOJPEG
#define TURBOJPEG_FORMATS "JPEG, BMP, PGM, PPM, "
#else
#define TURBOJPEG_FORMATS ""
#endif

const char *sdlf_image_formats(void)
{
    return PNG_FORMATS TURBOJPEG_FORMATS "IDX";
}
