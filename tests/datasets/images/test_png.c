/* SPDX-License-Identifier: MIT */
/* PNG images: valid, damaged, huge; and a build that cannot read them. */
#include "datasets/images/decode.h"
#include "datasets/images/palette_png.h"
#include "datasets/images/picture_bytes.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>

/* ---- 3x2 grey; 2x1 colour; 2x1 of 16 bits; 3x1 with an alpha channel ---- */

static const unsigned char grey_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0xb8, 0x1f, 0x39, 0xc6, 0x00, 0x00, 0x00, 0x10, 0x49,
    0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x60, 0x48, 0xf9, 0xcf, 0xc0, 0xc8, 0xc4, 0x0c, 0x00, 0x07, 0x65, 0x01, 0x6a,
    0x8b, 0xec, 0x7e, 0x90, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};
static const unsigned char colour_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x7b, 0x40, 0xe8, 0xdd, 0x00, 0x00, 0x00,
    0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0xc0, 0xd0, 0xf0, 0x1f, 0x00, 0x08, 0x00,
    0x02, 0x7f, 0x25, 0x3e, 0xfc, 0x09, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};
static const unsigned char deep_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x10, 0x00, 0x00, 0x00, 0x00, 0x81, 0xd9, 0xfc, 0x15, 0x00, 0x00, 0x00,
    0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xff, 0x9f, 0x81, 0x01, 0x00, 0x06, 0xfe, 0x01, 0xff,
    0x2a, 0xdc, 0x47, 0xf5, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};
static const unsigned char clear_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x08, 0x04, 0x00, 0x00, 0x00, 0xb1, 0xe9, 0xdc, 0x3f, 0x00, 0x00, 0x00,
    0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xe0, 0xfa, 0xcf, 0xc5, 0x70, 0xe2, 0x3f, 0x00, 0x07, 0xf5,
    0x02, 0xdb, 0xaa, 0xfc, 0x37, 0x56, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void png_pictures(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    check_picture(grey_png, sizeof grey_png, 3, 2, 1, "\0\x64\xff\x01\x02\x03");
    check_picture(colour_png, sizeof colour_png, 2, 1, 3, "\xff\0\0\0\x80\xff");
    check_picture(palette_png, sizeof palette_png, 4, 1, 3, "\xff\xff\xff\xff\0\0\0\xff\0\0\0\0");
    check_picture(deep_png, sizeof deep_png, 2, 1, 1, "\xff\0");
    check_picture(clear_png, sizeof clear_png, 3, 1, 1, "\x0a\xff\xc8"); /* transparent pixels become white */
}

/* Palette images give indices, other images their usual values. */
static void indices_of_a_palette(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    sdlf_image picture;
    test_write_file(test_path("indices"), palette_png, sizeof palette_png);
    if (CHECK_OK(image_read_indices(&picture, test_path("indices")))) {
        CHECK(picture.width == 4 && picture.height == 1 && picture.channels == 1);
        CHECK(memcmp(picture.pixels, "\0\1\2\3", 4) == 0);
        sdlf_image_release(&picture);
    }
    test_write_file(test_path("indices"), colour_png, sizeof colour_png);
    if (CHECK_OK(image_read_indices(&picture, test_path("indices")))) {
        CHECK(picture.channels == 3 && memcmp(picture.pixels, "\xff\0\0\0\x80\xff", 6) == 0);
        sdlf_image_release(&picture);
    }
    test_write_file(test_path("indices"), palette_png, sizeof palette_png - 20);
    CHECK_FAILS(image_read_indices(&picture, test_path("indices")), SDLF_ERROR_FORMAT, "damaged PNG");
}

static void damaged_png(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    unsigned char bytes[sizeof grey_png];
    sdlf_image picture;
    for (size_t size = 4; size < sizeof grey_png - 12; size++) /* without its last chunk it may pass */
        CHECK_FAILS(read_bytes(&picture, grey_png, size), SDLF_ERROR_FORMAT, "picture: damaged PNG: ");
    memcpy(bytes, grey_png, sizeof bytes);
    bytes[45] ^= 1; /* in the data: the check sum tells */
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "damaged PNG: ");
    CHECK(picture.pixels == NULL);
}

