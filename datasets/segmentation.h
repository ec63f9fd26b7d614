/* SPDX-License-Identifier: MIT */
/* Images and their masks: how they are paired, and how many classes the masks have. */
#ifndef SDLF_DATASETS_SEGMENTATION_H
#define SDLF_DATASETS_SEGMENTATION_H

#include "datasets/folder_files.h"

enum { MASK_IGNORED = 255 }; /* the value of ignored pixels */

typedef struct mask_pair {
    const folder_file *picture, *mask; /* of `files` */
    int height, width;                 /* of both, when first read */
} mask_pair;

typedef struct mask_pairs {
    folder_files files;
    mask_pair *pair; /* in the order of the images' paths */
    int64_t count;
} mask_pairs;

/* Lists the pairs of a split. Release also after a failure. Errors: those of folder_list, SDLF_ERROR_FORMAT (folders
 * other than images and masks, an image without a mask). */
sdlf_status mask_pairs_list(mask_pairs *pairs, const char *folder, sdlf_split split);
void mask_pairs_release(mask_pairs *pairs);

/* Fill in class_count and class_names: from classes.txt, else from the masks of both splits. */
sdlf_status mask_classes(sdlf_dataset *dataset, const char *folder, int threads);

#endif
