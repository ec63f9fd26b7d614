/* SPDX-License-Identifier: MIT */
/* The segmentation data set, on images and masks written by the test. */
#include "datasets/folder_pictures.h"
#include "datasets/images/palette_png.h"

#include <unistd.h>

#include <sdlf/image.h>

static sdlf_status open_masks(sdlf_dataset **data, sdlf_split split, const sdlf_dataset_options *options)
{
    char specification[1024];
    snprintf(specification, sizeof specification, "segmentation:%s", root);
    return sdlf_dataset_open_with(data, specification, split, options);
}

static void write_grey(const char *inside, int height, int width, const unsigned char *pixels)
{
    idx_bytes file = idx_make(sdlf_shape(1, height, width), pixels);
    test_write_file(path_of(inside), file.data, file.size);
    free(file.data);
}

/* Image i has shade i, and its mask is i mod 3, except for the first pixel, which is ignored. */
static void write_pairs(const char *in, int count)
{
    char name[128];
    for (int i = 0; i < count; i++) {
        unsigned char mask[12];
        memset(mask, i % 3, sizeof mask);
        mask[0] = 255;
        snprintf(name, sizeof name, "%simages/%02d.png", in, i);
        picture(name, 3, 4, i);
        snprintf(name, sizeof name, "%smasks/%02d.pgm", in, i);
        write_grey(name, 3, 4, mask);
    }
}

static void begin_pairs(int count)
{
    begin();
    folder("images");
    folder("masks");
    write_pairs("", count);
}

static const int32_t *labels_of(const sdlf_dataset *data, int64_t i)
{
    return (const int32_t *)data->labels.data + i * sdlf_shape_span(data->labels.shape, 1, 3);
}

static void pairs_are_read(void)
{
    int seen[40] = {0};
    begin_pairs(40);
    for (int split = 0; split < 2; split++) {
        sdlf_dataset *data = NULL;
        if (!CHECK_OK(open_masks(&data, (sdlf_split)split, NULL))) return;
        CHECK(sdlf_shape_equal(data->labels.shape, sdlf_shape(data->samples.shape.dim[0], 3, 4)));
        CHECK(data->class_count == 3 && data->class_names == NULL && data->channels.count == 3);
        for (int64_t n = 0; n < data->samples.shape.dim[0]; n++) {
            int shade = ((const uint8_t *)data->samples.data)[n * 36];
            seen[shade]++;
            for (int i = 0; i < 12; i++) CHECK_EQUAL(labels_of(data, n)[i], i == 0 ? -1 : shade % 3);
        }
        sdlf_dataset_free(data);
    }
    for (int i = 0; i < 40; i++) CHECK_EQUAL(seen[i], 1);
}

/* Halves by folders, names of classes, and an outline. */
static void halves_and_names(void)
{
    sdlf_dataset *data = NULL;
    begin();
    folder("train");
    folder("train/images");
    folder("train/masks");
    folder("val");
    folder("val/images");
    folder("val/masks");
    write_pairs("train/", 2); /* whose largest value is 1 */
    write_pairs("val/", 5);
    for (int split = 0; split < 2; split++)
        if (CHECK_OK(open_masks(&data, (sdlf_split)split, &(sdlf_dataset_options){.outline = split == 0}))) {
            CHECK_EQUAL(data->class_count, 3);
            CHECK_EQUAL(data->samples.shape.dim[0], split == 0 ? 2 : 5);
            CHECK((data->samples.data == NULL) == (split == 0));
            sdlf_dataset_free(data);
        }
    test_write_file(path_of("classes.txt"), "sky\r\nroad\nt\303\266n\nmore", 19);
    if (CHECK_OK(open_masks(&data, SDLF_SPLIT_TRAIN, NULL))) {
        CHECK_EQUAL(data->class_count, 4);
        CHECK_TEXT(data->class_names[0], "sky");
        CHECK_TEXT(data->class_names[3], "more");
        sdlf_dataset_free(data);
    }
    test_write_file(path_of("classes.txt"), "sky\nroad\n", 9);
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TEST, &(sdlf_dataset_options){.strict = true}), SDLF_ERROR_FORMAT,
                "02.pgm: pixel (0,1): expected one of 2 classes, or 255, found 2");
    static const struct {
        const char *text;
        size_t size;
    } wrong[] = {{"", 0}, {"sky\n\nroad", 9}, {"a\377\n", 3}, {"a\0b\n", 4}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_write_file(path_of("classes.txt"), wrong[i].text, wrong[i].size);
        CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TEST, NULL), SDLF_ERROR_FORMAT,
                    "expected the names of 1 to 255 classes");
    }
}

