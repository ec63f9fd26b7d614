/* SPDX-License-Identifier: MIT */
/* Reading images from bytes, through a file; and which image libraries this build has. */
#ifndef SDLF_TESTS_DATASETS_IMAGES_PICTURE_BYTES_H
#define SDLF_TESTS_DATASETS_IMAGES_PICTURE_BYTES_H

#include "testing.h"

#include <sdlf/image.h>

#if defined SDLF_HAVE_TURBOJPEG
enum { HAVE_TURBOJPEG = true };
#else
enum { HAVE_TURBOJPEG = false };
#endif
#if defined SDLF_HAVE_PNG
enum { HAVE_PNG = true };
#else
enum { HAVE_PNG = false };
#endif

/* Read the image in a file of these bytes; *picture is set on success. */
static inline sdlf_status read_bytes(sdlf_image *picture, const void *bytes, size_t size)
{
    const char *path = test_path("picture");
    test_write_file(path, bytes, size);
    return sdlf_image_read(picture, path, 0);
}

/* Check that the bytes read as an image of this size with these pixels. */
static inline void check_picture(const void *bytes, size_t size, int width, int height, int channels,
                                 const char *pixels)
{
    sdlf_image picture;
    if (!CHECK_OK(read_bytes(&picture, bytes, size))) return;
    bool same = CHECK_EQUAL(picture.width, width) && CHECK_EQUAL(picture.height, height) &&
                CHECK_EQUAL(picture.channels, channels);
    for (int i = 0; same && i < width * height * channels; i++)
        same = CHECK_EQUAL(picture.pixels[i], (unsigned char)pixels[i]);
    sdlf_image_release(&picture);
    CHECK(picture.pixels == NULL);
}

static inline sdlf_status attempt(void *path)
{
    sdlf_image picture;
    sdlf_status status = sdlf_image_read(&picture, path, 0);
    sdlf_image_release(&picture);
    return status;
}

#endif
