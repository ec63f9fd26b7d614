/* SPDX-License-Identifier: MIT */
/* How much memory reading a file may take: a few bytes can describe any amount of work, and who opens a file has not
 * asked for that.
 *
 * The budget is 128 MB and 32 times what the file has stored, so that no network that somebody has made comes near. It
 * counts what a file is made into while it is read: messages, JSON, tables, constants that are worked out; and, against
 * the same number, parameters, elements and pixels that follow from the file and are not simply stored in it. Memory for the
 * first is half of what the process can still have, too. SDLF_READ_MEMORY (bytes, or 512M, 4G) takes the place of
 * both. */
#ifndef SDLF_FORMATS_BUDGET_H
#define SDLF_FORMATS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sdlf/tensor.h>

/* Zeroed: no limit. */
typedef struct read_budget {
    int64_t stored; /* bytes of the file */
    int64_t most;   /* that it may become */
    int64_t limit;  /* of these, for what is there only while it is read */
    int64_t taken;  /* of `limit` */
    bool refused;   /* something was not to be had of it */
    bool set;       /* somebody has set it, whatever is stored */
} read_budget;

/* For a file of `stored` bytes; `asked`: what a caller sets, instead of the environment (0: nothing). Errors:
 * SDLF_ERROR_ARGUMENT where SDLF_READ_MEMORY or SDLF_MEMORY is no size. */
sdlf_status read_budget_make(read_budget *budget, int64_t stored, int64_t asked);

/* So many more bytes are stored, in a file beside. */
void read_budget_add_stored(read_budget *budget, int64_t bytes);

/* Take that many bytes of it (NULL: there is no limit); false: there are not that many left, and nothing is taken. */
bool read_budget_take(read_budget *budget, int64_t bytes);
void read_budget_give_back(read_budget *budget, int64_t bytes);

/* SDLF_ERROR_MEMORY, and why, after something was not to be had: "more than the 128.0 MB of memory that reading a file
 * of 5.1 kB may take", or "out of memory" where it is not the budget that refused. NULL: no budget. */
sdlf_status read_budget_fail(const read_budget *budget);

/* SDLF_ERROR_MEMORY where `bytes`, for values that need not be stored as such, are more than `most`: "WHAT: 6.7 GB,
 * more than ...". */
sdlf_status read_budget_check(const read_budget *budget, int64_t bytes, const char *what);

/* The file `path` is to be read as a whole, and `times` its bytes are then held at once. *most: the bytes to read of it at
 * most, which counts where it is a pipe or a device. Errors: SDLF_ERROR_MEMORY where the file has more, with its name;
 * those of read_budget_make. */
sdlf_status read_budget_file(size_t *most, const char *path, int times);

/* A tensor for what a file holds, once the process can have so much; in a message `name` comes first. */
sdlf_status read_tensor_create(sdlf_tensor *tensor, sdlf_dtype dtype, sdlf_shape shape, const char *name);

#endif