/* An image of 4x8 becomes 2x2: from its central 4x4, with the nearest pixels of the mask. */
static void masks_are_scaled_as_pictures(void)
{
    unsigned char pixels[32], mask[32];
    sdlf_dataset *data = NULL;
    begin_pairs(8);
    for (int i = 0; i < 32; i++)
        pixels[i] = (unsigned char)(10 * (i % 8)), mask[i] = (unsigned char)(i % 8 / 2 + i / 16);
    write_grey("images/zz.png", 4, 8, pixels);
    write_grey("masks/zz.png", 4, 8, mask);
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_SHAPE, "others have 3x4");
    for (int split = 0; split < 2; split++) {
        if (!CHECK_OK(open_masks(&data, (sdlf_split)split, &(sdlf_dataset_options){.height = 2, .width = 2}))) return;
        int64_t last = data->samples.shape.dim[0] - 1; /* in one of the halves it is zz */
        const int32_t *labels = labels_of(data, last);
        if (labels[1] != labels[0]) {
            static const int32_t expected[] = {1, 2, 2, 3};
            CHECK(memcmp(labels, expected, sizeof expected) == 0);
            CHECK_EQUAL(((const uint8_t *)data->samples.data)[last * 12] <
                            ((const uint8_t *)data->samples.data)[last * 12 + 1],
                        true);
        }
        sdlf_dataset_free(data);
    }
}

/* Masks with a palette: the palette indices are the classes. */
static void palettes_are_classes(void)
{
    sdlf_dataset *data = NULL;
    char name[64];
    if (strstr(sdlf_image_formats(), "PNG") == NULL) {
        test_skip("built without libpng");
        return;
    }
    begin();
    folder("images");
    folder("masks");
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "images/%d.jpg", i);
        picture(name, 1, 4, i);
        snprintf(name, sizeof name, "masks/%d.png", i);
        test_write_file(path_of(name), palette_png, sizeof palette_png);
    }
    if (!CHECK_OK(open_masks(&data, SDLF_SPLIT_TRAIN, NULL))) return;
    CHECK_EQUAL(data->class_count, 4);
    for (int i = 0; i < 4; i++) CHECK_EQUAL(labels_of(data, 0)[i], i);
    sdlf_dataset_free(data);
}

static void what_is_wrong_is_named(void)
{
    sdlf_dataset *data = NULL;
    begin_pairs(30);
    picture("masks/03.pgm", 3, 3, 0);
    test_write_file(path_of("masks/04.pgm"), "no picture", 10);
    test_write_file(path_of("images/05.png"), "", 0);
    int64_t unread = 0, read = 0;
    for (int split = 0; split < 2; split++)
        if (CHECK_OK(open_masks(&data, (sdlf_split)split, NULL))) {
            unread += data->unread;
            read += data->samples.shape.dim[0];
            sdlf_dataset_free(data);
        }
    CHECK(unread == 3 && read == 27);
    for (int split = 0, refused = 0; split < 2; split++) {
        sdlf_status status = open_masks(&data, (sdlf_split)split, &(sdlf_dataset_options){.strict = true});
        refused += status != SDLF_OK;
        if (status == SDLF_OK) sdlf_dataset_free(data);
        if (split == 1) CHECK(refused > 0);
    }
    CHECK(unlink(path_of("masks/06.pgm")) == 0);
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_FORMAT, "no mask of the same name");
    begin();
    folder("images");
    folder("mask");
    picture("images/1.png", 2, 2, 0);
    picture("mask/1.png", 2, 2, 0);
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_FORMAT, "expected the folders images and masks");
    begin();
    folder("images");
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_FORMAT, "their masks in masks");
    begin();
    folder("images");
    folder("masks");
    picture("images/1.png", 2, 2, 0);
    picture("masks/1.png", 2, 2, 255);
    CHECK_FAILS(open_masks(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_FORMAT, "");
    CHECK_FAILS(sdlf_dataset_open(&data, "segmentation", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "segmentation:DIR");
}

int main(void)
{
    RUN(pairs_are_read);
    RUN(halves_and_names);
    RUN(masks_are_scaled_as_pictures);
    RUN(palettes_are_classes);
    RUN(what_is_wrong_is_named);
    return test_summary();
}
