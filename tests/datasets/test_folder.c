/* SPDX-License-Identifier: MIT */
/* The folder data set, on images written by the test. */
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/folder_pictures.h"

static const uint8_t *sample(const sdlf_dataset *data, int64_t i)
{
    return (const uint8_t *)data->samples.data + i * sdlf_shape_span(data->samples.shape, 1, 4);
}

static int32_t label(const sdlf_dataset *data, int64_t i)
{
    return ((const int32_t *)data->labels.data)[i];
}

static void halves_share_no_picture_and_leave_none_out(void)
{
    enum { COUNT = 50 };
    int seen[2 * COUNT] = {0};
    two_classes(COUNT, 2, 3);
    picture("a/.hidden.png", 9, 9, 1);
    test_write_file(path_of("a/notes.txt"), "x", 1);
    test_write_file(path_of("readme.png"), "x", 1);
    for (int split = 0; split < 2; split++) {
        sdlf_dataset *data = NULL;
        if (!CHECK_OK(open_it(&data, (sdlf_split)split, NULL))) return;
        CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(data->labels.shape.dim[0], 3, 2, 3)));
        CHECK_EQUAL(data->class_count, 2);
        CHECK_TEXT(data->class_names[0], "a");
        CHECK_TEXT(data->class_names[1], "b");
        CHECK_EQUAL(data->fit, SDLF_FIT_CROP);
        CHECK_EQUAL(data->unread, 0);
        for (int64_t i = 0; i < data->labels.shape.dim[0]; i++) {
            int shade = sample(data, i)[0];
            CHECK_EQUAL(label(data, i), shade >= COUNT);
            for (int k = 0; k < 18; k++) CHECK_EQUAL(sample(data, i)[k], shade);
            seen[shade]++;
        }
        if (split == SDLF_SPLIT_TEST) CHECK(data->labels.shape.dim[0] > 8 && data->labels.shape.dim[0] < 35);
        sdlf_dataset_free(data);
    }
    for (int i = 0; i < 2 * COUNT; i++) CHECK_EQUAL(seen[i], 1);
}

/* FNV-1a of "a/000.png" and others, modulo 5, computed independently: the halves must not change in later versions. */
static void the_halves_are_these(void)
{
    static const int tested[] = {1,  5,  6,  10, 12, 16, 17, 26, 31, 41, 43, 45, 47, 48,
                                 49, 52, 55, 56, 58, 65, 68, 69, 77, 87, 91, 94, 98};
    two_classes(50, 1, 1);
    sdlf_dataset *data = NULL;
    if (!CHECK_OK(open_it(&data, SDLF_SPLIT_TEST, NULL))) return;
    CHECK_EQUAL(data->labels.shape.dim[0], sizeof tested / sizeof tested[0]);
    for (int64_t i = 0; i < data->labels.shape.dim[0]; i++) CHECK_EQUAL(sample(data, i)[0], tested[i]);
    sdlf_dataset_free(data);
}

static void halves_by_name(void)
{
    static const char *const names[] = {"test", "val", "valid", "validation"};
    for (int n = 0; n < 4; n++) {
        char name[64];
        begin();
        folder("train");
        folder("train/x");
        folder("train/y");
        folder("train/x/deeper");
        picture("train/x/deeper/1.png", 4, 4, 10);
        picture("train/x/0.png", 4, 4, 11);
        picture("train/y/1.pgm", 4, 4, 20);
        folder(names[n]);
        snprintf(name, sizeof name, "%s/y", names[n]); /* not every class need be tested */
        folder(name);
        snprintf(name, sizeof name, "%s/y/2.png", names[n]);
        picture(name, 4, 4, 30);
        sdlf_dataset *train = NULL, *test = NULL;
        if (!CHECK_OK(open_it(&train, SDLF_SPLIT_TRAIN, NULL)) || !CHECK_OK(open_it(&test, SDLF_SPLIT_TEST, NULL)))
            return;
        CHECK_EQUAL(train->labels.shape.dim[0], 3);
        CHECK(sample(train, 0)[0] == 11 && sample(train, 1)[0] == 10 && sample(train, 2)[0] == 20);
        CHECK_EQUAL(test->labels.shape.dim[0], 1);
        CHECK_EQUAL(test->class_count, 2);
        CHECK_EQUAL(label(test, 0), 1);
        CHECK_EQUAL(sample(test, 0)[0], 30);
        CHECK_CLOSE(train->channels.mean[0], (10 + 11 + 20) / 3.0, 1e-5);
        CHECK_CLOSE(train->channels.scale[2], 1 / 4.4969, 1e-4);
        sdlf_dataset_free(train);
        sdlf_dataset_free(test);
    }
}

