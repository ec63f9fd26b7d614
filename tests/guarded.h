/* SPDX-License-Identifier: MIT */
/* The internals of the mock device (guarded.c), its queues (guarded_queues.c) and its recordings
 * (guarded_recording.c).
 *
 * One queue executes its entries as late as the rules allow and the other as early as possible, or the other way round
 * on request, so that a missing fence shows as a wrong result. */
#ifndef SDLF_TESTS_GUARDED_H
#define SDLF_TESTS_GUARDED_H

#include "testing.h"

#include <stddef.h>

enum { GUARDED_BLOCKS = 64, GUARDED_RECORDED = 1024, GUARDED_QUEUED = 256 };

typedef struct guarded_block {
    char *memory;
    size_t bytes, mapped;
} guarded_block;

typedef struct guarded_recording {
    int count;
    sdlf_operation operation[GUARDED_RECORDED];
} guarded_recording;

struct sdlf_fence {
    int64_t set, passed; /* how often it was set; the last setting that has passed */
};

typedef enum guarded_work {
    GUARDED_COMPUTE,
    GUARDED_REPLAY,
    GUARDED_UPLOAD,
    GUARDED_DOWNLOAD,
    GUARDED_SET,
    GUARDED_FOLLOW,
} guarded_work;

typedef struct guarded_entry {
    guarded_work work;
    sdlf_operation operation;
    const guarded_recording *recording;
    void *to;
    const void *from;
    int64_t bytes;
    sdlf_fence *fence;
    int64_t number; /* which setting of the fence */
} guarded_entry;

typedef struct guarded_queue {
    guarded_entry entry[GUARDED_QUEUED]; /* a ring */
    int first, count;
} guarded_queue;

typedef struct guarded_calculator {
    sdlf_calculator base;
    guarded_block blocks[GUARDED_BLOCKS];
    guarded_block host[GUARDED_BLOCKS]; /* memory for queued transfers; always accessible. Pinned memory has mapped 0 */
    guarded_recording *recording;       /* in progress; NULL: none */
    guarded_queue *queue;               /* both queues */
    sdlf_status status;                 /* of the first queued work that failed */
    char message[256];
} guarded_calculator;

guarded_calculator *guarded_from(sdlf_calculator *calculator);

/* True if [data, data + bytes) is within one of the blocks. */
bool guarded_holds(const guarded_block *blocks, const void *data, int64_t bytes);
/* Execute an entry now. */
sdlf_status guarded_perform(guarded_calculator *guarded, const guarded_entry *entry);
sdlf_status guarded_refuse_while_recording(const guarded_calculator *guarded, const char *what);
guarded_block guarded_map(int64_t bytes);

/* Append an entry to a queue. */
sdlf_status guarded_enqueue(guarded_calculator *guarded, sdlf_queue queue, const guarded_entry *entry);
/* Execute all entries of a queue, and everything they wait for. */
sdlf_status guarded_drain(guarded_calculator *guarded, sdlf_queue queue);

extern const sdlf_queue_class guarded_queues;

/* Methods of its class. */
sdlf_status guarded_record_begin(sdlf_calculator *calculator);
sdlf_status guarded_record_end(sdlf_calculator *calculator, void **recording);
sdlf_status guarded_replay(sdlf_calculator *calculator, void *recording);
void guarded_discard(sdlf_calculator *calculator, void *recording);

#endif
