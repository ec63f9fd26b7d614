/* SPDX-License-Identifier: MIT */
/* Communicator: collective communication among the ranks of a data-parallel training run.
 *
 * A rank is one of `rank_count` processes or threads that train the same network on parts of the same batches. A
 * calculator computes on one kind of hardware; a communicator sums gradients over all ranks. A communicator class is a
 * const table.
 *
 * Every rank calls the same functions in the same order with the same sizes. For a given number of ranks, sums are
 * bitwise identical on every run and on every rank.
 *
 * Threads: one thread at a time uses a communicator; only `check` may be called concurrently.
 * Ownership: a communicator is the caller's, to be closed after the plans and trainers that use it. Classes belong to
 * the library.
 * Errors: a status with a message (status.h). After SDLF_ERROR_DEVICE (a rank is lost or does not answer) only
 * sdlf_communicator_abort and _close may be called. */
#ifndef SDLF_COMMUNICATOR_H
#define SDLF_COMMUNICATOR_H

#include <sdlf/calculator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sdlf_communicator_class sdlf_communicator_class;
typedef struct sdlf_communicator sdlf_communicator;

/* Ranks that are threads of one process share a group, through which they find each other. It must outlive their
 * communicators. Errors of _create: SDLF_ERROR_ARGUMENT (count < 1), SDLF_ERROR_MEMORY. */
typedef struct sdlf_rank_group sdlf_rank_group;
sdlf_status sdlf_rank_group_create(sdlf_rank_group **group, int count);
void sdlf_rank_group_free(sdlf_rank_group *group);

typedef struct sdlf_communicator_options {
    double timeout;         /* seconds after which a process that does not answer counts as lost; default 20 */
    sdlf_rank_group *group; /* for ranks that are threads; NULL: ranks are processes */
    int rank;               /* of this thread in its group, each opened once; ignored without a group */
    void *reserved[2];      /* zero; reserved for new members */
} sdlf_communicator_options;

enum { SDLF_MOST_SUMS = 256 };

struct sdlf_communicator_class {
    const char *name;    /* "mpi" */
    const char *summary; /* one line for --help */
    size_t size;         /* of the object whose first member is an sdlf_communicator */
    bool queued; /* sums of device memory are queued with the device's work, so that recordings can contain them */

    /* Initialise a zeroed object and set its rank, rank_count and host; on failure, release everything acquired.
     * `close` waits for the other ranks unless the communicator has failed. */
    sdlf_status (*open)(sdlf_communicator *communicator, const sdlf_communicator_options *options);
    void (*close)(sdlf_communicator *communicator);

    /* Begin an in-place sum over all ranks of `count` float32, float64, float16 or bfloat16 elements in the
     * calculator's memory (NULL: host memory). It waits for work that the calculator has queued. The memory must not be
     * used until collective_end(ticket) has returned; work queued after that sees the sum. At most SDLF_MOST_SUMS
     * collectives may be in progress. */
    sdlf_status (*allreduce_begin)(sdlf_communicator *communicator, sdlf_calculator *calculator, void *memory,
                                   sdlf_dtype dtype, int64_t count, int64_t *ticket);
    sdlf_status (*collective_end)(sdlf_communicator *communicator, int64_t ticket);

    /* Gather `bytes` bytes from each rank into all[0 .. rank_count bytes - 1], in rank order; host memory. */
    sdlf_status (*gather)(sdlf_communicator *communicator, const void *mine, int64_t bytes, void *all);

    /* Release what is kept for a calculator that is about to be closed. No collective on its memory is in progress.
     * Optional; NULL: nothing is kept. */
    void (*forget)(sdlf_communicator *communicator, sdlf_calculator *calculator);

    /* End all ranks, including this one, with a non-zero exit code. Does not return. */
    void (*abort)(sdlf_communicator *communicator);

    /* A barrier of all ranks; after it, sums and gathers are over ranks 0 to count - 1 only. Optional; NULL: not
     * supported. */
    sdlf_status (*narrow)(sdlf_communicator *communicator, int count);

