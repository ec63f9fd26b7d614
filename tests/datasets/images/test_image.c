/* SPDX-License-Identifier: MIT */
/* Images of every format but PNG (test_png.c), and files that only pretend to be images. */
#include "datasets/images/picture_bytes.h"

#include <string.h>

#if defined SDLF_HAVE_TURBOJPEG
#include <turbojpeg.h>
#endif

/* ---- PGM, PPM, BMP ---- */

static void portable_maps(void)
{
    if (!HAVE_TURBOJPEG) {
        test_skip("built without libturbojpeg");
        return;
    }
    static const char binary[] = "P5\n# a comment 7\n3 2\n255\n\x01\x02\x03\xff\x80\x7f";
    static const char plain[] = "P2 3 1 255\n0 128 255\n";
    static const char colour[] = "P6 1 2 255\n\x01\x02\x03\xff\x80\x7f";
    check_picture(binary, sizeof binary - 1, 3, 2, 1, "\x01\x02\x03\xff\x80\x7f");
    check_picture(plain, sizeof plain - 1, 3, 1, 1, "\0\x80\xff");
    check_picture(colour, sizeof colour - 1, 1, 2, 3, "\x01\x02\x03\xff\x80\x7f");
}

static void damaged_portable_maps(void)
{
    if (!HAVE_TURBOJPEG) {
        test_skip("built without libturbojpeg");
        return;
    }
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"P5", "damaged PGM: its header has no width and height"},
        {"P5 3", "damaged PGM: its header has no width and height"},
        {"P5 # 3 2", "damaged PGM: its header has no width and height"},
        {"P6 -3 2 255\n", "damaged PPM: its header has no width and height"},
        {"P5 0 2 255\n", "the picture is 0x2; it may have 1 to 67108864 pixels"},
        {"P5 99999 99999 255\n", "the picture is 99999x99999; it may have 1 to 67108864 pixels"},
        {"P5 99999999999999999999999 2 255\n", "it may have 1 to 67108864 pixels"},
        {"P5 671088641 1 255\n1", "the picture is 671088641x1; it may have 1 to 67108864 pixels"},
        {"P5 3 2 255\n12345", "cannot read this PGM: "},
        {"P5 3 2 0\n123456", "cannot read this PGM: "},
        {"P5 3 2 99999999\n123456", "cannot read this PGM: "},
        {"P5 3 2 x\n123456", "cannot read this PGM: "},
        {"P2 2 1 255\n1 x", "cannot read this PGM: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sdlf_image picture;
        CHECK_FAILS(read_bytes(&picture, cases[i].text, strlen(cases[i].text)), SDLF_ERROR_FORMAT, cases[i].message);
        CHECK(picture.pixels == NULL);
    }
}

/* A BMP of 24 bits, 2x2, rows from the bottom, each padded to 4 bytes. */
static void make_bmp(unsigned char bytes[70])
{
    memset(bytes, 0, 70);
    memcpy(bytes, "BM", 2);
    bytes[2] = 70, bytes[10] = 54, bytes[14] = 40, bytes[18] = 2, bytes[22] = 2, bytes[26] = 1, bytes[28] = 24;
    memcpy(bytes + 54, "\x00\x00\xff\x00\xff\x00", 6); /* the lower row: red, green; in the order blue, green, red */
    memcpy(bytes + 62, "\xff\x00\x00\xff\xff\xff", 6); /* the upper row: blue, white */
}

static void bitmaps(void)
{
    if (!HAVE_TURBOJPEG) {
        test_skip("built without libturbojpeg");
        return;
    }
    unsigned char bytes[70];
    sdlf_image picture;
    make_bmp(bytes);
    check_picture(bytes, sizeof bytes, 2, 2, 3, "\0\0\xff\xff\xff\xff\xff\0\0\0\xff\0");
    CHECK_FAILS(read_bytes(&picture, bytes, 20), SDLF_ERROR_FORMAT, "damaged BMP: it ends in its header");
    CHECK_FAILS(read_bytes(&picture, bytes, 60), SDLF_ERROR_FORMAT, "cannot read this BMP: ");
    memset(bytes + 18, 0x7f, 8);
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT,
                "the picture is 2139062143x2139062143; it may have");
    bytes[25] = 0xff;
    CHECK_FAILS(read_bytes(&picture, bytes, sizeof bytes), SDLF_ERROR_FORMAT, "it may have");
}

/* ---- JPEG ---- */