static void huge_png(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    /* 900,000 x 900,000, as its header says, check sum and all */
    static const unsigned char bytes[] = {0x89, 'P', 'N', 'G', 13, 10,  26,  10, 0, 0, 0, 13, 'I',  'H',  'D',  'R', 0,
                                          13,   187, 160, 0,   13, 187, 160, 8,  0, 0, 0, 0,  0xf5, 0xd6, 0xce, 0x53};
    sdlf_image picture;
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "");
    CHECK(picture.pixels == NULL);
}

static void put(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (24 - 8 * i));
}

/* As large as a JPEG can be, with a valid header: rejected before memory is allocated. */
static void large_png(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    unsigned char bytes[sizeof grey_png];
    sdlf_image picture;
    memcpy(bytes, grey_png, sizeof bytes);
    put(bytes + 16, 65500);
    put(bytes + 20, 65500);
    put(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "65500x65500");
    CHECK(picture.pixels == NULL);
    put(bytes + 16, 8000); /* of a size that may be, with the data of 6 pixels */
    put(bytes + 20, 8000);
    put(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "damaged PNG: ");
    CHECK(picture.pixels == NULL);
    CHECK(setenv("SDLF_READ_MEMORY", "60M", 1) == 0);
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT,
                "a picture of 8000x8000: more than the 62.9 MB of memory");
    CHECK(setenv("SDLF_READ_MEMORY", "5", 1) == 0); /* and all small pictures alike */
    CHECK_FAILS(read_bytes(&picture, grey_png, sizeof grey_png), SDLF_ERROR_FORMAT, "SDLF_READ_MEMORY");
    CHECK(unsetenv("SDLF_READ_MEMORY") == 0);
    bytes[25] = 2; /* in colours */
    put(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "a picture of 8000x8000: more than the ");
    CHECK(setenv("SDLF_MEMORY", "64M", 1) == 0);
    bytes[25] = 0;
    put(bytes + 29, (uint32_t)crc32(0, bytes + 12, 17));
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_MEMORY, "half of what is available");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
    CHECK(picture.pixels == NULL);
}

/* An animated PNG gives the image that all programs show; the chunks of other frames are skipped. */
static void animated_png(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    unsigned char bytes[sizeof grey_png + 20], *chunk = bytes + 33; /* behind the header */
    memcpy(bytes, grey_png, 33);
    put(chunk, 8);
    memcpy(chunk + 4, "acTL\0\0\0\2\0\0\0", 12);
    put(chunk + 16, (uint32_t)crc32(0, chunk + 4, 12));
    memcpy(chunk + 20, grey_png + 33, sizeof grey_png - 33);
    check_picture(bytes, sizeof bytes, 3, 2, 1, "\0\x64\xff\x01\x02\x03");
}

static void without_libpng(void)
{
    sdlf_image picture;
    if (HAVE_PNG) {
        test_skip("this build has libpng");
        return;
    }
    CHECK_FAILS(read_bytes(&picture, grey_png, sizeof grey_png), SDLF_ERROR_UNSUPPORTED, "it was made without libpng");
    CHECK(strstr(sdlf_image_formats(), "PNG") == NULL);
}

static void every_allocation(void)
{
    if (!HAVE_PNG) {
        test_skip("built without libpng");
        return;
    }
    test_write_file(test_path("png"), grey_png, sizeof grey_png);
    test_every_allocation("png", attempt, (void *)test_path("png"));
}

int main(void)
{
    RUN(png_pictures);
    RUN(indices_of_a_palette);
    RUN(damaged_png);
    RUN(huge_png);
    RUN(large_png);
    RUN(animated_png);
    RUN(without_libpng);
    RUN(every_allocation);
    return test_summary();
}
