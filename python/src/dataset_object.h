/* SPDX-License-Identifier: MIT */
/* A data set, and what it keeps alive. */
#ifndef SDLF_PYTHON_DATASET_OBJECT_H
#define SDLF_PYTHON_DATASET_OBJECT_H

#include "common.h"

/* Opened from files, or around arrays. */
struct dataset_object {
    sdlf_dataset *opened = nullptr;
    sdlf_dataset own = {};
    host_array samples, labels;  /* of `own` */
    std::vector<int32_t> narrow; /* labels of another type */
    std::vector<float> targets;
    std::vector<std::string> names;
    std::vector<char *> name_pointers;
    dataset_object() = default;
    dataset_object(const dataset_object &) = delete;
    ~dataset_object()
    {
        sdlf_dataset_free(opened);
    }
    const sdlf_dataset *get() const
    {
        return opened != nullptr ? opened : &own;
    }
};

#endif
