/* SPDX-License-Identifier: MIT */
/* Listing a folder of images. Hidden files and folders are skipped, as are files without an image's file name
 * extension. */
#include "datasets/folder_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "datasets/datasets_internal.h"
#include "framework/formats/text.h"

enum { PATH_SIZE = 4096, MOST_CLASSES = 1 << 16 };

static const char *const endings[] = {".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".pnm"};
static const char *const test_names[] = {"test", "val", "valid", "validation"};

/* A folder that is being read and its parents, to detect symbolic links that lead back to one of them. */
typedef struct place {
    const struct place *above;
    dev_t device;
    ino_t inode;
} place;

static sdlf_status no_memory(const char *path)
{
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: out of memory for the names of its files", path);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const folder_file *)a)->path, ((const folder_file *)b)->path);
}

static void release_names(char **names, int count)
{
    for (int i = 0; i < count; i++) free(names[i]);
    free(names);
}

/* The names in a folder, sorted; *names is NULL if there are none. */
static sdlf_status read_names(char ***names, int *count, const char *path)
{
    DIR *folder = opendir(path);
    *names = NULL;
    *count = 0;
    if (folder == NULL) return sdlf_fail(SDLF_ERROR_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    int capacity = 0;
    sdlf_status status = SDLF_OK;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL && errno != 0)
            status = sdlf_fail(SDLF_ERROR_IO, "%s: cannot read the folder: %s", path, strerror(errno));
        if (entry == NULL) break;
        if (entry->d_name[0] == '.') continue;
        if (*count == capacity) {
            int larger = capacity == 0 ? 64 : capacity < INT32_MAX / 2 ? 2 * capacity : 0;
            char **moved = larger > 0 ? realloc(*names, (size_t)larger * sizeof **names) : NULL;
            if (moved == NULL) status = no_memory(path);
            if (moved == NULL) break;
            *names = moved;
            capacity = larger;
        }
        if (((*names)[*count] = strdup(entry->d_name)) == NULL) {
            status = no_memory(path);
            break;
        }
        ++*count;
    }
    closedir(folder);
    if (status == SDLF_OK && *count > 0) qsort(*names, (size_t)*count, sizeof **names, by_text);
    if (status != SDLF_OK) {
        release_names(*names, *count);
        *names = NULL;
        *count = 0;
    }
    return status;
}

static sdlf_status join(char path[PATH_SIZE], const char *folder, const char *name)
{
    int length = snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    if (length < PATH_SIZE) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_IO, "%s: the path of '%s' in it is longer than %d bytes", folder, text_show(name).text,
                     PATH_SIZE - 1);
}

static bool is_folder(const char *path, struct stat *about)
{
    return stat(path, about) == 0 && S_ISDIR(about->st_mode);
}

static bool is_picture(const char *name)
{
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending != NULL && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(ending, endings[i]) == 0) return true;
    return false;
}

static sdlf_status add_file(folder_files *files, const char *path, size_t prefix, int class_index)
{
    if (files->count == INT32_MAX)
        return sdlf_fail(SDLF_ERROR_FORMAT, "%s: the folder has more than %d pictures", path, INT32_MAX);
    if (files->count == files->capacity) {
        int64_t larger = files->capacity == 0 ? 256 : 2 * files->capacity;
        folder_file *moved = realloc(files->file, (size_t)larger * sizeof *moved);
        if (moved == NULL) return no_memory(path);
        files->file = moved;
        files->capacity = larger;
    }
    folder_file *file = &files->file[files->count];
    *file = (folder_file){.path = strdup(path + prefix), .class_index = class_index};
    if (file->path == NULL) return no_memory(path);
    files->count++;
    return SDLF_OK;
}

/* Add all images below `path`; the first `prefix` bytes of their paths are dropped. */
static sdlf_status add_folder(folder_files *files, const char *path, size_t prefix, int class_index, const place *above)
{
    struct stat about;
    if (!is_folder(path, &about))
        return sdlf_fail(SDLF_ERROR_IO, "%s: cannot open the folder: %s", path, strerror(errno));
    place here = {above, about.st_dev, about.st_ino};
    for (const place *p = above; p != NULL; p = p->above)
        if (p->device == here.device && p->inode == here.inode)
            return sdlf_fail(SDLF_ERROR_FORMAT, "%s: a symbolic link leads back to a folder that contains it", path);
    char **names;
    int count;
    sdlf_status status = read_names(&names, &count, path);
    for (int i = 0; i < count && status == SDLF_OK; i++) {
        char *inside = malloc(PATH_SIZE); /* not on the stack: nesting may be deep */
        status = inside != NULL ? join(inside, path, names[i]) : no_memory(path);
        if (status == SDLF_OK && is_folder(inside, &about))
            status = add_folder(files, inside, prefix, class_index, &here);
        else if (status == SDLF_OK && is_picture(names[i]))
            status = add_file(files, inside, prefix, class_index);
        free(inside);
    }
    release_names(names, count);
    return status;
}

/* List the classes: one per subfolder. */
static sdlf_status list_classes(folder_files *files, const char *folder)
{
    char **names, path[PATH_SIZE];
    int count, kept = 0;
    struct stat about;
    sdlf_status status = read_names(&names, &count, folder);
    for (int i = 0; i < count; i++) {
        if (status == SDLF_OK) status = join(path, folder, names[i]);
        bool keeps = status == SDLF_OK && is_folder(path, &about);
        if (keeps && !text_is_utf8(names[i]))
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the name of the class '%s' is not UTF-8", folder,
                               text_show(names[i]).text);
        if (keeps)
            names[kept++] = names[i];
        else
            free(names[i]);
    }
    files->class_names = names;
    files->class_count = kept;
    return status;
}

