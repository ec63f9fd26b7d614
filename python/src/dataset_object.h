/* SPDX-License-Identifier: MIT */
/* A data set and the objects that it keeps alive. */
#ifndef SDLF_PYTHON_DATASET_OBJECT_H
#define SDLF_PYTHON_DATASET_OBJECT_H

#include "common.h"

/* A Python function that produces samples, called from the library's threads. */
struct sample_function {
    nb::object call;       /* (index) -> array */
    sdlf_shape shape = {}; /* of a sample */
    sdlf_dtype dtype = SDLF_UINT8;
    std::mutex mutex;
    std::exception_ptr raised; /* the first exception that it has raised, with its message */
    std::string message;
};

/* A data set opened from files, or wrapping arrays or a function. */
struct dataset_object {
    sdlf_dataset *opened = nullptr;
    sdlf_dataset own = {};
    host_array samples, labels;  /* of `own` */
    std::vector<int32_t> narrow; /* labels converted from another type */
    std::vector<float> targets;
    std::vector<std::string> names;
    std::vector<char *> name_pointers;
    sample_function function; /* of `own`, if its samples are not in memory */
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
    /* If the library has failed because the function has raised: rethrows that exception, with its traceback. */
    void rethrow();
};

/* Like check, but rethrows what the functions of these data sets (NULL: none) have raised. */
void check_read(sdlf_status status, const std::shared_ptr<dataset_object> &a,
                const std::shared_ptr<dataset_object> &b = nullptr);

/* Sets the labels of `own`, one per sample, and its classes. */
void take_labels(dataset_object &made, nb::handle labels, nb::handle classes, int64_t samples);

/* Sets the statistics that a loader normalises by. None: bytes are divided by 255, floats are unchanged. */
void take_normalization(dataset_object &made, nb::handle normalization);

std::shared_ptr<dataset_object> dataset_of_function(nb::object function, nb::handle labels, nb::handle shape,
                                                    const std::string &dtype, nb::object classes,
                                                    nb::object normalization, int readers);

/* Makes Python wait at exit for functions that are running. */
void bind_dataset_function();

#endif
