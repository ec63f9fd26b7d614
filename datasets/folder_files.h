/* SPDX-License-Identifier: MIT */
/* The files of a folder of images, with one class per subfolder. */
#ifndef SDLF_DATASETS_FOLDER_FILES_H
#define SDLF_DATASETS_FOLDER_FILES_H

#include <sdlf/dataset.h>

typedef struct folder_file {
    char *path; /* relative to the given folder: "roses/12.jpg" */
    int class_index;
} folder_file;

typedef struct folder_files {
    folder_file *file; /* sorted by path, bytewise */
    int64_t count, capacity;
    char **class_names; /* the subfolders, sorted bytewise */
    int class_count;
} folder_files;

/* Lists the files of a split of DIR: of DIR/train or DIR/test (or val, valid, validation) if both exist; otherwise about
 * every fifth image of DIR (or of DIR/train, if only that exists), picked by its name, is for testing. Release `files`
 * also after a failure. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (no classes, a class without images, folders that
 * contain themselves), SDLF_ERROR_MEMORY. */
sdlf_status folder_list(folder_files *files, const char *folder, sdlf_split split);
/* The same, except that without separate halves all files are listed and *divided is false. */
sdlf_status folder_list_undivided(folder_files *files, const char *folder, sdlf_split split, bool *divided);
void folder_files_release(folder_files *files);

#endif