/* The centre of a wide image with black, white and black thirds. */
static void pictures_are_cropped_and_scaled(void)
{
    unsigned char pixels[30 * 90];
    begin();
    folder("train");
    folder("test");
    folder("train/a");
    folder("train/b");
    folder("test/a");
    folder("test/b");
    for (int i = 0; i < 30 * 90; i++) pixels[i] = i % 90 >= 30 && i % 90 < 60 ? 255 : 0;
    idx_bytes file = idx_make(sdlf_shape(1, 30, 90), pixels);
    test_write_file(path_of("train/a/wide.png"), file.data, file.size);
    free(file.data);
    picture("train/b/small.png", 3, 3, 77);
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_it(&data, SDLF_SPLIT_TRAIN, NULL), SDLF_ERROR_SHAPE,
                "train/b/small.png: 3x3 pixels (height x width), others have 30x90; pictures of several sizes need a "
                "common size (--size)");
    const sdlf_dataset_options options = {.channels = 1, .height = 10, .width = 10};
    if (!CHECK_OK(open_it(&data, SDLF_SPLIT_TRAIN, &options))) return;
    CHECK(sdlf_shape_equal(data->samples.shape, sdlf_shape(2, 1, 10, 10)));
    for (int i = 0; i < 100; i++) CHECK(sample(data, 0)[i] >= (i % 10 == 0 || i % 10 == 9 ? 200 : 255));
    for (int i = 0; i < 100; i++) CHECK_EQUAL(sample(data, 1)[i], 77);
    sdlf_dataset_free(data);
}

static void note_progress(void *context, int64_t done, int64_t count)
{
    int64_t *calls = context;
    CHECK(done == *calls + 1 && count >= done);
    *calls = done;
}

/* The same samples with any number of threads, which report their progress. */
static void threads_do_not_matter(void)
{
    sdlf_dataset *data[3] = {NULL};
    two_classes(40, 17, 12);
    for (int i = 0; i < 3; i++) {
        int64_t calls = 0;
        const sdlf_dataset_options options = {
            .height = 7, .width = 9, .threads = 1 + 2 * i, .progress = note_progress, .progress_context = &calls};
        if (!CHECK_OK(open_it(&data[i], SDLF_SPLIT_TRAIN, &options))) return;
        CHECK_EQUAL(calls, data[i]->labels.shape.dim[0]);
        CHECK(sdlf_shape_equal(data[i]->samples.shape, data[0]->samples.shape));
        CHECK(memcmp(data[i]->samples.data, data[0]->samples.data, (size_t)sdlf_tensor_bytes(&data[0]->samples)) == 0);
        CHECK(memcmp(data[i]->labels.data, data[0]->labels.data, (size_t)sdlf_tensor_bytes(&data[0]->labels)) == 0);
    }
    for (int i = 0; i < 3; i++) sdlf_dataset_free(data[i]);
}

static void an_outline_has_no_samples(void)
{
    sdlf_dataset *data = NULL;
    two_classes(20, 5, 6);
    test_write_file(path_of("a/!.png"), "no picture", 10); /* the first */
    if (!CHECK_OK(open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.outline = true}))) return;
    CHECK(data->samples.data == NULL && data->labels.data == NULL);
    CHECK(sdlf_shape_equal(sdlf_shape_without(data->samples.shape, 0), sdlf_shape(3, 5, 6)));
    CHECK_EQUAL(data->class_count, 2);
    CHECK_TEXT(data->class_names[1], "b");
    sdlf_dataset_free(data);
}