static sdlf_status check_count(const folder_files *files, const char *folder)
{
    if (files->class_count >= 2 && files->class_count <= MOST_CLASSES) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT, "%s: expected a subfolder for each of 2 to %d classes, found %d", folder,
                     MOST_CLASSES, files->class_count);
}

/* List the images of every class of `files` that the folder contains. */
static sdlf_status list_files(folder_files *files, const char *folder, size_t prefix, bool all)
{
    char path[PATH_SIZE];
    struct stat about;
    sdlf_status status = SDLF_OK;
    for (int i = 0; i < files->class_count && status == SDLF_OK; i++) {
        int64_t before = files->count;
        status = join(path, folder, files->class_names[i]);
        if (status == SDLF_OK && (all || is_folder(path, &about))) status = add_folder(files, path, prefix, i, NULL);
        if (status == SDLF_OK && all && files->count == before)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the class '%s' has no pictures (%s)", folder,
                               text_show(files->class_names[i]).text,
                               "files named .png, .jpg, .jpeg, .bmp, .ppm, .pgm or .pnm");
    }
    if (status == SDLF_OK && files->count > 0) qsort(files->file, (size_t)files->count, sizeof *files->file, by_path);
    return status;
}

/* Check that every class of the test folder is one of the training folder. */
static sdlf_status check_classes(const folder_files *files, const char *train, const char *test)
{
    folder_files other = {.count = 0};
    sdlf_status status = list_classes(&other, test);
    for (int i = 0; i < other.class_count && status == SDLF_OK; i++)
        if (bsearch(&other.class_names[i], files->class_names, (size_t)files->class_count, sizeof *files->class_names,
                    by_text) == NULL)
            status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: the class '%s' is not one of the %d of %s", test,
                               text_show(other.class_names[i]).text, files->class_count, train);
    folder_files_release(&other);
    return status;
}

static sdlf_status divide(folder_files *files, const char *folder, size_t prefix, sdlf_split split)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < files->count; i++) {
        folder_file *file = &files->file[i];
        const char *name = file->path + prefix; /* relative to the folder with the classes */
        if (sdlf_dataset_is_for_test(name, strlen(name)) == (split == SDLF_SPLIT_TEST))
            files->file[kept++] = *file;
        else
            free(file->path);
    }
    files->count = kept;
    if (kept > 0) return SDLF_OK;
    return sdlf_fail(SDLF_ERROR_FORMAT,
                     "%s: too few pictures to set some apart for the %s; make the folders 'train' and 'test'", folder,
                     split == SDLF_SPLIT_TEST ? "test" : "training");
}

/* Find the folders of the two halves; if there are not two, *test is empty. */
static sdlf_status find_halves(const char *folder, char train[PATH_SIZE], char test[PATH_SIZE], bool *has_train)
{
    struct stat about;
    bool has_test = false;
    sdlf_status status = join(train, folder, "train");
    if (status != SDLF_OK) return status;
    *has_train = is_folder(train, &about);
    for (size_t i = 0; *has_train && !has_test && i < sizeof test_names / sizeof test_names[0]; i++)
        has_test = join(test, folder, test_names[i]) == SDLF_OK && is_folder(test, &about);
    if (!has_test) test[0] = '\0';
    return SDLF_OK;
}

sdlf_status folder_list_undivided(folder_files *files, const char *folder, sdlf_split split, bool *divided)
{
    char train[PATH_SIZE], test[PATH_SIZE];
    bool has_train;
    *files = (folder_files){.count = 0};
    sdlf_status status = find_halves(folder, train, test, &has_train);
    if (status != SDLF_OK) return status;
    size_t prefix = strlen(folder) + 1;
    const char *classes = has_train ? train : folder;
    *divided = test[0] != '\0';
    status = list_classes(files, classes);
    if (status == SDLF_OK) status = check_count(files, classes);
    if (status == SDLF_OK && *divided) status = check_classes(files, train, test);
    if (status != SDLF_OK) return status;
    if (!*divided || split == SDLF_SPLIT_TRAIN) return list_files(files, classes, prefix, true);
    status = list_files(files, test, prefix, false);
    if (status == SDLF_OK && files->count == 0)
        status = sdlf_fail(SDLF_ERROR_FORMAT, "%s: there are no pictures in it", test);
    return status;
}

sdlf_status folder_list(folder_files *files, const char *folder, sdlf_split split)
{
    char train[PATH_SIZE], test[PATH_SIZE];
    bool has_train = false, divided;
    sdlf_status status = folder_list_undivided(files, folder, split, &divided);
    if (status == SDLF_OK) status = find_halves(folder, train, test, &has_train);
    if (status != SDLF_OK || divided) return status;
    const char *classes = has_train ? train : folder;
    return divide(files, classes, strlen(classes) - strlen(folder), split);
}

void folder_files_release(folder_files *files)
{
    for (int64_t i = 0; i < files->count; i++) free(files->file[i].path);
    free(files->file);
    release_names(files->class_names, files->class_count);
    *files = (folder_files){.count = 0};
}
