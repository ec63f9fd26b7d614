/* SPDX-License-Identifier: MIT */
/* Images and their masks. See segmentation.h. */
#include "datasets/segmentation.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datasets/datasets_internal.h"
#include "datasets/folder_stream.h"
#include "framework/formats/read_file.h"
#include "framework/formats/text.h"
#include "framework/parallel.h"

enum { IMAGES, MASKS, PATH_SIZE = 4096, NAMES_SIZE = 65536 };

/* ---- pairs ---- */

/* The key shared by an image and its mask: the path after "images/" or "masks/", without its extension. */
static const char *stem_of(const folder_file *file, size_t *length)
{
    static const char *const folders[] = {[IMAGES] = "images/", [MASKS] = "masks/"};
    const char *name = strstr(file->path, folders[file->class_index]) + strlen(folders[file->class_index]);
    *length = (size_t)(strrchr(name, '.') - name);
    return name;
}

static int compare_stems(const folder_file *a, const folder_file *b)
{
    size_t long_a, long_b;
    const char *stem_a = stem_of(a, &long_a), *stem_b = stem_of(b, &long_b);
    int order = memcmp(stem_a, stem_b, long_a < long_b ? long_a : long_b);
    return order != 0 ? order : (long_a > long_b) - (long_a < long_b);
}

static int by_stem(const void *a, const void *b)
{
    const folder_file *x = a, *y = b;
    return x->class_index != y->class_index ? x->class_index - y->class_index : compare_stems(x, y);
}

static sdlf_status make_pairs(mask_pairs *pairs, const char *folder, bool divided, sdlf_split split)
{
    folder_files *files = &pairs->files;
    qsort(files->file, (size_t)files->count, sizeof *files->file, by_stem);
    int64_t masks = 0;
    while (masks < files->count && files->file[masks].class_index == IMAGES) masks++;
    pairs->pair = malloc((size_t)files->count * sizeof *pairs->pair);
    if (pairs->pair == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", folder);
    for (int64_t i = 0, m = masks; i < masks; i++) {
        const folder_file *picture = &files->file[i];
        size_t length;
        const char *stem = stem_of(picture, &length);
        while (m < files->count && compare_stems(&files->file[m], picture) < 0) m++;
        if (m == files->count || compare_stems(&files->file[m], picture) != 0)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: there is no mask of the same name for the picture '%s'", folder,
                             text_show(picture->path).text);
        if (divided || sdlf_dataset_is_for_test(stem, length) == (split == SDLF_SPLIT_TEST))
            pairs->pair[pairs->count++] = (mask_pair){.picture = picture, .mask = &files->file[m]};
    }
    if (pairs->count > 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: too few pictures to set some apart; make the folders 'train' and 'test'",
                     folder);
}

sdlf_status mask_pairs_list(mask_pairs *pairs, const char *folder, sdlf_split split)
{
    bool divided;
    *pairs = (mask_pairs){.count = 0};
    sdlf_status status = folder_list_undivided(&pairs->files, folder, split, &divided);
    if (status != SDLF_OK)
        return status == SDLF_ERROR_FORMAT
                   ? sdlf_fail_context(status, "segmentation: pictures are in images, their masks in masks")
                   : status;
    char **names = pairs->files.class_names;
    if (pairs->files.class_count != 2 || strcmp(names[IMAGES], "images") != 0 || strcmp(names[MASKS], "masks") != 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected the folders images and masks, found %d: %s, ...", folder,
                         pairs->files.class_count, text_show(names[0]).text);
    return make_pairs(pairs, folder, divided, split);
}

void mask_pairs_release(mask_pairs *pairs)
{
    free(pairs->pair);
    folder_files_release(&pairs->files);
    *pairs = (mask_pairs){.count = 0};
}

/* ---- classes ---- */

static sdlf_status bad_names(const char *path)
{
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected the names of 1 to %d classes, UTF-8, one a line", path,
                     MASK_IGNORED);
}

/* One name a line, in place. */
static sdlf_status take_names(sdlf_dataset *dataset, char *text, const char *path)
{
    dataset->class_names = calloc(MASK_IGNORED, sizeof *dataset->class_names);
    if (dataset->class_names == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
    for (char *line = text, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        if (*end != '\0') *end++ = '\0';
        line[strcspn(line, "\r")] = '\0';
        if (*line == '\0' || dataset->class_count == MASK_IGNORED || !text_is_utf8(line)) return bad_names(path);
        char *name = strdup(line);
        if (name == NULL) return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory", path);
        dataset->class_names[dataset->class_count++] = name;
    }
    return dataset->class_count > 0 ? SDLF_OK : bad_names(path);
}

/* Read the class names from a file; *found: the file exists. */
static sdlf_status read_names(sdlf_dataset *dataset, const char *path, bool *found)
{
    char *text = NULL;
    size_t length;
    *found = access(path, F_OK) == 0;
    if (!*found) return SDLF_OK;
    sdlf_status status = read_file(&text, &length, path, NAMES_SIZE);
    if (status != SDLF_OK) return status;
    status = strlen(text) == length ? take_names(dataset, text, path) : bad_names(path);
    free(text);
    return status;
}

typedef struct counting {
    const char *folder;
    const mask_pairs *pairs;
    _Atomic int largest;
} counting;

/* Masks that cannot be read are ignored here; they are reported when they are needed. */
static void inspect_mask(void *context, int64_t i)
{
    counting *c = context;
    sdlf_image mask = {0};
    int largest = -1;
    if (folder_read_mask(&mask, c->folder, c->pairs->pair[i].mask) == SDLF_OK && mask.channels == 1)
        for (int64_t p = 0; p < (int64_t)mask.height * mask.width; p++)
            if (mask.pixels[p] > largest && mask.pixels[p] != MASK_IGNORED) largest = mask.pixels[p];
    sdlf_image_release(&mask);
    for (int seen = c->largest; seen < largest && !atomic_compare_exchange_weak(&c->largest, &seen, largest);) continue;
}

sdlf_status mask_classes(sdlf_dataset *dataset, const char *folder, int threads)
{
    char path[PATH_SIZE];
    bool named;
    if (snprintf(path, sizeof path, "%s/classes.txt", folder) >= PATH_SIZE)
        return sdlf_fail(SDLF_ERROR_IO, "%s: the path is longer than %d bytes", folder, PATH_SIZE);
    sdlf_status status = read_names(dataset, path, &named);
    if (status != SDLF_OK || named) return status;
    counting c = {.folder = folder, .largest = -1};
    for (int split = 0; split < 2 && status == SDLF_OK; split++) {
        mask_pairs pairs;
        status = mask_pairs_list(&pairs, folder, (sdlf_split)split);
        c.pairs = &pairs;
        if (status == SDLF_OK) parallel_for(pairs.count, threads, inspect_mask, &c);
        mask_pairs_release(&pairs);
    }
    dataset->class_count = c.largest + 1;
    if (status == SDLF_OK && dataset->class_count == 0)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: no readable mask has a pixel that is not ignored", folder);
    return status;
}