static void what_cannot_be_read_is_left_out_or_refused(void)
{
    sdlf_dataset *data = NULL;
    two_classes(20, 5, 6);
    test_write_file(path_of("a/empty.png"), "", 0);
    test_write_file(path_of("b/torn.jpg"), "\xff\xd8\xff", 3);
    test_write_file(path_of("b/torn2.jpg"), "\x89PNG\r\n\x1a\n", 8);
    int64_t counts[2], unread = 0;
    int named[3] = {0};
    for (int split = 0; split < 2; split++) {
        if (!CHECK_OK(open_it(&data, (sdlf_split)split, NULL))) return;
        counts[split] = data->labels.shape.dim[0];
        unread += data->unread;
        CHECK((data->unread == 0) == (data->unread_files == NULL));
        CHECK(data->unread_why == (data->unread > 0 ? data->unread_files[0] : NULL));
        for (int64_t i = 0; i < data->unread; i++) {
            const char *const names[] = {"a/empty.png: ", "b/torn.jpg: ", "b/torn2.jpg: "};
            CHECK(strstr(data->unread_files[i], root) == data->unread_files[i]);
            for (int k = 0; k < 3; k++) named[k] += strstr(data->unread_files[i], names[k]) != NULL;
            if (i > 0) CHECK(strcmp(data->unread_files[i - 1], data->unread_files[i]) < 0); /* as the files are */
        }
        for (int64_t i = 0; i < counts[split]; i++) CHECK_EQUAL(label(data, i), sample(data, i)[0] >= 50);
        sdlf_dataset_free(data);
    }
    CHECK_EQUAL(counts[0] + counts[1], 40);
    CHECK_EQUAL(unread, 3);
    CHECK(named[0] == 1 && named[1] == 1 && named[2] == 1);
    sdlf_status status = SDLF_OK;
    for (int split = 0; split < 2 && status == SDLF_OK; split++) {
        status = open_it(&data, (sdlf_split)split, &(sdlf_dataset_options){.strict = true});
        sdlf_dataset_free(data);
    }
    CHECK(status == SDLF_ERROR_FORMAT ||
          status == SDLF_ERROR_UNSUPPORTED); /* the latter in builds without libraries for pictures */
}

/* Names in any encoding, folders and links with names of images, and pipes, which must not block. */
static void anything_may_lie_in_a_folder(void)
{
    sdlf_dataset *data = NULL;
    int64_t count = 0, unread = 0;
    two_classes(20, 5, 6);
    picture("a/\xff\xfe\xe9.png", 5, 6, 1);
    picture("b/two\nlines.png", 5, 6, 60);
    folder("a/folder.png");
    CHECK(mkfifo(path_of("b/pipe.png"), 0600) == 0);
    CHECK(symlink("nowhere", path_of("a/link.png")) == 0);
    for (int split = 0; split < 2; split++) {
        if (!CHECK_OK(open_it(&data, (sdlf_split)split, NULL))) return;
        count += data->labels.shape.dim[0];
        unread += data->unread;
        for (const char *c = data->unread_why; c != NULL && *c != '\0'; c++) CHECK(*c != '\n');
        sdlf_dataset_free(data);
    }
    CHECK_EQUAL(count, 42);
    CHECK_EQUAL(unread, 2);
}

static void refused_with(const sdlf_dataset_options *options, sdlf_status wanted, const char *words)
{
    sdlf_dataset *data = NULL;
    CHECK_FAILS(open_it(&data, SDLF_SPLIT_TRAIN, options), wanted, words);
    CHECK(data == NULL);
}

static void refused(sdlf_status wanted, const char *words)
{
    refused_with(NULL, wanted, words);
}

