/* SPDX-License-Identifier: MIT */
/* The files of a folder of pictures, with a class for each of its subfolders. */
#ifndef SDLF_DATASETS_FOLDER_FILES_H
#define SDLF_DATASETS_FOLDER_FILES_H

#include <sdlf/dataset.h>

typedef struct folder_file {
    char *path; /* from the folder that was named on: "roses/12.jpg" */
    int class_index;
} folder_file;

typedef struct folder_files {
    folder_file *file; /* by path, in the order of bytes */
    int64_t count, capacity;
    char **class_names; /* the subfolders, in the order of bytes */
    int class_count;
} folder_files;

/* What a split of DIR consists of: of DIR/train and DIR/test (or val, valid, validation) where both are there, else
 * every fifth picture or so of DIR (or DIR/train, if only that is there) for testing, picked by its name. Release what
 * was found also after a failure. Errors: SDLF_ERROR_IO, SDLF_ERROR_FORMAT (no classes, a class without pictures,
 * folders that contain themselves), SDLF_ERROR_MEMORY. */
sdlf_status folder_list(folder_files *files, const char *folder, sdlf_split split);
/* The same, but that where there are no two halves all files are listed, and *divided is false. */
sdlf_status folder_list_undivided(folder_files *files, const char *folder, sdlf_split split, bool *divided);
void folder_files_release(folder_files *files);

#endif