static void jpeg_pictures(void)
{
#if defined SDLF_HAVE_TURBOJPEG
    /* flat images, which JPEG preserves within rounding */
    unsigned char colour[16 * 8 * 3], grey[16 * 8];
    for (int i = 0; i < 16 * 8; i++) {
        memcpy(colour + 3 * i, "\xc8\x64\x32", 3);
        grey[i] = 77;
    }
    for (int channels = 1; channels <= 3; channels += 2) {
        tjhandle handle = tjInitCompress();
        unsigned char *bytes = NULL;
        unsigned long size = 0;
        CHECK(tjCompress2(handle, channels == 1 ? grey : colour, 16, 0, 8, channels == 1 ? TJPF_GRAY : TJPF_RGB, &bytes,
                          &size, channels == 1 ? TJSAMP_GRAY : TJSAMP_444, 95, 0) == 0);
        sdlf_image picture;
        if (CHECK_OK(read_bytes(&picture, bytes, size))) {
            CHECK(picture.width == 16 && picture.height == 8 && picture.channels == channels);
            for (int i = 0; i < channels; i++)
                CHECK_CLOSE(picture.pixels[8 * channels + i], channels == 1 ? 77 : colour[i], 3);
            sdlf_image_release(&picture);
        }
        for (unsigned long cut = 2; cut < size - 2; cut += 7)
            CHECK_FAILS(read_bytes(&picture, bytes, cut), SDLF_ERROR_FORMAT, "JPEG: ");
        unsigned long frame = 2; /* its header says another size than there is: as large as a JPEG can be */
        while (frame + 9 < size && !(bytes[frame] == 0xff && bytes[frame + 1] == 0xc0)) frame++;
        memcpy(bytes + frame + 5, "\xff\xdc\xff\xdc", 4);
        CHECK_FAILS(read_bytes(&picture, bytes, size), SDLF_ERROR_FORMAT, "65500x65500");
        tjFree(bytes);
        tjDestroy(handle);
    }
#else
    test_skip("built without libturbojpeg");
#endif
}

/* CMYK images have no colours that a network can use. */
static void jpeg_of_four_inks(void)
{
#if defined SDLF_HAVE_TURBOJPEG
    unsigned char inks[16 * 8 * 4] = {0};
    unsigned char *bytes = NULL;
    unsigned long size = 0;
    tjhandle handle = tjInitCompress();
    sdlf_image picture;
    CHECK(tjCompress2(handle, inks, 16, 0, 8, TJPF_CMYK, &bytes, &size, TJSAMP_444, 95, 0) == 0);
    CHECK_FAILS(read_bytes(&picture, bytes, size), SDLF_ERROR_FORMAT, "its colours are CMYK; expected RGB or grey");
    tjFree(bytes);
    tjDestroy(handle);
#else
    test_skip("built without libturbojpeg");
#endif
}

