/* SPDX-License-Identifier: MIT */
/* Choices of algorithms: the list that a plan reads and extends, and that a file stores. See sdlf_choices in plan.h. */
#ifndef SDLF_FRAMEWORK_CHOICES_H
#define SDLF_FRAMEWORK_CHOICES_H

#include <sdlf/plan.h>

/* All text is one line without '#', '[', ']' or '='. */
typedef struct choice {
    char *device;    /* "cuda: NVIDIA H200, compute capability 9.0, kernels built for 9.0, math tf32" */
    char *operation; /* "conv2d_forward float32 x 1,3,32,32 w 8,3,3,3 ..." */
    char *algorithm; /* "implicit-gemm" */
    char *times;     /* "implicit-gemm 12.1 us, direct 40.2 us": for human readers; may be empty */
} choice;

struct sdlf_choices {
    choice *entries; /* by device, then operation, in the order of strcmp */
    int count, capacity;
    bool changed;
};

/* The name of the algorithm; NULL: none chosen yet. */
const char *choices_find(const sdlf_choices *choices, const char *device, const char *operation);

/* Adds an entry, or replaces the one for the same device and operation. Text is copied; characters that would break a
 * line of a file become blanks. Errors: SDLF_ERROR_MEMORY; nothing is changed then. */
sdlf_status choices_add(sdlf_choices *choices, const char *device, const char *operation, const char *algorithm,
                        const char *times);

#endif
