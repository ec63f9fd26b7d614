/* SPDX-License-Identifier: MIT */
/* Communicator: what the ranks of one data-parallel training say to each other.
 *
 * A rank is one of `rank_count` processes or threads that train the same network on parts of the same batches. Beside
 * the calculator, which computes on one kind of hardware, a communicator adds gradients over all ranks. A communicator
 * class is a const table.
 *
 * Every rank calls the same functions in the same order, with the same sizes. With the same number of ranks sums have
 * the same bits on every run, and on every rank.
 *
 * Threads: one thread at a time uses a communicator, except for `check`.
 * Ownership: a communicator is the caller's, to be closed after the plans and trainers that use it. Classes are the
 * library's.
 * Errors: a status with a message (status.h). After SDLF_ERROR_DEVICE (a rank that is lost, or does not answer) a
 * communicator is only good for sdlf_communicator_abort and _close. */
#ifndef SDLF_COMMUNICATOR_H
#define SDLF_COMMUNICATOR_H

#include <sdlf/calculator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_communicator_class sdlf_communicator_class;
typedef struct sdlf_communicator sdlf_communicator;

/* Ranks that are threads of one process find each other by a group, which they share. It outlives their communicators.
 * Errors of _create: SDLF_ERROR_ARGUMENT (no rank), SDLF_ERROR_MEMORY. */
typedef struct sdlf_rank_group sdlf_rank_group;
sdlf_status sdlf_rank_group_create(sdlf_rank_group **group, int count);
void sdlf_rank_group_free(sdlf_rank_group *group);

typedef struct sdlf_communicator_options {
    double timeout;         /* seconds after which a process that does not answer is given up; default 20 */
    sdlf_rank_group *group; /* of ranks that are threads; NULL: ranks are processes */
    int rank;               /* of this thread in its group, each opened once; without a group it is not looked at */
    void *reserved[2];      /* zero: room for members to come */
} sdlf_communicator_options;

enum { SDLF_MOST_SUMS = 256 };

struct sdlf_communicator_class {
    const char *name;    /* "mpi" */
    const char *summary; /* one line for --help */
    size_t size;         /* of the object whose first member is an sdlf_communicator */
    bool queued; /* are sums of a device's numbers queued with its work, so that its recordings can hold them? */

    /* Make a zeroed object ready, with rank, rank_count and host; on failure it has released all it took. `close` waits
     * for the others, unless the communicator has failed. */
    sdlf_status (*open)(sdlf_communicator *communicator, const sdlf_communicator_options *options);
    void (*close)(sdlf_communicator *communicator);

    /* Begin to add, over all ranks, `count` float32, float64, float16 or bfloat16 numbers in the calculator's memory
     * (NULL: the host's), in place. What the calculator has queued before is waited for. The memory is not touched
     * until collective_end(ticket) has returned; what is queued afterwards sees the sum. At most SDLF_MOST_SUMS are
     * under way. */
    sdlf_status (*allreduce_begin)(sdlf_communicator *communicator, sdlf_calculator *calculator, void *memory,
                                   sdlf_dtype dtype, int64_t count, int64_t *ticket);
    sdlf_status (*collective_end)(sdlf_communicator *communicator, int64_t ticket);

    /* all[0 .. rank_count bytes - 1] becomes each rank's `bytes` bytes, in the order of ranks; host memory. */
    sdlf_status (*gather)(sdlf_communicator *communicator, const void *mine, int64_t bytes, void *all);

    /* The calculator is about to be closed: what is kept for it goes. No sum of its numbers is under way. Optional;
     * NULL: nothing is kept. */
    void (*forget)(sdlf_communicator *communicator, sdlf_calculator *calculator);

    /* End all ranks, this one too, with an exit code other than 0. Does not return. */
    void (*abort)(sdlf_communicator *communicator);

    /* All ranks meet; from then on sums and gatherings are of ranks 0 to count - 1 only. Optional; NULL: it is of all
     * for good. */
    sdlf_status (*narrow)(sdlf_communicator *communicator, int count);