#if defined SDLF_HAVE_TURBOJPEG
/* A progressive image of 8x8 with a number of scans, of 12 bytes each, that change nothing. */
static size_t write_scans(unsigned char *to, int scans)
{
    static const unsigned char begin[] = {0xff, 0xd8, 0xff, 0xc2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
    static const unsigned char codes[] = {0xff, 0xc4, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const unsigned char constant[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 0, 1, 0x7f};
    static const unsigned char others[] = {0xff, 0xda, 0, 8, 1, 1, 0, 1, 63, 0, 0x7f}; /* one bit: none */
    unsigned char *at = to;
    memcpy(at, begin, sizeof begin), at += sizeof begin;
    *at++ = 0xff, *at++ = 0xdb, *at++ = 0, *at++ = 67, *at++ = 0;
    memset(at, 1, 64), at += 64;
    for (int kind = 0; kind < 2; kind++) {
        memcpy(at, codes, sizeof codes);
        at[4] = (unsigned char)(16 * kind);
        at += sizeof codes;
    }
    memcpy(at, constant, sizeof constant), at += sizeof constant;
    for (int i = 1; i < scans; i++) memcpy(at, others, sizeof others), at += sizeof others;
    *at++ = 0xff, *at++ = 0xd9;
    return (size_t)(at - to);
}
#endif

/* Each scan of a few bytes costs a pass over the whole image. */
static void jpeg_of_many_scans(void)
{
#if defined SDLF_HAVE_TURBOJPEG
    enum { MOST = 500 };
    static unsigned char bytes[200 + (MOST + 1) * 12];
    sdlf_image picture;
    size_t size = write_scans(bytes, MOST);
    if (CHECK_OK(read_bytes(&picture, bytes, size))) sdlf_image_release(&picture);
    /* data after the image, such as a video, is not read */
    size = write_scans(bytes, 3);
    for (int i = 0; i <= MOST; i++) bytes[size++] = 0xff, bytes[size++] = 0xda;
    if (CHECK_OK(read_bytes(&picture, bytes, size))) sdlf_image_release(&picture);
    size = write_scans(bytes, MOST + 1);
    CHECK_FAILS(read_bytes(&picture, bytes, size), SDLF_ERROR_FORMAT, "this JPEG has more than 500 scans");
#else
    test_skip("built without libturbojpeg");
#endif
}

/* ---- IDX ---- */

static void idx_pictures(void)
{
    static const unsigned char many[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    static const unsigned char one[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9};
    static const unsigned char planes[] = {0, 0, 8, 4, 0, 0, 0, 1, 0, 0,  0,  3,  0,
                                           0, 0, 1, 0, 0, 0, 2, 1, 2, 11, 12, 21, 22};
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 2};
    sdlf_image picture;
    check_picture(many, sizeof many, 3, 1, 1, "\1\2\3");
    check_picture(one, sizeof one, 3, 1, 1, "\7\10\11");
    check_picture(planes, sizeof planes, 2, 1, 3, "\1\13\25\2\14\26");
    const char *path = test_path("many");
    test_write_file(path, many, sizeof many);
    if (CHECK_OK(sdlf_image_read(&picture, path, 1))) {
        CHECK_EQUAL(picture.pixels[0], 4);
        sdlf_image_release(&picture);
    }
    CHECK_FAILS(sdlf_image_read(&picture, path, 2), SDLF_ERROR_ARGUMENT,
                "there is no picture 2: the file has 2, counted from 0");
    CHECK_FAILS(sdlf_image_read(&picture, path, -1), SDLF_ERROR_ARGUMENT, "there is no picture -1");
    CHECK_FAILS(read_bytes(&picture, labels, sizeof labels), SDLF_ERROR_FORMAT, "holds 2, expected pictures");
    CHECK_FAILS(read_bytes(&picture, many, sizeof many - 1), SDLF_ERROR_FORMAT, "");
}

/* ---- anything else ---- */

static void no_pictures(void)
{
    sdlf_image picture;
    CHECK_FAILS(sdlf_image_read(&picture, test_path("none"), 0), SDLF_ERROR_IO, "No such file or directory");
    CHECK_FAILS(sdlf_image_read(&picture, test_path("."), 0), SDLF_ERROR_IO, "it is a folder");
    CHECK_FAILS(read_bytes(&picture, "", 0), SDLF_ERROR_FORMAT,
                "the file is empty: expected PNG, JPEG, BMP, PGM, PPM or IDX");
    CHECK_FAILS(read_bytes(&picture, "%PDF-1.4", 8), SDLF_ERROR_FORMAT,
                "not a picture that can be read: expected PNG, ");
    CHECK_FAILS(read_bytes(&picture, "P\0", 2), SDLF_ERROR_FORMAT, "not a picture that can be read");
    CHECK_FAILS(read_bytes(&picture, "P4 1 1\n1", 8), SDLF_ERROR_FORMAT, "not a picture that can be read");
    test_write_file(test_path("second"), "P5 1 1 255\n1", 12);
    CHECK_FAILS(sdlf_image_read(&picture, test_path("second"), 1), SDLF_ERROR_ARGUMENT,
                "there is no picture 1: only IDX files hold several");
    CHECK(strstr(sdlf_image_formats(), "IDX") != NULL);
}

/* Animations: it is unclear whether the first frame is meant. */
static void animated_files(void)
{
    static const char gif[] =
        "GIF89a\1\0\1\0\200\0\0\0\0\0\377\377\377!\377\13NETSCAPE2.0\3\1\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    static const char webp[] = "RIFF\44\0\0\0WEBPVP8X\12\0\0\0\2\0\0\0\0\0\0\0\0\0ANIM\6\0\0\0\0\0\0\0\0\0";
    sdlf_image picture;
    CHECK_FAILS(read_bytes(&picture, gif, sizeof gif - 1), SDLF_ERROR_FORMAT, "not a picture that can be read");
    CHECK_FAILS(read_bytes(&picture, webp, sizeof webp - 1), SDLF_ERROR_FORMAT, "not a picture that can be read");
    CHECK(picture.pixels == NULL);
}

static void without_turbojpeg(void)
{
    sdlf_image picture;
    if (HAVE_TURBOJPEG) {
        test_skip("this build has libturbojpeg");
        return;
    }
    CHECK_FAILS(read_bytes(&picture, "P5 1 1 255\n1", 12), SDLF_ERROR_UNSUPPORTED, "it was made without libturbojpeg");
    CHECK_FAILS(read_bytes(&picture, "BM", 2), SDLF_ERROR_UNSUPPORTED, "this build reads no BMP");
    CHECK_FAILS(read_bytes(&picture, "\xff\xd8", 2), SDLF_ERROR_UNSUPPORTED, "this build reads no JPEG");
}

static void every_allocation(void)
{
    static const unsigned char idx[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 3, 7, 8, 9};
    static const char pgm[] = "P5 1 1 255\n1";
    test_write_file(test_path("idx"), idx, sizeof idx);
    test_write_file(test_path("pgm"), pgm, sizeof pgm - 1);
    test_every_allocation("idx", attempt, (void *)test_path("idx"));
    if (HAVE_TURBOJPEG) test_every_allocation("pgm", attempt, (void *)test_path("pgm"));
}

int main(void)
{
    RUN(portable_maps);
    RUN(damaged_portable_maps);
    RUN(bitmaps);
    RUN(jpeg_pictures);
    RUN(jpeg_of_four_inks);
    RUN(jpeg_of_many_scans);
    RUN(idx_pictures);
    RUN(no_pictures);
    RUN(animated_files);
    RUN(without_turbojpeg);
    RUN(every_allocation);
    return test_summary();
}