static void folders_that_hold_no_classes(void)
{
    sdlf_dataset *data = NULL;
    CHECK_FAILS(sdlf_dataset_open(&data, "folder", SDLF_SPLIT_TRAIN), SDLF_ERROR_ARGUMENT, "expected folder:DIR");
    CHECK_FAILS(sdlf_dataset_open(&data, "folder:/not/there", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO,
                "/not/there: cannot open the folder: No such file or directory");
    CHECK_FAILS(sdlf_dataset_check("folder:/not/there", SDLF_SPLIT_TRAIN), SDLF_ERROR_IO, "/not/there");
    begin();
    refused(SDLF_ERROR_FORMAT, "expected a subfolder for each of 2 to 65536 classes, found 0");
    folder("a");
    picture("a/1.png", 2, 2, 1);
    refused(SDLF_ERROR_FORMAT, "found 1");
    folder("b");
    test_write_file(path_of("b/1.txt"), "x", 1);
    refused(SDLF_ERROR_FORMAT,
            "the class 'b' has no pictures (files named .png, .jpg, .jpeg, .bmp, .ppm, .pgm or .pnm)");
    folder("caf\xe9");
    refused(SDLF_ERROR_FORMAT, "is not UTF-8");
}

static void test_classes_must_be_known(void)
{
    begin();
    folder("train");
    folder("train/a");
    folder("train/b");
    folder("test");
    folder("test/b");
    folder("test/c");
    picture("train/a/1.png", 2, 2, 1);
    picture("train/b/1.png", 2, 2, 1);
    picture("test/c/1.png", 2, 2, 1);
    refused(SDLF_ERROR_FORMAT, "/test: the class 'c' is not one of the 2 of ");
    CHECK(rmdir(path_of("test/b")) == 0);
    refused(SDLF_ERROR_FORMAT, "/test: the class 'c' is not one of the 2 of ");
}

static void classes_whose_pictures_cannot_be_read(void)
{
    begin();
    folder("train");
    folder("train/a");
    folder("train/b");
    folder("test");
    test_write_file(path_of("train/a/1.png"), "x", 1);
    test_write_file(path_of("train/b/1.png"), "y", 1);
    refused(SDLF_ERROR_FORMAT, "none of 2 pictures can be read; ");
    refused(SDLF_ERROR_FORMAT, "train/a/1.png: ");
    refused_with(&(sdlf_dataset_options){.height = 2, .width = 2}, SDLF_ERROR_FORMAT,
                 "none of 2 pictures can be read; ");
    picture("train/b/2.png", 2, 2, 1);
    refused(SDLF_ERROR_FORMAT, "no picture of the class 'a' can be read; ");
}

static void links(void)
{
    sdlf_dataset *data = NULL;
    begin();
    folder("train");
    folder("test");
    folder("train/a");
    folder("train/b");
    folder("test/a");
    picture("train/a/1.png", 2, 2, 1);
    picture("train/b/1.png", 2, 2, 2);
    picture("test/a/1.png", 2, 2, 3);
    CHECK(symlink("../b", path_of("train/a/more")) == 0);
    if (CHECK_OK(open_it(&data, SDLF_SPLIT_TRAIN, NULL))) CHECK_EQUAL(data->labels.shape.dim[0], 3);
    sdlf_dataset_free(data);
    CHECK(symlink("..", path_of("train/b/up")) == 0);
    refused(SDLF_ERROR_FORMAT, "a symbolic link leads back to a folder that contains it");
}

static void options_are_checked(void)
{
    sdlf_dataset *data = NULL;
    two_classes(3, 2, 2);
    CHECK_FAILS(open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.height = 3}), SDLF_ERROR_ARGUMENT, "3x0");
    CHECK_FAILS(open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.channels = 2}), SDLF_ERROR_ARGUMENT,
                "1 channel or 3, found 2");
    setenv("SDLF_MEMORY", "1M", 1);
    CHECK_FAILS(open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.height = 60000, .width = 60000}),
                SDLF_ERROR_MEMORY, root);
    unsetenv("SDLF_MEMORY");
}

static sdlf_status open_and_close(void *unused)
{
    (void)unused;
    sdlf_dataset *data = NULL;
    sdlf_status status = open_it(&data, SDLF_SPLIT_TRAIN, &(sdlf_dataset_options){.threads = 1});
    sdlf_dataset_free(data);
    return status;
}

static void no_allocation_is_unchecked(void)
{
    two_classes(3, 2, 2);
    test_every_allocation("a folder", open_and_close, NULL);
}

int main(void)
{
    RUN(halves_share_no_picture_and_leave_none_out);
    RUN(the_halves_are_these);
    RUN(halves_by_name);
    RUN(pictures_are_cropped_and_scaled);
    RUN(threads_do_not_matter);
    RUN(an_outline_has_no_samples);
    RUN(what_cannot_be_read_is_left_out_or_refused);
    RUN(anything_may_lie_in_a_folder);
    RUN(folders_that_hold_no_classes);
    RUN(test_classes_must_be_known);
    RUN(classes_whose_pictures_cannot_be_read);
    RUN(links);
    RUN(options_are_checked);
    RUN(no_allocation_is_unchecked);
    return test_summary();
}