    /* Begin to give every rank what each has of `count` numbers, as of allreduce_begin: rank r has those from
     * sdlf_communicator_shard(r, ...) on, before those of r + 1. Ended by collective_end, likewise. Optional; NULL:
     * there is no such thing. */
    sdlf_status (*allgather_begin)(sdlf_communicator *communicator, sdlf_calculator *calculator, void *memory,
                                   sdlf_dtype dtype, int64_t count, int64_t *ticket);

    /* Is none of the others missing? Called again and again, from any thread: a rank that does not answer for the
     * timeout is missed then, not only while it is waited for. SDLF_ERROR_DEVICE names it. Optional; NULL: it would
     * have ended this process. */
    sdlf_status (*check)(sdlf_communicator *communicator);

    void *reserved[1]; /* zero, so that members can be added */
};

struct sdlf_communicator {
    const sdlf_communicator_class *type;
    int rank, rank_count; /* 0 <= rank < rank_count, unless it has been narrowed */
    int opened_count;     /* of ranks, whatever it has been narrowed to */
    int local_rank;       /* among those on the same host, from 0: which of its devices, say */
    char host[64];        /* the machine that this rank runs on */
    bool agreed;          /* the last failure is every rank's: rank 0 may tell of it, and the others be silent */
};

/* Open the class of that name: the same on every rank. Errors: SDLF_ERROR_ARGUMENT (unknown name),
 * SDLF_ERROR_UNSUPPORTED (not in this build), SDLF_ERROR_DEVICE. */
sdlf_status sdlf_communicator_open(sdlf_communicator **communicator, const char *name,
                                   const sdlf_communicator_options *options);
void sdlf_communicator_close(sdlf_communicator *communicator);

/* Classes in order; NULL past the end. Names of those that SDLF has and this build has not, with the reason; NULL past
 * the end. */
const sdlf_communicator_class *sdlf_communicator_class_at(int index);
const char *sdlf_communicator_left_out(int index, const char **reason);

/* Let only ranks 0 to count - 1 communicate from now on, so that fewer ranks than there are can be measured;
 * `rank_count` becomes `count`. Every rank of all that were opened calls it, with nothing under way and no plan that
 * uses it; those that are left out (rank >= rank_count) then call nothing but this, or _close, in which they wait for
 * the others without computing. Errors: SDLF_ERROR_ARGUMENT (more than there are), SDLF_ERROR_UNSUPPORTED (of that
 * class). */
sdlf_status sdlf_communicator_narrow(sdlf_communicator *communicator, int count);

/* The sum of each of `count` doubles over all ranks, in place; host memory. */
sdlf_status sdlf_communicator_sum(sdlf_communicator *communicator, double *numbers, int64_t count);

/* Do all ranks have the same bytes? Where not, *other becomes the first rank that differs from rank 0, else -1. */
sdlf_status sdlf_communicator_compare(sdlf_communicator *communicator, const void *mine, int64_t bytes, int *other);

/* All ranks meet, each with what its last steps came to. SDLF_OK where all are; else the first failure becomes
 * everybody's, and its message names the rank, unless all say the same. */
sdlf_status sdlf_communicator_agree(sdlf_communicator *communicator, sdlf_status status);

/* End all ranks, this one too, with an exit code other than 0. Does not return, unless communicator is NULL: the one
 * function of the library that ends the process (by _exit or MPI_Abort, so without its exit handlers). A communicator
 * whose ranks no longer answer, `nccl` after `timeout`, calls it from a thread of its own; before that the message
 * function (status.h) is told why. */
void sdlf_communicator_abort(sdlf_communicator *communicator);

/* Where the numbers begin that rank `rank` of `rank_count` keeps for all, of `count`: a multiple of 64, unless it is
 * `count` (rank_count's). */
int64_t sdlf_communicator_shard(int rank, int rank_count, int64_t count);

/* The part of `count` samples that a rank has: [first(rank), first(rank + 1)). NULL: all. */
int64_t sdlf_communicator_first(const sdlf_communicator *communicator, int64_t count);
int64_t sdlf_communicator_share(const sdlf_communicator *communicator, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