    /* Begin an all-gather of `count` elements, with memory and types as for allreduce_begin: rank r contributes those
     * from sdlf_communicator_shard(r, ...) up to rank r + 1's. End it with collective_end. Optional; NULL: not
     * supported. */
    sdlf_status (*allgather_begin)(sdlf_communicator *communicator, sdlf_calculator *calculator, void *memory,
                                   sdlf_dtype dtype, int64_t count, int64_t *ticket);

    /* Check that all other ranks respond. Call it regularly, from any thread, so that a rank that has not answered for
     * `timeout` is noticed even when no collective waits for it. SDLF_ERROR_DEVICE names that rank. Optional; NULL: a
     * lost rank ends this process. */
    sdlf_status (*check)(sdlf_communicator *communicator);

    void *reserved[1]; /* zero; reserved for new members */
};

struct sdlf_communicator {
    const sdlf_communicator_class *type;
    int rank, rank_count; /* 0 <= rank < rank_count, unless it has been narrowed */
    int opened_count;     /* the number of ranks opened, regardless of narrowing */
    int local_rank;       /* index among the ranks of the same host, for example to select a device */
    char host[64];        /* the host that this rank runs on */
    bool agreed;          /* all ranks know the last failure, so only rank 0 needs to report it */
};

/* Open a communicator of the class named `name`, the same on every rank. Errors: SDLF_ERROR_ARGUMENT (unknown name),
 * SDLF_ERROR_UNSUPPORTED (not in this build), SDLF_ERROR_DEVICE. */
sdlf_status sdlf_communicator_open(sdlf_communicator **communicator, const char *name,
                                   const sdlf_communicator_options *options);
void sdlf_communicator_close(sdlf_communicator *communicator);

/* Classes by index, and names of the classes that this build lacks, each with the reason. Both return NULL past the
 * end. */
const sdlf_communicator_class *sdlf_communicator_class_at(int index);
const char *sdlf_communicator_unavailable(int index, const char **reason);

/* Restrict communication to ranks 0 to count - 1, to measure with fewer ranks; `rank_count` becomes `count`. All
 * opened ranks must call this, with no collective in progress and no plan that uses the communicator. Excluded ranks
 * (rank >= rank_count) may then call only this function or _close, in which they wait for the others without
 * computing. Errors: SDLF_ERROR_ARGUMENT (more ranks than were opened), SDLF_ERROR_UNSUPPORTED (not supported by the
 * class). */
sdlf_status sdlf_communicator_narrow(sdlf_communicator *communicator, int count);

/* Sum each of `count` doubles over all ranks, in place; host memory. */
sdlf_status sdlf_communicator_sum(sdlf_communicator *communicator, double *numbers, int64_t count);

/* Compare `bytes` bytes over all ranks. *other becomes the first rank that differs from rank 0, or -1. */
sdlf_status sdlf_communicator_compare(sdlf_communicator *communicator, const void *mine, int64_t bytes, int *other);

/* A barrier at which every rank passes a status. Returns SDLF_OK if all passed SDLF_OK; else the first failure, on all
 * ranks, with a message that names the failing rank unless all report the same one. */
sdlf_status sdlf_communicator_agree(sdlf_communicator *communicator, sdlf_status status);

/* End all ranks, including this one, with a non-zero exit code. Does not return, unless `communicator` is NULL. This is
 * the only function of the library that ends the process (by _exit or MPI_Abort, so without exit handlers). A
 * communicator whose ranks no longer answer (for `nccl`, after `timeout`) calls it from its own thread, after reporting
 * the reason to the message function (status.h). */
void sdlf_communicator_abort(sdlf_communicator *communicator);

/* The first element of the shard that rank `rank` holds when `count` elements are distributed over `rank_count` ranks:
 * a multiple of 64, or `count` for rank == rank_count. */
int64_t sdlf_communicator_shard(int rank, int rank_count, int64_t count);

/* A rank's part of `count` samples: the index of its first one, and their number. NULL: all samples, from 0 on. */
int64_t sdlf_communicator_first(const sdlf_communicator *communicator, int64_t count);
int64_t sdlf_communicator_share(const sdlf_communicator *communicator, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
