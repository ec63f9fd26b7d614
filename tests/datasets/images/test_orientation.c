/* SPDX-License-Identifier: MIT */
/* The eight orientations in which an image can be stored, all of which give the same upright image, also from files of
 * each format. */
#include "datasets/images/orientation.h"

#include <stdlib.h>
#include <string.h>

#if defined SDLF_HAVE_TURBOJPEG
#include <turbojpeg.h>
#endif
#if defined SDLF_HAVE_PNG
#include <png.h>
#endif

#include "datasets/images/exif_bytes.h"
#include "datasets/images/picture_bytes.h"

enum { WIDTH = 3, HEIGHT = 2 };

/* "abc" above "def", as stored with each orientation: written by hand from Exif's table, not computed. */
static const struct {
    int width, height;
    const char *stored;
} ways[9] = {
    [1] = {3, 2, "abcdef"}, [2] = {3, 2, "cbafed"}, [3] = {3, 2, "fedcba"}, [4] = {3, 2, "defabc"},
    [5] = {2, 3, "adbecf"}, [6] = {2, 3, "cfbead"}, [7] = {2, 3, "fcebda"}, [8] = {2, 3, "daebfc"},
};

static void every_orientation(void)
{
    for (int channels = 1; channels <= 3; channels += 2) {
        for (int way = 0; way <= 9; way++) {
            int at = way >= 1 && way <= 8 ? way : 1; /* other numbers mean nothing */
            sdlf_image picture = {.width = ways[at].width, .height = ways[at].height, .channels = channels};
            picture.pixels = malloc((size_t)(WIDTH * HEIGHT * channels));
            for (int i = 0; i < WIDTH * HEIGHT * channels; i++)
                picture.pixels[i] = (uint8_t)(ways[at].stored[i / channels] + i % channels);
            CHECK_OK(image_orient(&picture, way));
            CHECK(picture.width == WIDTH && picture.height == HEIGHT);
            for (int i = 0; i < WIDTH * HEIGHT * channels; i++)
                CHECK_EQUAL(picture.pixels[i], "abcdef"[i / channels] + i % channels);
            sdlf_image_release(&picture);
        }
    }
}

static sdlf_status turn(void *argument)
{
    (void)argument;
    sdlf_image picture = {.width = 2, .height = 1, .channels = 1, .pixels = malloc(2)};
    if (picture.pixels == NULL) return SDLF_ERROR_MEMORY;
    memset(picture.pixels, 1, 2);
    sdlf_status status = image_orient(&picture, 6);
    CHECK(status != SDLF_OK ? picture.width == 2 : picture.width == 1);
    sdlf_image_release(&picture);
    return status;
}

static void every_allocation(void)
{
    test_every_allocation("turn", turn, NULL);
}

#if defined SDLF_HAVE_TURBOJPEG || defined SDLF_HAVE_PNG
/* An image of 32x16 with a white top left corner. Stored with orientation 6, it is read as 16x32 with the white corner
 * at the top right. */
static void check_turned(const unsigned char *bytes, size_t size)
{
    sdlf_image picture;
    if (!CHECK_OK(read_bytes(&picture, bytes, size))) return;
    if (CHECK(picture.width == 16 && picture.height == 32)) {
        CHECK(picture.pixels[(2 * 16 + 13) * picture.channels] > 200);
        CHECK(picture.pixels[(2 * 16 + 2) * picture.channels] < 50);
        CHECK(picture.pixels[(29 * 16 + 13) * picture.channels] < 50);
    }
    sdlf_image_release(&picture);
}

static void white_corner(unsigned char pixels[32 * 16])
{
    memset(pixels, 0, 32 * 16);
    for (int y = 0; y < 8; y++) memset(pixels + 32 * y, 255, 8);
}
#endif

static void out_of_a_jpeg(void)
{
#if defined SDLF_HAVE_TURBOJPEG
    unsigned char pixels[32 * 16], *bytes = NULL, *file, segment[EXIF_BYTES];
    unsigned long size = 0;
    white_corner(pixels);
    tjhandle handle = tjInitCompress();
    CHECK(tjCompress2(handle, pixels, 32, 0, 16, TJPF_GRAY, &bytes, &size, TJSAMP_GRAY, 95, 0) == 0);
    size_t more = (size_t)(exif_put_segment(segment, 6, 1) - segment);
    file = malloc(size + more);
    memcpy(file, bytes, 2);
    memcpy(file + 2, segment, more);
    memcpy(file + 2 + more, bytes + 2, size - 2);
    check_turned(file, size + more);
    free(file);
    tjFree(bytes);
    tjDestroy(handle);
#else
    test_skip("built without libturbojpeg");
#endif
}

static void out_of_a_png(void)
{
#if defined SDLF_HAVE_PNG
    unsigned char pixels[32 * 16], bytes[4096], file[4096 + EXIF_BYTES], chunk[EXIF_BYTES];
    png_alloc_size_t size = sizeof bytes;
    white_corner(pixels);
    png_image png = {.version = PNG_IMAGE_VERSION, .width = 32, .height = 16, .format = PNG_FORMAT_GRAY};
    CHECK(png_image_write_to_memory(&png, bytes, &size, 0, pixels, 0, NULL) != 0);
    enum { HEADER = 33 }; /* the signature and the first chunk; the decoder does not check our chunk's checksum */
    unsigned char *end = exif_put_tiff(chunk + 8, 6, 0);
    exif_put(chunk, (unsigned long)(end - chunk - 8), 4, 0);
    memcpy(chunk + 4, "eXIf", 4);
    memcpy(end, "\0\0\0\0", 4);
    size_t more = (size_t)(end + 4 - chunk);
    memcpy(file, bytes, HEADER);
    memcpy(file + HEADER, chunk, more);
    memcpy(file + HEADER + more, bytes + HEADER, size - HEADER);
    check_turned(file, size + more);
#else
    test_skip("built without libpng");
#endif
}

int main(void)
{
    RUN(every_orientation);
    RUN(every_allocation);
    RUN(out_of_a_jpeg);
    RUN(out_of_a_png);
    return test_summary();
}
