/* SPDX-License-Identifier: MIT */
/* Limits the memory for reading a file: a few bytes can describe any amount of work, which the user who opens a file
 * did not ask for.
 *
 * The budget is 128 MB plus 32 times the stored size of the file, far above what any real network needs. It covers
 * data structures created while reading: messages, JSON, tables, folded constants; and, against the same limit,
 * parameters, elements and pixels that are implied by the file and not simply stored in it. Memory for the former is
 * also limited to half of what the process can still allocate. SDLF_READ_MEMORY (bytes, or 512M, 4G) replaces both
 * limits. */
#ifndef SDLF_FORMATS_BUDGET_H
#define SDLF_FORMATS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdlf/tensor.h>

/* Zero-initialised: no limit. */
typedef struct read_budget {
    int64_t stored; /* bytes of the file */
    int64_t most;   /* limit for expanded data */
    int64_t limit;  /* of these, for data that exist only while reading */
    int64_t taken;  /* of `limit` */
    bool refused;   /* an allocation was refused */
    bool set;       /* set explicitly, regardless of `stored` */
} read_budget;

/* For a file of `stored` bytes; `asked`: a limit set by the caller, instead of the environment (0: none). Errors:
 * SDLF_ERROR_ARGUMENT if SDLF_READ_MEMORY or SDLF_MEMORY is not a size. */
sdlf_status read_budget_make(read_budget *budget, int64_t stored, int64_t asked);

/* Adds the stored bytes of an accompanying file. */
void read_budget_add_stored(read_budget *budget, int64_t bytes);

/* Takes that many bytes (NULL: there is no limit); false, with nothing taken, if there are not that many left. */
bool read_budget_take(read_budget *budget, int64_t bytes);
void read_budget_give_back(read_budget *budget, int64_t bytes);

/* SDLF_ERROR_MEMORY with the reason of a refusal: "more than the 128.0 MB of memory that reading a file of 5.1 kB may
 * take", or "out of memory" if the budget was not the cause. NULL: no budget. */
sdlf_status read_budget_fail(const read_budget *budget);

/* SDLF_ERROR_MEMORY if `bytes`, for values that need not be stored as such, exceed `most`: "WHAT: 6.7 GB, more than
 * ...". */
sdlf_status read_budget_check(const read_budget *budget, int64_t bytes, const char *what);

/* For reading the file `path` as a whole while holding `times` its bytes at once. *most: the maximum number of bytes to
 * read, which matters for a pipe or a device. Errors: SDLF_ERROR_MEMORY with its name if the file has more; those of
 * read_budget_make. */
sdlf_status read_budget_file(size_t *most, const char *path, int times);

/* Creates a tensor for a file's content, after checking available memory; messages start with `name`. */
sdlf_status read_tensor_create(sdlf_tensor *tensor, sdlf_dtype dtype, sdlf_shape shape, const char *name);

#endif
