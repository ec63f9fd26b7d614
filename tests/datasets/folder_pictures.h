/* SPDX-License-Identifier: MIT */
/* Folders of images for tests, written as IDX files (which every build reads) with file names of images. */
#ifndef SDLF_TESTS_DATASETS_FOLDER_PICTURES_H
#define SDLF_TESTS_DATASETS_FOLDER_PICTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sdlf/dataset.h>

#include "datasets/idx_files.h"
#include "testing.h"

static char root[512];

/* Create a fresh, empty folder; its path goes to `root`. */
static inline void begin(void)
{
    static int made;
    char name[32];
    snprintf(name, sizeof name, "pictures%d", ++made);
    snprintf(root, sizeof root, "%s", test_path(name));
    CHECK(mkdir(root, 0700) == 0);
}

static inline const char *path_of(const char *inside)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, inside);
    return path;
}

static inline void folder(const char *inside)
{
    CHECK(mkdir(path_of(inside), 0700) == 0);
}

/* Write an image of one shade. */
static inline void picture(const char *inside, int height, int width, int shade)
{
    unsigned char *pixels = malloc((size_t)(height * width));
    if (pixels == NULL) abort();
    memset(pixels, shade, (size_t)(height * width));
    idx_bytes file = idx_make(sdlf_shape(1, height, width), pixels);
    test_write_file(path_of(inside), file.data, file.size);
    free(file.data);
    free(pixels);
}

static inline sdlf_status open_it(sdlf_dataset **data, sdlf_split split, const sdlf_dataset_options *options)
{
    char specification[1024];
    snprintf(specification, sizeof specification, "folder:%s", root);
    return sdlf_dataset_open_with(data, specification, split, options);
}

/* Write two classes of `count` images each. An image's shade is its index, plus 50 in the second class. */
static inline void two_classes(int count, int height, int width)
{
    char name[64];
    begin();
    folder("b");
    folder("a");
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "a/%03d.png", i);
        picture(name, height, width, i);
        snprintf(name, sizeof name, "b/%03d.JPG", i);
        picture(name, height, width, 50 + i);
    }
}

#endif
